//! What the device makes of witnesses for the sums is every scalar of every query, once.

use blstrs::Scalar;
use ff::PrimeField;
use rand::rngs::StdRng;
use rand::SeedableRng;

use super::{Query, MAX_WITNESSES};
use crate::backend::cuda::gpu::{Gpu, Words};
use crate::backend::cuda::shape::testing::{constant_witness, random_witness, systems, Loaded};
use crate::backend::cuda::testing::gpu;
use crate::error::Class;
use crate::r1cs::{Constraints, PartitionWitness};

/// The scalars of the queries l, a and b, base by base, as the prover's protocol has them.
fn expected(system: &dyn Constraints, witness: &PartitionWitness) -> [Vec<Scalar>; 3] {
    let mut aux: Vec<_> = (0..system.num_aux()).map(|index| Scalar::from(u64::from(witness.bits.get(index)))).collect();
    for (&position, &value) in system.full_positions().iter().zip(&witness.full) {
        aux[position as usize] = value;
    }
    let mut a = witness.inputs.clone();
    a.extend(system.a_aux_density().ones().map(|index| aux[index]));
    let mut b: Vec<_> = system.b_input_density().ones().map(|index| witness.inputs[index]).collect();
    b.extend(system.b_aux_density().ones().map(|index| aux[index]));
    [aux, a, b]
}

/// What the bits of the first witnesses give for each base, where there was something else before.
fn keys(gpu: &Gpu, loaded: &Loaded, query: &Query, witnesses: usize) -> Vec<u32> {
    let mut keys = vec![u32::MAX; query.len()];
    let out = gpu.allocate(keys.len(), "keys").expect("memory");
    loaded.stream.upload(out.span(), &keys).expect("upload");
    let witnesses = &loaded.witnesses[..witnesses];
    query.keys(&loaded.stream, &loaded.tables, witnesses, out.span()).expect("keys");
    loaded.stream.download(out.span(), &mut keys).expect("download");
    keys
}

fn full_scalars(gpu: &Gpu, loaded: &Loaded, query: &Query, witness: usize) -> Vec<(u32, Scalar)> {
    let len = query.full_bases().len();
    let out = gpu.allocate::<Words>(len, "scalars").expect("memory");
    query.full_scalars(&loaded.stream, &loaded.witnesses[witness], out.span()).expect("scalars");
    let (mut bases, mut scalars) = (vec![0; len], vec![[0; 8]; len]);
    loaded.stream.download(query.full_bases(), &mut bases).expect("download");
    loaded.stream.download(out.span(), &mut scalars).expect("download");
    let canonical = |words: Words| {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        Scalar::from_repr(bytes.try_into().expect("32 bytes")).expect("below the modulus")
    };
    bases.into_iter().zip(scalars.into_iter().map(canonical)).collect()
}

pub fn compare(name: &str, system: &dyn Constraints, witnesses: &[PartitionWitness], groups: &[usize]) {
    let gpu = gpu();
    let loaded = Loaded::new(&gpu, system, witnesses);
    let expected: Vec<_> = witnesses.iter().map(|witness| expected(system, witness)).collect();
    let queries = [loaded.tables.l(), loaded.tables.a(), loaded.tables.b()];
    for (which, query) in queries.into_iter().enumerate() {
        assert_eq!(query.len(), expected[0][which].len(), "{name}, query {which}");
        for &group in groups {
            let keys = keys(&gpu, &loaded, query, group);
            assert!(keys.iter().all(|&key| key < 1 << group), "{name}: bits of other witnesses");
            for (witness, expected) in expected[..group].iter().enumerate() {
                let bit = |&key: &u32| Scalar::from(u64::from(key >> witness & 1));
                let mut scalars: Vec<_> = keys.iter().map(bit).collect();
                for (base, scalar) in full_scalars(&gpu, &loaded, query, witness) {
                    assert_eq!(keys[base as usize], 0, "{name}: base {base} has a bit and a scalar");
                    scalars[base as usize] = scalar;
                }
                let different = scalars.iter().zip(&expected[which]).position(|(a, b)| a != b);
                assert_eq!(different, None, "{name}, query {which}, witness {witness} of {group}");
            }
        }
    }
}

#[test]
fn every_scalar_of_every_query_is_there_once() {
    let mut rng = StdRng::seed_from_u64(3);
    for (name, system) in systems() {
        let system = system.as_ref();
        let mut witnesses = vec![constant_witness(system, false), constant_witness(system, true)];
        witnesses.resize_with(MAX_WITNESSES, || random_witness(system, &mut rng));
        compare(name, system, &witnesses, &[1, 2, 3, MAX_WITNESSES]);
    }
}

#[test]
fn bits_at_full_width_positions_select_nothing() {
    let systems = systems();
    let system = systems[4].1.as_ref();
    let witness = constant_witness(system, true);
    assert!(system.full_positions().iter().all(|&position| witness.bits.get(position as usize)));
    let gpu = gpu();
    let loaded = Loaded::new(&gpu, system, &[witness]);
    for query in [loaded.tables.l(), loaded.tables.a(), loaded.tables.b()] {
        let ones = keys(&gpu, &loaded, query, 1).iter().filter(|&&key| key == 1).count();
        assert_eq!(ones, query.len() - query.full_bases().len());
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let gpu = gpu();
    let mut rng = StdRng::seed_from_u64(4);
    let systems = systems();
    let system = systems[4].1.as_ref();
    let witnesses: Vec<_> = (0..=MAX_WITNESSES).map(|_| random_witness(system, &mut rng)).collect();
    let loaded = Loaded::new(&gpu, system, &witnesses);
    let query = loaded.tables.l();
    let keys = gpu.allocate::<u32>(query.len(), "keys").expect("memory");
    let class = |witnesses: usize, len: usize| {
        let (witnesses, keys) = (&loaded.witnesses[..witnesses], keys.span().slice(..len));
        query.keys(&loaded.stream, &loaded.tables, witnesses, keys).expect_err("must fail").class()
    };
    assert_eq!(class(MAX_WITNESSES + 1, query.len()), Class::Internal);
    assert_eq!(class(1, query.len() - 1), Class::Internal);
    let out = gpu.allocate::<Words>(query.full_bases().len() - 1, "scalars").expect("memory");
    let error = query.full_scalars(&loaded.stream, &loaded.witnesses[0], out.span()).expect_err("must fail");
    assert_eq!(error.class(), Class::Internal);
}
