//! The Go package's copy of the C header is the committed one.

#[test]
fn the_go_package_has_the_same_header() {
    let header = include_str!("../include/cuporep.h");
    let copy = include_str!("../go/cuporep.h");
    assert!(header == copy, "run `make header` and commit go/cuporep.h");
}
