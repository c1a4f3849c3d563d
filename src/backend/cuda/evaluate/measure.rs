//! Filecoin's circuits on a device: that results are the processor's, and how long they take beside what memory allows.

use std::path::Path;
use std::time::Instant;

use blstrs::Scalar;
use ff::Field;
use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};

use super::tests::compare;
use crate::backend::cuda::bench::median;
use crate::backend::cuda::gpu::{scalar_words_mut, Buffer, Gpu, Words};
use crate::backend::cuda::queries::{self, Query, MAX_WITNESSES};
use crate::backend::cuda::shape::testing::{random_witness, Loaded};
use crate::backend::cuda::testing::gpu;
use crate::error::Result;
use crate::pipeline::Control;
use crate::porep::{check, templates, witness, C1Output, SectorSize};
use crate::r1cs::{Bitmap, Constraints, Matrix, PartitionWitness};

/// The witness of a sealed sector.
fn real_witness(system: &dyn Constraints) -> PartitionWitness {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/StackedDrg2KiBV1_1-000/c1.json.xz");
    let mut json = Vec::new();
    lzma_rs::xz_decompress(&mut &std::fs::read(path).expect("fixture")[..], &mut json).expect("xz");
    let control = Control::new();
    let checked = check(C1Output::decode(&json).expect("C1"), 963_860, 3_454_089, &control).expect("a good C1");
    witness(&checked, 0, system.full_positions(), &control).expect("witness")
}

#[test]
#[ignore = "takes a minute on the emulator"]
fn the_circuit_of_2_kib_gives_what_it_gives_on_the_processor() {
    let system = templates(SectorSize::KiB2, &Control::new()).expect("templates");
    let mut rng = StdRng::seed_from_u64(5);
    let witnesses = [real_witness(&system), random_witness(&system, &mut rng), random_witness(&system, &mut rng)];
    assert_eq!(system.first_unsatisfied(&witnesses[0], &Control::new()).expect("check"), None);
    compare("2 KiB", &system, &witnesses);
    queries::tests::compare("2 KiB", &system, &witnesses, &[1, 3]);
}

#[test]
#[ignore = "measurement"]
fn measure_2_kib() {
    measure(SectorSize::KiB2);
}

#[test]
#[ignore = "measurement, of 12 GB on the device and on the host"]
fn measure_32_gib() {
    measure(SectorSize::GiB32);
}

/// Prints a time with the bytes that must be moved in it, and how long the device takes to store as many.
fn report(what: &str, milliseconds: f64, bytes: usize, store_rate: f64) {
    let (gigabytes, floor) = (bytes as f64 * 1e-9, bytes as f64 / store_rate);
    println!("{what}: {milliseconds:.3} ms, {:.0} GB/s; floor {floor:.3} ms", gigabytes / milliseconds * 1e3);
}

fn measure(size: SectorSize) {
    let begin = Instant::now();
    let system = templates(size, &Control::new()).expect("templates");
    println!("{size}: templates in {:?}", begin.elapsed());
    let gpu = gpu();
    let mut rng = StdRng::seed_from_u64(6);
    let mut witnesses = vec![random_witness(&system, &mut rng)];
    while witnesses.len() < MAX_WITNESSES {
        let bits = witnesses[0].bits.words().iter().map(|&word| word & rng.next_u64()).collect();
        let bits = Bitmap::from_words(bits, system.num_aux()).expect("fewer ones");
        witnesses.push(PartitionWitness { bits, ..witnesses[0].clone() });
    }
    let begin = Instant::now();
    let loaded = Loaded::new(&gpu, &system, &witnesses);
    println!(
        "tables of {} bytes and {MAX_WITNESSES} witnesses uploaded in {:?}",
        loaded.tables.bytes(),
        begin.elapsed()
    );
    let stream = &loaded.stream;

    let out = gpu.allocate::<Words>(1 << system.log_domain(), "rows").expect("memory");
    let bytes = out.span().bytes();
    let store = median(&gpu, stream, || stream.zero(out.span())).expect("zeros");
    let rate = bytes as f64 / store;
    report("zeros", store, bytes, rate);
    for (matrix, rows) in [Matrix::A, Matrix::B].into_iter().zip(&loaded.tables.matrices) {
        let (tables, place, out) = (&loaded.tables, &loaded.witnesses[0], out.span());
        let time = |what: &str, bytes: usize, work: &dyn Fn() -> Result<()>| {
            report(&format!("{matrix:?} w{what}"), median(&gpu, stream, work).expect("kernels"), bytes, rate);
        };
        let of_list = |list: &Buffer<u32>| list.len() * size_of::<Words>();
        time(", short rows as bits", bytes, &|| tables.evaluate_bits(stream, rows, place, out));
        time(", mixed rows", of_list(&rows.mixed), &|| tables.evaluate_mixed(stream, rows, place, out));
        time(", long rows", of_list(&rows.long), &|| tables.evaluate_long(stream, rows, place, out));
        time("", bytes, &|| tables.evaluate(stream, matrix, place, out));
        let mut found = vec![Scalar::ZERO; out.len()];
        stream.download(out, scalar_words_mut(&mut found)).expect("download");
        let mut expected = vec![Scalar::ZERO; out.len()];
        let begin = Instant::now();
        system.evaluate(matrix, &witnesses[0], &mut expected, &Control::new()).expect("evaluation");
        println!("  on the processor {:?}", begin.elapsed());
        assert!(found == expected, "{matrix:?}");
    }
    drop(out);
    for (name, query) in [("l", loaded.tables.l()), ("a", loaded.tables.a()), ("b", loaded.tables.b())] {
        measure_query(&gpu, &loaded, name, query, rate);
    }
}

fn measure_query(gpu: &Gpu, loaded: &Loaded, name: &str, query: &Query, rate: f64) {
    let stream = &loaded.stream;
    let out = gpu.allocate::<u32>(query.len(), "keys").expect("memory");
    for group in [1, MAX_WITNESSES] {
        let witnesses = &loaded.witnesses[..group];
        let time = median(gpu, stream, || query.keys(stream, &loaded.tables, witnesses, out.span())).expect("keys");
        // Keys, and bitmaps: those of witnesses, of full-width positions and of the query.
        let bytes = out.span().bytes() + (group + 2) * loaded.tables.sizes().aux / 8;
        report(&format!("keys of {name}, {group} witnesses"), time, bytes, rate);
    }
    let out = gpu.allocate::<Words>(query.full_bases().len(), "scalars").expect("memory");
    let scalars = || query.full_scalars(stream, &loaded.witnesses[0], out.span());
    let time = median(gpu, stream, scalars).expect("scalars");
    report(&format!("{} full-width scalars of {name}", out.len()), time, out.len() * (64 + 4), rate);
}
