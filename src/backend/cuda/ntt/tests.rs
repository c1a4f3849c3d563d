//! Transforms and the quotient against the CPU's, bit for bit.

use std::cell::Cell;

use blstrs::Scalar;
use ff::{Field, PrimeField};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rayon::prelude::*;

use super::{Layout, Ntt, MAX_LOG_SIZE};
use crate::backend::cpu::lane::Lanes;
use crate::backend::cpu::ntt::Ntt as CpuNtt;
use crate::backend::cuda::gpu::{emulated, scalar_words, scalar_words_mut, Gpu, Span, Stream, Words};
use crate::backend::cuda::quotient::Quotient;
use crate::backend::cuda::testing::{gpu, machine};
use crate::error::{Error, Result};
use crate::groth16::domain::Transform;
use crate::groth16::quotient;
use crate::pipeline::Control;

/// Layouts that small sizes do not have by themselves: three passes, short and long parts, tiles that are not full.
const LAYOUTS: [Layout; 6] = [
    Layout { first: 1, second: 9, third: 1 },
    Layout { first: 2, second: 9, third: 2 },
    Layout { first: 3, second: 9, third: 1 },
    Layout { first: 0, second: 2, third: 10 },
    Layout { first: 0, second: 9, third: 2 },
    Layout { first: 0, second: 8, third: 4 },
];

/// Vectors of zeros, ones, r - 1, unit vectors, random values and mixtures.
fn inputs(size: usize, rng: &mut StdRng) -> Vec<Vec<Scalar>> {
    let edges = [Scalar::ZERO, Scalar::ONE, -Scalar::ONE, Scalar::from(u64::MAX), -Scalar::from(2)];
    let mut unit = vec![Scalar::ZERO; size];
    unit[size / 2] = -Scalar::ONE;
    vec![
        vec![Scalar::ZERO; size],
        vec![Scalar::ONE; size],
        vec![-Scalar::ONE; size],
        unit,
        (0..size).map(|_| Scalar::random(&mut *rng)).collect(),
        (0..size).map(|_| edges[rng.gen_range(0..edges.len())]).collect(),
    ]
}

/// Coefficients in the order of the layout.
fn arranged(layout: Layout, coefficients: &[Scalar]) -> Vec<Scalar> {
    (0..layout.size()).map(|position| coefficients[layout.coefficient_at(position)]).collect()
}

fn on_device(gpu: &Gpu, values: &[Scalar], work: impl FnOnce(&Stream, Span<Words>) -> Result<()>) -> Vec<Scalar> {
    let stream = gpu.stream().unwrap();
    let data = gpu.allocate::<Words>(values.len(), "a test's data").unwrap();
    stream.upload(data.span(), scalar_words(values)).unwrap();
    work(&stream, data.span()).unwrap();
    let mut result = vec![Scalar::ZERO; values.len()];
    stream.download(data.span(), scalar_words_mut(&mut result)).unwrap();
    result
}

/// All four transforms of one size and one input.
fn compare(gpu: &Gpu, ntt: &Ntt, cpu: &CpuNtt, input: &[Scalar]) {
    let (layout, control) = (ntt.layout(), Control::new());
    let on_cpu = |transform: fn(&CpuNtt, &mut [Scalar], &Control) -> Result<()>| {
        let mut values = input.to_vec();
        transform(cpu, &mut values, &control).unwrap();
        values
    };
    let coefficients = arranged(layout, input);
    let forward = on_device(gpu, &coefficients, |stream, data| ntt.forward(stream, data));
    assert!(forward == on_cpu(CpuNtt::forward), "forward, {layout:?}");
    let forward = on_device(gpu, &coefficients, |stream, data| ntt.coset_forward(stream, data));
    assert!(forward == on_cpu(CpuNtt::coset_forward), "coset forward, {layout:?}");
    let inverse = on_device(gpu, input, |stream, data| ntt.inverse(stream, data));
    assert!(inverse == arranged(layout, &on_cpu(CpuNtt::inverse)), "inverse, {layout:?}");
    let inverse = on_device(gpu, input, |stream, data| ntt.coset_inverse(stream, data));
    assert!(inverse == arranged(layout, &on_cpu(CpuNtt::coset_inverse)), "coset inverse, {layout:?}");
}

fn compare_quotient(gpu: &Gpu, layout: Layout, a: &[Scalar], b: &[Scalar]) {
    let transform = CpuNtt::new(layout.log_size(), Lanes::Auto).unwrap();
    let mut expected = quotient(&transform, a.to_vec(), b.to_vec(), &Control::new()).unwrap();
    expected.push(Scalar::ZERO);
    let stream = gpu.stream().unwrap();
    let span = || gpu.allocate::<Words>(layout.size(), "a test's data").unwrap();
    let (da, db, dc) = (span(), span(), span());
    let top = gpu.allocate::<Words>(1, "a test's data").unwrap();
    stream.upload(da.span(), scalar_words(a)).unwrap();
    stream.upload(db.span(), scalar_words(b)).unwrap();
    stream.upload(top.span(), &[[1; 8]]).unwrap();
    let quotient = Quotient::with_layout(gpu, layout).unwrap();
    let rests = Cell::new(0);
    let rest = || {
        rests.set(rests.get() + 1);
        Ok(())
    };
    quotient.run(&stream, da.span(), db.span(), dc.span(), top.span(), &rest).unwrap();
    assert!(rests.get() > 5, "{} rests", rests.get());
    let mut h = vec![[0; 8]; layout.size()];
    stream.download(da.span(), &mut h).unwrap();
    let mut last = [[1; 8]];
    stream.download(top.span(), &mut last).unwrap();
    assert_eq!(last, [[0; 8]], "coefficient N - 1, {layout:?}");
    let expected = arranged(layout, &expected);
    assert!(h.iter().zip(&expected).all(|(h, expected)| *h == number(expected)), "{layout:?}");
}

/// Out of Montgomery form, low word first.
fn number(value: &Scalar) -> Words {
    let bytes = value.to_repr();
    std::array::from_fn(|i| u32::from_le_bytes(bytes.as_ref()[4 * i..4 * i + 4].try_into().unwrap()))
}

#[test]
fn positions_and_coefficients_are_inverse_to_each_other_and_the_last_stays_last() {
    for layout in LAYOUTS.into_iter().chain((1..=19).map(|log_size| Layout::new(log_size).unwrap())) {
        let last = layout.size() - 1;
        assert_eq!(layout.position_of_coefficient(last), last);
        let mut seen = vec![false; layout.size()];
        for k in 0..layout.size() {
            let position = layout.position_of_coefficient(k);
            assert_eq!(layout.coefficient_at(position), k);
            assert!(!std::mem::replace(&mut seen[position], true));
        }
    }
    for log_size in 1..=MAX_LOG_SIZE {
        assert_eq!(Layout::new(log_size).unwrap().log_size(), log_size);
    }
    for log_size in [0, MAX_LOG_SIZE + 1] {
        assert_eq!(Layout::new(log_size).unwrap_err().code(), 100);
    }
}

#[test]
fn every_transform_equals_the_cpus() {
    let gpu = gpu();
    let mut rng = StdRng::seed_from_u64(1);
    let layouts = (1..=13).map(|log_size| Layout::new(log_size).unwrap()).chain(LAYOUTS);
    for layout in layouts {
        let ntt = Ntt::with_layout(&gpu, layout).unwrap();
        let cpu = CpuNtt::new(layout.log_size(), Lanes::Auto).unwrap();
        // Edge values do not find more in larger sizes, where the emulator takes its time.
        let skip = if layout.log_size() > 9 { 4 } else { 0 };
        for input in inputs(layout.size(), &mut rng).into_iter().skip(skip) {
            compare(&gpu, &ntt, &cpu, &input);
        }
    }
}

#[test]
fn the_quotient_equals_the_cpus() {
    let gpu = gpu();
    let mut rng = StdRng::seed_from_u64(2);
    for layout in (1..=13).map(|log_size| Layout::new(log_size).unwrap()).chain(LAYOUTS) {
        let (a, b) = (inputs(layout.size(), &mut rng), inputs(layout.size(), &mut rng));
        let skip = if layout.log_size() > 9 { 4 } else { 0 };
        for (a, b) in a.iter().zip(&b).skip(skip) {
            compare_quotient(&gpu, layout, a, b);
        }
    }
}

#[test]
fn values_of_coefficients_are_brought_to_their_positions() {
    let gpu = gpu();
    let stream = gpu.stream().unwrap();
    for layout in [Layout::new(7).unwrap(), LAYOUTS[1]] {
        let values: Vec<[u32; 24]> =
            (0..layout.size() as u32 - 1).map(|k| std::array::from_fn(|i| 24 * k + i as u32)).collect();
        let from = gpu.allocate(values.len(), "a test's data").unwrap();
        let to = gpu.allocate(values.len(), "a test's data").unwrap();
        stream.upload(from.span(), &values).unwrap();
        stream.zero(to.span()).unwrap();
        let cut = 3 * layout.size() / 8 + 1;
        layout.arrange(&stream, to.span(), from.span().slice(..cut), 0).unwrap();
        layout.arrange(&stream, to.span(), from.span().slice(cut..), cut).unwrap();
        let mut arranged = vec![[0; 24]; values.len()];
        stream.download(to.span(), &mut arranged).unwrap();
        assert!(arranged.iter().enumerate().all(|(position, value)| *value == values[layout.coefficient_at(position)]));
        assert_eq!(layout.arrange(&stream, to.span(), from.span(), 1).unwrap_err().code(), 500);
        let bytes = (to.span().cast::<u32>(), from.span().cast::<u32>());
        assert_eq!(layout.arrange(&stream, bytes.0, bytes.1, 0).unwrap_err().code(), 500);
    }
}

#[test]
fn spans_of_another_length_are_refused() {
    let gpu = gpu();
    let stream = gpu.stream().unwrap();
    let data = gpu.allocate::<Words>(33, "a test's data").unwrap();
    let (short, right) = (data.span().slice(..16), data.span().slice(..32));
    let ntt = Ntt::new(&gpu, 5).unwrap();
    assert_eq!(ntt.forward(&stream, short).unwrap_err().code(), 500);
    assert_eq!(ntt.coset_inverse(&stream, data.span()).unwrap_err().code(), 500);
    let quotient = Quotient::new(&gpu, 5).unwrap();
    assert_eq!(
        quotient.run(&stream, right, right, short, data.span().slice(32..), &|| Ok(())).unwrap_err().code(),
        500
    );
    assert_eq!(quotient.run(&stream, right, right, right, right, &|| Ok(())).unwrap_err().code(), 500);
}

#[test]
fn a_quotient_ends_where_its_rest_does() {
    let gpu = gpu();
    let stream = gpu.stream().unwrap();
    let data = gpu.allocate::<Words>(3 * 32 + 1, "a test's data").unwrap();
    let part = |index: usize| data.span().slice(32 * index..32 * (index + 1));
    let left = Cell::new(3);
    let rest = || {
        left.set(left.get() - 1);
        if left.get() == 0 {
            return Err(Error::Cancelled { during: "a test".into() });
        }
        Ok(())
    };
    let quotient = Quotient::new(&gpu, 5).unwrap();
    let outcome = quotient.run(&stream, part(0), part(1), part(2), data.span().slice(96..), &rest);
    assert!(matches!(outcome, Err(Error::Cancelled { .. })), "{outcome:?}");
    assert_eq!(left.get(), 0, "nothing is queued after that");
}

#[test]
fn a_quotients_tables_take_as_much_memory_as_was_said() {
    let Some(_machine) = machine() else { return };
    let gpu = Gpu::open(0).unwrap();
    for log_size in [1, 6, 9, 18, 20] {
        let before = gpu.free_memory().unwrap();
        let quotient = Quotient::new(&gpu, log_size).unwrap();
        assert_eq!(before - gpu.free_memory().unwrap(), Quotient::table_bytes(log_size).unwrap(), "2^{log_size}");
        drop(quotient);
    }
    assert_eq!(Quotient::table_bytes(27).unwrap().div_ceil(1 << 20), 161);
    assert_eq!(Quotient::table_bytes(0).unwrap_err().code(), 100);
}

/// Whether large sizes can be tested.
fn on_real_device() -> bool {
    !emulated::wanted()
}

fn random(size: usize, seed: u64) -> Vec<Scalar> {
    (0..size.div_ceil(1 << 12))
        .into_par_iter()
        .flat_map_iter(|chunk| {
            let mut rng = StdRng::seed_from_u64(seed + chunk as u64);
            (0..size.min(1 << 12)).map(move |_| Scalar::random(&mut rng))
        })
        .collect()
}

#[test]
#[ignore = "needs a real device"]
fn large_transforms_and_quotients_equal_the_cpus() {
    assert!(on_real_device(), "set CUPOREP_TEST_GPU");
    let gpu = gpu();
    for log_size in [19, 22, 23] {
        let layout = Layout::new(log_size).unwrap();
        let (a, b) = (random(layout.size(), 3), random(layout.size(), 1 << 32));
        let cpu = CpuNtt::new(log_size, Lanes::Auto).unwrap();
        compare(&gpu, &Ntt::new(&gpu, log_size).unwrap(), &cpu, &a);
        compare_quotient(&gpu, layout, &a, &b);
    }
}

#[test]
#[ignore = "needs a real device"]
fn the_largest_transforms_return_to_where_they_began() {
    assert!(on_real_device(), "set CUPOREP_TEST_GPU");
    let gpu = gpu();
    for log_size in [27, 28] {
        let values = random(1 << log_size, 5);
        let ntt = Ntt::new(&gpu, log_size).unwrap();
        let result = on_device(&gpu, &values, |stream, data| {
            ntt.inverse(stream, data)?;
            ntt.coset_forward(stream, data)?;
            ntt.coset_inverse(stream, data)?;
            ntt.forward(stream, data)
        });
        assert!(result == values, "2^{log_size}");
    }
}
