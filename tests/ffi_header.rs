//! The committed C header is the one that the sources give.

#![cfg(feature = "capi")]

#[test]
fn the_committed_header_is_the_generated_one() {
    let generated = include_str!(concat!(env!("OUT_DIR"), "/cuporep.h"));
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/include/cuporep.h");
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(committed == generated, "run `make header` and commit {path}");
}
