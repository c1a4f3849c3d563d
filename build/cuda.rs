//! Compiles each kernels/*.cu into one fatbin: machine code for every architecture that this nvcc knows, and PTX for
//! those to come. Writes a Rust file that embeds them.

use std::collections::BTreeSet;
use std::env;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

/// The oldest architecture that the kernels are made for.
const OLDEST: u32 = 75;

const HELP: &str =
    "feature `cuda` needs nvcc: install the CUDA toolkit (12 or later) and set CUDA_PATH to its directory, or set \
     CUPOREP_CUDA_ARCH=none to build without kernels";

pub fn build() -> Result<(), String> {
    println!("cargo:rerun-if-changed=kernels");
    for variable in ["CUDA_PATH", "CUDA_HOME", "CUPOREP_CUDA_ARCH", "NVCC_CCBIN", "NVCC_APPEND_FLAGS"] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    let kernels = kernels();
    let Some(wanted) = wanted_architectures()? else {
        return embed(&kernels, "no architecture (built with CUPOREP_CUDA_ARCH=none)", false);
    };
    let nvcc = find_nvcc().ok_or(HELP)?;
    let target = Target::choose(&nvcc, &wanted)?;
    compile_all(&nvcc, &target, &kernels)?;
    embed(&kernels, &target.describe(), true)
}

pub fn out_dir() -> PathBuf {
    PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"))
}

/// Every kernels/*.cu with its name, in order; in a build for tests also those that only tests launch.
pub fn kernels() -> Vec<(String, PathBuf)> {
    let directories = if cfg!(feature = "emulator") { &["kernels", "kernels/tests"][..] } else { &["kernels"] };
    let entries = |directory| std::fs::read_dir(directory).expect("kernels is part of the package");
    let mut kernels: Vec<(String, PathBuf)> = directories
        .iter()
        .flat_map(entries)
        .map(|entry| entry.expect("kernels is readable").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "cu"))
        .map(|path| (path.file_stem().unwrap_or_default().to_string_lossy().into_owned(), path))
        .collect();
    kernels.sort();
    kernels
}

/// What CUPOREP_CUDA_ARCH asks for: numbers such as `80,90`; an empty list means all, `None` means `none`.
fn wanted_architectures() -> Result<Option<Vec<u32>>, String> {
    let text = env::var("CUPOREP_CUDA_ARCH").unwrap_or_default();
    match text.trim() {
        "none" => Ok(None),
        "" | "all" => Ok(Some(Vec::new())),
        list => {
            let numbers: Result<Vec<u32>, _> = list.split(',').map(|number| number.trim().parse()).collect();
            let wrong = |_| format!("CUPOREP_CUDA_ARCH is {list:?}; expected `none`, `all` or numbers such as 80,90");
            Ok(Some(numbers.map_err(wrong)?))
        }
    }
}

fn find_nvcc() -> Option<PathBuf> {
    let below = |variable: &str| env::var_os(variable).map(|root| PathBuf::from(root).join("bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    let directories = ["CUDA_PATH", "CUDA_HOME"].into_iter().filter_map(below);
    let directories = directories.chain(env::split_paths(&path)).chain(["/usr/local/cuda/bin".into()]);
    directories.map(|directory| directory.join("nvcc")).find(|nvcc| nvcc.is_file())
}

/// What to compile for.
struct Target {
    machine_code: BTreeSet<u32>,
    ptx: u32,
}

impl Target {
    /// The wanted architectures, or all that the compiler knows.
    fn choose(nvcc: &Path, wanted: &[u32]) -> Result<Self, String> {
        let known: BTreeSet<u32> = ask_architectures(nvcc)?.into_iter().filter(|&number| number >= OLDEST).collect();
        let list = |numbers: &BTreeSet<u32>| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
        if let Some(unknown) = wanted.iter().find(|number| !known.contains(number)) {
            let nvcc = nvcc.display();
            return Err(format!("CUPOREP_CUDA_ARCH asks for {unknown}; {nvcc} can make {}", list(&known)));
        }
        let machine_code = if wanted.is_empty() { known } else { wanted.iter().copied().collect() };
        let ptx = *machine_code.last().ok_or_else(|| format!("{} knows no architecture to make", nvcc.display()))?;
        Ok(Target { machine_code, ptx })
    }

    fn describe(&self) -> String {
        let names: Vec<String> = self.machine_code.iter().map(|number| format!("sm_{number}")).collect();
        format!("{} and PTX of compute_{}", names.join(", "), self.ptx)
    }

    fn flags(&self) -> Vec<String> {
        let machine_code = self.machine_code.iter().map(|n| format!("-gencode=arch=compute_{n},code=sm_{n}"));
        let ptx = format!("-gencode=arch=compute_{0},code=compute_{0}", self.ptx);
        machine_code.chain([ptx]).collect()
    }
}

/// The plain architectures that a compiler can make, without variants such as sm_90a.
fn ask_architectures(nvcc: &Path) -> Result<Vec<u32>, String> {
    let output = Command::new(nvcc).arg("--list-gpu-code").output();
    let output = output.map_err(|error| format!("{} cannot be run: {error}; {HELP}", nvcc.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().filter_map(|line| line.trim().strip_prefix("sm_")?.parse().ok()).collect())
}

fn compile_all(nvcc: &Path, target: &Target, kernels: &[(String, PathBuf)]) -> Result<(), String> {
    let jobs = env::var("NUM_JOBS").ok().and_then(|jobs| jobs.parse().ok()).unwrap_or(1).max(1);
    let workers = kernels.len().clamp(1, jobs);
    // The sums over points take longest by far.
    let mut order: Vec<&(String, PathBuf)> = kernels.iter().collect();
    order.sort_by_key(|(name, _)| (!name.starts_with("sums_"), std::cmp::Reverse(name)));
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((name, source)) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // A file that is left over at the end gets all threads, for its architectures.
                    if let Err(failure) = compile(nvcc, target, name, source, jobs) {
                        failures.lock().expect("no worker panics").push(failure);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no worker panics");
    if failures.is_empty() {
        Ok(())
    } else {
        Err(failures.join("\n"))
    }
}

fn fatbin(name: &str) -> PathBuf {
    out_dir().join(format!("{name}.fatbin"))
}

fn compile(nvcc: &Path, target: &Target, name: &str, source: &Path, threads: usize) -> Result<(), String> {
    let mut command = Command::new(nvcc);
    command.args(["--fatbin", "-std=c++17", "-O3", "-Ikernels"]);
    command.arg(format!("--threads={threads}")).args(target.flags()).arg("-o").arg(fatbin(name)).arg(source);
    let output = command.output().map_err(|error| format!("{} cannot be run: {error}", nvcc.display()))?;
    if output.status.success() {
        return Ok(());
    }
    let messages = String::from_utf8_lossy(&output.stderr);
    Err(format!("{} cannot compile {}:\n{messages}", nvcc.display(), source.display()))
}

/// Writes what the crate includes: the names of the modules with their images, empty ones without `images`.
fn embed(kernels: &[(String, PathBuf)], description: &str, images: bool) -> Result<(), String> {
    let mut text = String::new();
    let mut add = |line: String| writeln!(text, "{line}").expect("a string can be written to");
    add(format!("pub(super) const ARCHITECTURES: &str = {description:?};"));
    add(format!("pub(super) const HAS_IMAGES: bool = {images};"));
    add("pub(super) static MODULES: &[Module] = &[".into());
    for (name, _) in kernels {
        let image = if images { format!("include_bytes!({:?})", fatbin(name)) } else { "b\"\"".into() };
        add(format!("    Module {{ name: {name:?}, image: {image} }},"));
    }
    add("];".into());
    let path = out_dir().join("kernels.rs");
    std::fs::write(&path, text).map_err(|error| format!("{} cannot be written: {error}", path.display()))
}
