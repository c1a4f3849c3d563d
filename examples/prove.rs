//! Proves a sector from Rust: decode and check the C1 output, prove, print the proof.
//!
//! ```text
//! cargo run --release --example prove -- C1_FILE SECTOR MINER_ID PARAMS_DIR
//! ```

use cuporep::pipeline::{Control, Event};
use cuporep::{Config, ProveRequest, Prover};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [c1, sector, miner, params] = &arguments[..] else {
        return Err("usage: prove C1_FILE SECTOR MINER_ID PARAMS_DIR".into());
    };
    let c1 = std::fs::read(c1)?;
    let prover = Prover::new(Config::default())?;
    let proof = prover.prove(&ProveRequest {
        c1: &c1,
        sector: sector.parse()?,
        miner: Some(miner.parse()?),
        parameter_dir: Some(params.into()),
        placement: Default::default(),
        fixed_randomness: None,
        control: Control::new().with_progress(|event: &Event| {
            if let Some(elapsed) = event.elapsed {
                eprintln!("{:<10} {:>8.1} ms", event.stage.name(), elapsed.as_secs_f64() * 1e3);
            }
        }),
    })?;
    println!("{}", proof.bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    Ok(())
}
