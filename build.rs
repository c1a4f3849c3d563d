//! Makes the C header from the functions' documentation, for a test that compares it with the committed one; with
//! feature `cuda` compiles the kernels for GPUs, with feature `emulator` for the host.

#[cfg(feature = "cuda")]
#[path = "build/cuda.rs"]
mod cuda;
#[cfg(feature = "emulator")]
#[path = "build/emulator.rs"]
mod emulator;
#[cfg(feature = "capi")]
#[path = "build/header.rs"]
mod header;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=build");
    #[cfg(feature = "capi")]
    header::generate();
    #[cfg(feature = "cuda")]
    if let Err(message) = cuda::build() {
        eprintln!("error: {message}");
        std::process::exit(1);
    }
    #[cfg(feature = "emulator")]
    emulator::build();
}
