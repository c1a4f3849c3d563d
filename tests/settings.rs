//! The settings file of the storage-proofs crates in the working directory does not concern us. A test binary of its
//! own, as it changes the working directory, and as those settings freeze at first use.

mod common;

use bellperson::Circuit;
use common::{fixture, SMALL};
use cuporep::pipeline::Control;
use cuporep::porep::{
    check, public_inputs, visit_blank_circuit, visit_partition_circuit, C1Output, CircuitVisitor, SectorSize,
};

struct Reached;

impl CircuitVisitor for Reached {
    type Output = ();
    fn visit<C: Circuit<blstrs::Scalar>>(self, _: C) {}
}

#[test]
fn a_broken_settings_file_in_the_working_directory_does_not_matter() {
    let fixture = fixture(SMALL);
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("rust-fil-proofs.config.toml"), "= broken [").unwrap();
    std::env::set_current_dir(directory.path()).unwrap();

    let c1 = C1Output::decode(&fixture.c1).unwrap();
    let checked = check(c1, fixture.sector, fixture.miner, &Control::new()).unwrap();
    public_inputs(&checked, 0).unwrap();
    visit_partition_circuit(&checked, 0, Reached).unwrap();
    for size in SectorSize::ALL {
        visit_blank_circuit(size, Reached).unwrap();
    }

    // The file is one that the settings stumble over.
    let settings = std::panic::catch_unwind(storage_proofs_core::parameter_cache::parameter_cache_dir_name);
    assert!(settings.is_err());
}
