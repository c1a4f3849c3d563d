//! Times of evaluations, beside what memory alone would take.

use blstrs::Scalar;
use ff::Field;
use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};

use crate::backend::cuda::bench::{median, Report};
use crate::backend::cuda::gpu::{Gpu, Words};
use crate::backend::cuda::ntt::bench::BYTES;
use crate::backend::cuda::shape::ShapeTables;
use crate::backend::cuda::witness::{DeviceWitness, Staging};
use crate::backend::Figure;
use crate::error::Result;
use crate::r1cs::{Bitmap, Constraints, Matrix, PartitionWitness};

/// Any values. They satisfy nothing.
fn witness(system: &dyn Constraints) -> PartitionWitness {
    let mut rng = StdRng::seed_from_u64(1);
    let mut bits = Bitmap::zeros(system.num_aux());
    let mut word = 0;
    for index in 0..bits.len() {
        word = if index % 64 == 0 { rng.next_u64() } else { word >> 1 };
        if word & 1 == 1 {
            bits.set(index);
        }
    }
    system.full_positions().iter().for_each(|&position| bits.clear(position as usize));
    let mut inputs = vec![Scalar::ONE];
    inputs.extend((1..system.num_inputs()).map(|_| Scalar::random(&mut rng)));
    let full = system.full_positions().iter().map(|_| Scalar::random(&mut rng)).collect();
    PartitionWitness { inputs, bits, full }
}

/// Times what a proof makes of a witness before transforms and sums.
pub(in crate::backend::cuda) fn evaluations(
    gpu: &Gpu,
    name: &str,
    system: &dyn Constraints,
    report: Report<'_>,
) -> Result<()> {
    let stream = gpu.stream()?;
    let tables = ShapeTables::upload(gpu, &stream, system)?;
    let sizes = tables.sizes();
    let room = gpu.allocate(sizes.witness_words(), "a witness")?;
    let place = DeviceWitness::new(room.span(), sizes);
    Staging::new(gpu, sizes)?.upload(&stream, &witness(system), &place)?;
    // Tables and witness once, and what is made of them.
    let read = (tables.bytes() + room.span().bytes() as u64) as f64;
    let mut figure = |what: &str, milliseconds: f64, bytes: f64| {
        report(Figure { name: format!("{what}, {name}"), milliseconds, floor: bytes / BYTES })
    };
    let out = gpu.allocate::<Words>(1 << sizes.log_domain, "rows")?;
    for matrix in [Matrix::A, Matrix::B] {
        let work = || tables.evaluate(&stream, matrix, &place, out.span());
        figure(&format!("{matrix:?} w"), median(gpu, &stream, work)?, read / 2.0 + out.span().bytes() as f64)?;
    }
    for (query, what) in [(tables.l(), "l"), (tables.a(), "a"), (tables.b(), "b")] {
        let keys = gpu.allocate::<u32>(query.len(), "keys")?;
        let work = || query.keys(&stream, &tables, &[place], keys.span());
        // The witness's bits, the query's and those of full-width positions.
        let bytes = keys.span().bytes() + 3 * sizes.aux / 8;
        figure(&format!("keys of {what}"), median(gpu, &stream, work)?, bytes as f64)?;
        let scalars = gpu.allocate::<Words>(query.full_bases().len(), "scalars")?;
        let work = || query.full_scalars(&stream, &place, scalars.span());
        figure(&format!("full-width scalars of {what}"), median(gpu, &stream, work)?, (scalars.len() * 68) as f64)?;
    }
    Ok(())
}

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use super::*;
    use crate::backend::cuda::shape::testing::systems;
    use crate::backend::cuda::testing;

    #[test]
    fn figures_are_made_for_small_systems() {
        let gpu = testing::gpu();
        let (_, system) = systems().pop().unwrap();
        let mut figures = Vec::new();
        let mut keep = |figure| {
            figures.push(figure);
            Ok(())
        };
        evaluations(&gpu, "three blocks", &*system, &mut keep).unwrap();
        assert_eq!(figures.len(), 8);
        assert!(figures.iter().all(|figure| figure.floor > 0.0 && figure.milliseconds >= 0.0), "{figures:?}");
    }
}
