//! The tool: proves, checks and verifies on the command line, makes and checks parameters, measures.

mod batch;
mod bench;
mod bytes;
mod devices;
mod fabricate;
mod input;
mod output;
mod parameters;
#[cfg(feature = "cuda")]
mod plan;
mod progress;
mod prove;
#[cfg(feature = "cuda")]
mod sector;
mod usage;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use cuporep::pipeline::{CancelToken, Control};
use cuporep::porep::ids::parse_miner;
use cuporep::{Config, Prover, Result};

use output::{Output, EXIT_CANCELLED};

/// Turns the output of Filecoin's seal commit phase 1 into the proof that goes on chain.
///
/// Exit codes: 0 done, 1 wrong input, 2 wrong usage, 3 parameters, 4 memory, disk or device,
/// 5 cancelled, 6 internal fault.
#[derive(Debug, Parser)]
#[command(name = "cuporep", version, arg_required_else_help = true)]
struct Cli {
    /// Print one JSON object on standard output, also for errors, and nothing else
    #[arg(long, global = true)]
    json: bool,
    /// Directory for recorded circuit shapes and digests [default: CUPOREP_CACHE_DIR, else beside the parameters]
    #[arg(long, global = true, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Threads of the CPU backend [default: CUPOREP_THREADS, else one per core]
    #[arg(long, global = true, value_name = "N")]
    threads: Option<usize>,
    /// Proofs in work on each GPU at once, from 1 to 64 [default: CUPOREP_GPU_WORKERS, else 2]
    #[arg(long, global = true, value_name = "N")]
    gpu_workers: Option<usize>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Prove a C1 output
    Prove(prove::ProveArgs),
    /// Check a C1 output without proving it
    Check(prove::CheckArgs),
    /// Verify a proof against the C1 output that it was made from
    Verify(prove::VerifyArgs),
    /// List what can make proofs
    Devices,
    /// Say how much memory proofs on a GPU take, and what they move; needs no GPU
    #[cfg(feature = "cuda")]
    Plan(plan::PlanArgs),
    /// Make or check proving parameters
    #[command(subcommand)]
    Params(parameters::ParamsCommand),
    /// Measure
    #[command(subcommand)]
    Bench(bench::BenchCommand),
}

impl Command {
    /// The bytes that may be used on a device, if the command says so.
    fn vram(&self) -> Option<u64> {
        match self {
            Command::Prove(args) => args.vram(),
            Command::Bench(command) => command.vram(),
            _ => None,
        }
    }
}

/// Which sector a C1 output is for.
#[derive(Debug, Args)]
struct SectorArgs {
    /// C1 output: JSON, or the lotus-bench envelope, also as .xz or .gz; - for standard input
    #[arg(long, value_name = "FILE|-")]
    c1: PathBuf,
    /// Sector number
    #[arg(long, value_name = "N")]
    sector: u64,
    /// Miner: actor id or address such as t01000
    #[arg(long, value_name = "ID", value_parser = parse_miner)]
    miner: u64,
}

/// Lets an interrupt cancel the work, which cleans up behind itself. While input is read there is nothing to clean
/// up and perhaps no end to wait for, and a second interrupt means it: both end the process at once.
fn handle_interrupts(token: &CancelToken) {
    let token = token.clone();
    let handler = move || {
        if token.is_cancelled() || input::is_reading() {
            std::process::exit(EXIT_CANCELLED.into());
        }
        token.cancel();
    };
    if let Err(error) = ctrlc::set_handler(handler) {
        log::warn!("interrupts are not handled: {error}");
    }
}

fn run(cli: &Cli, output: &Output) -> Result<()> {
    let token = CancelToken::new();
    handle_interrupts(&token);
    let control = progress::watch(Control::new().with_cancel(token), cli.json);
    let prover = Prover::new(Config {
        cache_dir: cli.cache.clone(),
        threads: cli.threads,
        gpu_workers: cli.gpu_workers,
        device_memory: cli.command.vram(),
        ..Config::default()
    })?;
    match &cli.command {
        Command::Prove(args) => prove::prove(args, &prover, control, output),
        Command::Check(args) => prove::check(args, &prover, &control, output),
        Command::Verify(args) => prove::verify(args, &prover, &control, output),
        Command::Devices => devices::list(output),
        #[cfg(feature = "cuda")]
        Command::Plan(args) => plan::run(args, output),
        Command::Params(command) => parameters::run(command, &prover, &control, output),
        Command::Bench(command) => bench::run(command, &prover, &control, output),
    }
}

/// Prints what clap has to say: help, the version, or what is wrong with the arguments.
fn usage(error: &clap::Error) -> ExitCode {
    let wants_json = std::env::args_os().any(|argument| argument == "--json");
    if error.use_stderr() && wants_json {
        let message = error.to_string();
        let object = serde_json::json!({"error": {"class": "usage", "code": 2, "message": message.trim_end()}});
        return match Output::new(true).result("", &object) {
            Ok(()) => ExitCode::from(EXIT_USAGE),
            Err(error) => Output::new(true).failed(&error),
        };
    }
    // Nobody is left to tell when this cannot be printed.
    let _ = error.print();
    ExitCode::from(if error.use_stderr() { EXIT_USAGE } else { 0 })
}

/// The exit code for a wrong command line.
const EXIT_USAGE: u8 = 2;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let filter = std::env::var(cuporep::environment::LOG_VARIABLE).unwrap_or_else(|_| "warn".into());
    if !cli.json {
        env_logger::Builder::new().parse_filters(&filter).format_timestamp_millis().init();
    }
    let output = Output::new(cli.json);
    match run(&cli, &output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => output.failed(&error),
    }
}
