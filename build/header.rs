//! The C header.

use std::env;
use std::path::PathBuf;

/// The files that hold what the header shows, in its order.
const SOURCES: [&str; 4] = ["src/ffi/status.rs", "src/ffi/types.rs", "src/ffi/prover.rs", "src/ffi/process.rs"];

pub fn generate() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    println!("cargo:rerun-if-changed=cbindgen.toml");
    let mut config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("cbindgen.toml is readable");
    let version = env::var("CARGO_PKG_VERSION").expect("cargo sets it");
    config.after_includes = Some(format!(
        "\n/** The version that this header belongs to; compare with cuporep_version(). */\n#define CUPOREP_VERSION \"{version}\""
    ));
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in SOURCES {
        println!("cargo:rerun-if-changed={source}");
        builder = builder.with_src(root.join(source));
    }
    builder.generate().expect("the C header can be made").write_to_file(out.join("cuporep.h"));
}
