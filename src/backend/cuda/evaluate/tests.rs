//! Rows on the device are what they are on the processor.

use blstrs::Scalar;
use ff::Field;
use rand::rngs::StdRng;
use rand::SeedableRng;

use crate::backend::cuda::gpu::{scalar_words, scalar_words_mut, Gpu};
use crate::backend::cuda::shape::testing::{constant_witness, random_witness, systems, Loaded};
use crate::backend::cuda::testing::gpu;
use crate::backend::cuda::witness::{DeviceWitness, Staging};
use crate::error::Class;
use crate::pipeline::Control;
use crate::r1cs::testing::{Mixed, Sha};
use crate::r1cs::{Constraints, Matrix, PartitionWitness, R1cs};

/// All rows of a matrix, where there was something else before.
fn evaluated(gpu: &Gpu, loaded: &Loaded, matrix: Matrix, witness: &DeviceWitness) -> Vec<Scalar> {
    let mut values = vec![Scalar::from(0xdead_beef); 1 << loaded.tables.sizes().log_domain];
    let out = gpu.allocate(values.len(), "rows").expect("memory");
    loaded.stream.upload(out.span(), scalar_words(&values)).expect("upload");
    loaded.tables.evaluate(&loaded.stream, matrix, witness, out.span()).expect("evaluation");
    loaded.stream.download(out.span(), scalar_words_mut(&mut values)).expect("download");
    values
}

pub fn compare(name: &str, system: &dyn Constraints, witnesses: &[PartitionWitness]) {
    let gpu = gpu();
    let loaded = Loaded::new(&gpu, system, witnesses);
    for (index, witness) in witnesses.iter().enumerate() {
        for matrix in [Matrix::A, Matrix::B] {
            let mut expected = vec![Scalar::ZERO; 1 << system.log_domain()];
            system.evaluate(matrix, witness, &mut expected, &Control::new()).expect("evaluation");
            let found = evaluated(&gpu, &loaded, matrix, &loaded.witnesses[index]);
            let different = found.iter().zip(&expected).position(|(found, expected)| found != expected);
            assert_eq!(different, None, "{name}, witness {index}, {matrix:?}");
        }
    }
}

#[test]
fn evaluation_is_the_processors_for_any_witness() {
    let mut rng = StdRng::seed_from_u64(1);
    for (name, system) in systems() {
        let system = system.as_ref();
        let mut witnesses = vec![constant_witness(system, false), constant_witness(system, true)];
        witnesses.extend([0; 2].map(|_| random_witness(system, &mut rng)));
        compare(name, system, &witnesses);
    }
}

#[test]
fn evaluation_of_real_assignments_is_the_processors() {
    let control = Control::new();
    let r1cs = R1cs::record(Sha::default(), &control).expect("recording");
    let hash = |byte| r1cs.assign(Sha { preimage: Some([byte; 64]) }, &control).expect("assignment");
    compare("hashes", &r1cs, &[hash(0), hash(0x5a)]);
    let r1cs = R1cs::record(Mixed::default(), &control).expect("recording");
    let circuit = Mixed::assigned([true, false, true], [Scalar::from(5), -Scalar::from(77)], [0xdead_beef, 3]);
    compare("gadgets", &r1cs, &[r1cs.assign(circuit, &control).expect("assignment")]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let gpu = gpu();
    let mut rng = StdRng::seed_from_u64(2);
    let systems = systems();
    let (system, other) = (systems[4].1.as_ref(), systems[5].1.as_ref());
    let witness = random_witness(system, &mut rng);
    let loaded = Loaded::new(&gpu, system, std::slice::from_ref(&witness));
    let domain = 1 << system.log_domain();
    let out = gpu.allocate(domain, "rows").expect("memory");
    let class = |matrix, len| {
        let out = out.span().slice(..len);
        let error = loaded.tables.evaluate(&loaded.stream, matrix, &loaded.witnesses[0], out).expect_err("must fail");
        error.class()
    };
    assert_eq!(class(Matrix::C, domain), Class::Internal);
    assert_eq!(class(Matrix::A, domain - 1), Class::Internal);

    let mut staging = Staging::new(&gpu, loaded.tables.sizes()).expect("staging");
    let mut class = |witness: &PartitionWitness, to: &DeviceWitness| {
        staging.upload(&loaded.stream, witness, to).expect_err("must fail").class()
    };
    let mut without_one = witness.clone();
    without_one.inputs[0] = Scalar::ZERO;
    assert_eq!(class(&without_one, &loaded.witnesses[0]), Class::Input);
    assert_eq!(class(&random_witness(other, &mut rng), &loaded.witnesses[0]), Class::Internal);
    let others = Loaded::new(&gpu, other, &[random_witness(other, &mut rng)]);
    assert_eq!(class(&witness, &others.witnesses[0]), Class::Internal);
}
