//! The same kernels and the emulator that runs them, compiled for the host.

use std::path::PathBuf;

use crate::cuda;

pub fn build() {
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("c++17")
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true)
        .flag_if_supported("-Wno-unknown-pragmas")
        .include("kernels")
        // Kernels register themselves when the program starts; nothing else refers to their object files.
        .link_lib_modifier("+whole-archive");
    for source in host_sources() {
        build.file(source);
    }
    for (_, source) in cuda::kernels() {
        // The compiler takes a .cu file for CUDA or for nothing it knows, so each gets a C++ file that includes it.
        build.file(wrapped(&source));
    }
    build.compile("cuporep_emulator");
}

fn host_sources() -> Vec<PathBuf> {
    let mut sources: Vec<PathBuf> = std::fs::read_dir("kernels/host")
        .expect("kernels/host is part of the package")
        .map(|entry| entry.expect("kernels/host is readable").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "cpp"))
        .collect();
    sources.sort();
    sources
}

fn wrapped(source: &std::path::Path) -> PathBuf {
    let source = source.canonicalize().expect("the kernel was just listed");
    let name = source.file_stem().expect("a .cu file has a name").to_string_lossy().into_owned();
    let path = cuda::out_dir().join(format!("{name}.cpp"));
    let text = format!("#include \"{}\"\n", source.display());
    // Left alone if it is the same, so that an unchanged kernel keeps its time.
    if std::fs::read_to_string(&path).ok().as_deref() != Some(text.as_str()) {
        std::fs::write(&path, text).expect("the output directory can be written");
    }
    path
}
