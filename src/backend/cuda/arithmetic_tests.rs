//! Every operation of the kernels' fields and curves over all pairs of awkward values, against blst's, or against long
//! multiplication where blst has no such function.

use blst::*;
use blstrs::Scalar;
use ff::Field;
use group::Group;
use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};

use super::curves::{DeviceCurve, G1, G2};
use super::gpu::{args, Gpu, Plain, Words};
use super::testing;

/// The modulus of Fr.
const R: [u32; 8] =
    [0x0000_0001, 0xffff_ffff, 0xfffe_5bfe, 0x53bd_a402, 0x09a1_d805, 0x3339_d808, 0x299d_7d48, 0x73ed_a753];

/// The modulus of Fp.
const P: [u32; 12] = [
    0xffff_aaab,
    0xb9fe_ffff,
    0xb153_ffff,
    0x1eab_fffe,
    0xf6b0_f624,
    0x6730_d2a0,
    0xf385_12bf,
    0x6477_4b84,
    0x434b_acd7,
    0x4b1b_a7b6,
    0x397f_e69a,
    0x1a01_11ea,
];

// Operations by the numbers of kernels/tests/arithmetic.cu.
const ADD: u32 = 0;
const SUB: u32 = 1;
const MUL: u32 = 2;
const SQR: u32 = 3;
const DBL: u32 = 4;
const NEG: u32 = 5;
const INVERSE: u32 = 6;
const CHAINED_MUL: u32 = 7;
const REDUCED_MUL: u32 = 8;
const REDUCED_SQR: u32 = 9;
const CANONICAL: u32 = 10;
const MONTGOMERY: u32 = 11;

// Long arithmetic, limb by limb.

fn add<const N: usize>(a: &[u32; N], b: &[u32; N]) -> ([u32; N], bool) {
    let (mut r, mut carry) = ([0; N], 0);
    for i in 0..N {
        let sum = u64::from(a[i]) + u64::from(b[i]) + carry;
        (r[i], carry) = (sum as u32, sum >> 32);
    }
    (r, carry != 0)
}

fn sub<const N: usize>(a: &[u32; N], b: &[u32; N]) -> ([u32; N], bool) {
    let (mut r, mut borrow) = ([0; N], 0);
    for i in 0..N {
        let difference = i64::from(a[i]) - i64::from(b[i]) - borrow;
        (r[i], borrow) = (difference as u32, i64::from(difference < 0));
    }
    (r, borrow != 0)
}

fn mul(a: &[u32], b: &[u32]) -> Vec<u32> {
    let mut r = vec![0; a.len() + b.len()];
    for (i, &x) in a.iter().enumerate() {
        let mut carry = 0;
        for (j, &y) in b.iter().enumerate() {
            let sum = u64::from(x) * u64::from(y) + u64::from(r[i + j]) + carry;
            (r[i + j], carry) = (sum as u32, sum >> 32);
        }
        r[i + b.len()] = carry as u32;
    }
    r
}

/// Zero, one, two, powers of two and their neighbours, all ones, and numbers around the modulus; then random ones.
fn numbers<const N: usize>(modulus: &[u32; N], rng: &mut StdRng) -> Vec<[u32; N]> {
    let small = |value: u32| std::array::from_fn(|i| if i == 0 { value } else { 0 });
    let mut numbers: Vec<[u32; N]> = vec![small(0), small(1), small(2), [u32::MAX; N]];
    for bit in [31, 32, 33, 63, 64, 32 * N - 32, 32 * N - 2, 32 * N - 1] {
        let power: [u32; N] = std::array::from_fn(|i| if i == bit / 32 { 1 << (bit % 32) } else { 0 });
        numbers.extend([power, sub(&power, &small(1)).0]);
    }
    for distance in [0, 1, 2] {
        numbers.extend([sub(modulus, &small(distance)).0, add(modulus, &small(distance)).0]);
    }
    // Limbs of all ones and of zeros by turns, and half of the modulus.
    numbers.extend([std::array::from_fn(|i| if i % 2 == 0 { u32::MAX } else { 0 })]);
    numbers.extend([std::array::from_fn(|i| if i % 2 == 1 { u32::MAX >> 2 } else { 0 })]);
    numbers.extend([std::array::from_fn(|i| modulus[i] >> 1 | modulus.get(i + 1).map_or(0, |next| next << 31))]);
    numbers.extend((0..8).map(|_| std::array::from_fn(|_| rng.next_u32())));
    numbers
}

/// Those below the modulus, and Montgomery's one, R mod m.
fn elements<const N: usize>(modulus: &[u32; N], one: [u32; N], rng: &mut StdRng) -> Vec<[u32; N]> {
    let mut elements = numbers(modulus, rng);
    for _ in 0..8 {
        let mut element: [u32; N] = std::array::from_fn(|_| rng.next_u32());
        element[N - 1] %= modulus[N - 1];
        elements.push(element);
    }
    elements.push(one);
    elements.retain(|element| sub(element, modulus).1);
    elements
}

/// All pairs.
fn pairs<T: Copy>(values: &[T]) -> (Vec<T>, Vec<T>) {
    values.iter().flat_map(|&a| values.iter().map(move |&b| (a, b))).unzip()
}

/// What a kernel makes of two lists.
fn ask<A: Plain, B: Plain, C: Plain>(gpu: &Gpu, kernel: &'static str, a: &[A], b: &[B], none: C, code: u32) -> Vec<C> {
    let stream = gpu.stream().unwrap();
    let (left, right) = (gpu.allocate(a.len(), "left").unwrap(), gpu.allocate(b.len(), "right").unwrap());
    let out = gpu.allocate::<C>(a.len(), "out").unwrap();
    stream.upload(left.span(), a).unwrap();
    stream.upload(right.span(), b).unwrap();
    let args = args![left.span(), right.span(), out.span(), a.len() as u32, code];
    stream.launch(kernel, a.len().div_ceil(128) as u32, 128, 0, &args).unwrap();
    let mut found = vec![none; a.len()];
    stream.download(out.span(), &mut found).unwrap();
    found
}

fn limbs<const N: usize, const DOUBLE: usize>(kernel: &'static str, modulus: &[u32; N]) {
    let gpu = testing::gpu();
    let (a, b) = pairs(&numbers(modulus, &mut StdRng::seed_from_u64(1)));
    let with_mark = |(low, mark): ([u32; N], bool), mask: u32| {
        let mut r = [0; DOUBLE];
        r[..N].copy_from_slice(&low);
        r[N] = if mark { mask } else { 0 };
        r
    };
    let product = |a: &[u32; N], b: &[u32; N]| <[u32; DOUBLE]>::try_from(mul(a, b)).unwrap();
    // The chains first, then the plain version.
    for code in 0..8 {
        let found = ask(&gpu, kernel, &a, &b, [0u32; DOUBLE], code);
        for ((a, b), found) in a.iter().zip(&b).zip(found) {
            let expected = match code / 2 {
                0 => with_mark(add(a, b), 1),
                1 => with_mark(sub(a, b), u32::MAX),
                2 => product(a, b),
                _ => product(a, a),
            };
            assert_eq!(found, expected, "{kernel} {code} of {a:x?} and {b:x?}");
        }
    }
}

#[test]
fn sums_and_products_of_limbs() {
    limbs::<8, 16>("arithmetic_limbs8", &R);
    limbs::<12, 24>("arithmetic_limbs12", &P);
}

/// Calls a function of blst that writes its result.
macro_rules! blst {
    ($function:ident($($argument:expr),*)) => {{
        let mut result = Default::default();
        // SAFETY: the arguments are values of the types that the function takes.
        unsafe { $function(&mut result, $($argument),*) };
        result
    }};
}

/// Elements of blst as limbs and back.
trait Limbs: Sized {
    type Limbs: Plain + PartialEq + std::fmt::Debug;
    fn limbs(&self) -> Self::Limbs;
    fn of(limbs: &Self::Limbs) -> Self;
}

macro_rules! limbs {
    ($type:ty, $count:literal) => {
        impl Limbs for $type {
            type Limbs = [u32; $count];

            fn limbs(&self) -> Self::Limbs {
                // SAFETY: plain integers of the same size, low word first.
                unsafe { std::mem::transmute_copy::<$type, Self::Limbs>(self) }
            }

            fn of(limbs: &Self::Limbs) -> Self {
                const { assert!(size_of::<$type>() == size_of::<[u32; $count]>()) };
                // SAFETY: as above.
                unsafe { std::mem::transmute_copy::<Self::Limbs, $type>(limbs) }
            }
        }
    };
}
limbs!(blst_fr, 8);
limbs!(blst_fp, 12);
limbs!(blst_fp2, 24);

/// The bytes of a number, low one first.
fn bytes(limbs: &[u32]) -> Vec<u8> {
    limbs.iter().flat_map(|limb| limb.to_le_bytes()).collect()
}

fn fr(a: &blst_fr, b: &blst_fr, code: u32) -> blst_fr {
    match code {
        ADD => blst!(blst_fr_add(a, b)),
        SUB => blst!(blst_fr_sub(a, b)),
        MUL | CHAINED_MUL | REDUCED_MUL => blst!(blst_fr_mul(a, b)),
        SQR | REDUCED_SQR => blst!(blst_fr_sqr(a)),
        DBL => blst!(blst_fr_add(a, a)),
        NEG => blst!(blst_fr_cneg(a, true)),
        INVERSE if *a == blst_fr::default() => *a,
        INVERSE => blst!(blst_fr_eucl_inverse(a)),
        CANONICAL => {
            let mut scalar = blst_scalar::default();
            // SAFETY: writes the scalar.
            unsafe { blst_scalar_from_fr(&mut scalar, a) };
            let word = |i: usize| u32::from_le_bytes(scalar.b[4 * i..4 * i + 4].try_into().unwrap());
            blst_fr::of(&std::array::from_fn(word))
        }
        _ => {
            let scalar = blst_scalar { b: bytes(&a.limbs()).try_into().unwrap() };
            blst!(blst_fr_from_scalar(&scalar))
        }
    }
}

fn fp(a: &blst_fp, b: &blst_fp, code: u32) -> blst_fp {
    match code {
        ADD => blst!(blst_fp_add(a, b)),
        SUB => blst!(blst_fp_sub(a, b)),
        MUL | CHAINED_MUL | REDUCED_MUL => blst!(blst_fp_mul(a, b)),
        SQR | REDUCED_SQR => blst!(blst_fp_sqr(a)),
        DBL => blst!(blst_fp_add(a, a)),
        NEG => blst!(blst_fp_cneg(a, true)),
        INVERSE if *a == blst_fp::default() => *a,
        INVERSE => blst!(blst_fp_eucl_inverse(a)),
        CANONICAL => {
            let mut bytes = [0u8; 48];
            // SAFETY: writes 48 bytes.
            unsafe { blst_lendian_from_fp(bytes.as_mut_ptr(), a) };
            let word = |i: usize| u32::from_le_bytes(bytes[4 * i..4 * i + 4].try_into().unwrap());
            blst_fp::of(&std::array::from_fn(word))
        }
        _ => blst!(blst_fp_from_lendian(bytes(&a.limbs()).as_ptr())),
    }
}

fn fp2(a: &blst_fp2, b: &blst_fp2, code: u32) -> blst_fp2 {
    match code {
        ADD => blst!(blst_fp2_add(a, b)),
        SUB => blst!(blst_fp2_sub(a, b)),
        MUL => blst!(blst_fp2_mul(a, b)),
        SQR => blst!(blst_fp2_sqr(a)),
        DBL => blst!(blst_fp2_add(a, a)),
        NEG => blst!(blst_fp2_cneg(a, true)),
        _ if *a == blst_fp2::default() => *a,
        _ => blst!(blst_fp2_eucl_inverse(a)),
    }
}

/// Compares operations over all pairs of elements.
fn field<T: Limbs>(
    kernel: &'static str,
    elements: &[T::Limbs],
    codes: std::ops::RangeInclusive<u32>,
    expected: fn(&T, &T, u32) -> T,
) {
    let gpu = testing::gpu();
    let (a, b) = pairs(elements);
    for code in codes {
        // Inversions take long, and have one operand.
        let (a, b) = if code == INVERSE { (elements, elements) } else { (&a[..], &b[..]) };
        let found = ask(&gpu, kernel, a, b, elements[0], code);
        for ((a, b), found) in a.iter().zip(b).zip(found) {
            let expected = expected(&T::of(a), &T::of(b), code).limbs();
            assert_eq!(found, expected, "{kernel} {code} of {a:x?} and {b:x?}");
        }
    }
}

fn fp_elements(rng: &mut StdRng) -> Vec<[u32; 12]> {
    let one: blst_fp = blst!(blst_fp_from_lendian(bytes(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).as_ptr()));
    elements(&P, one.limbs(), rng)
}

#[test]
fn the_scalar_field() {
    let one = super::gpu::scalar_words(&[Scalar::ONE])[0];
    let elements = elements(&R, one, &mut StdRng::seed_from_u64(2));
    field("arithmetic_fr", &elements, ADD..=MONTGOMERY, fr);
}

#[test]
fn the_base_field() {
    let elements = fp_elements(&mut StdRng::seed_from_u64(3));
    field("arithmetic_fp", &elements, ADD..=MONTGOMERY, fp);
    field("arithmetic_fp_called", &elements, ADD..=INVERSE, fp);
}

#[test]
fn its_quadratic_extension() {
    let coordinates = fp_elements(&mut StdRng::seed_from_u64(4));
    // Every coordinate in both places, beside different others.
    let pair = |(i, c0): (usize, &[u32; 12])| {
        let c1 = coordinates[i * 7 % coordinates.len()];
        let both: [u32; 24] = std::array::from_fn(|limb| if limb < 12 { c0[limb] } else { c1[limb - 12] });
        both
    };
    let mut elements: Vec<[u32; 24]> = coordinates.iter().enumerate().map(pair).collect();
    elements.extend(
        elements.clone().iter().map(|element| -> [u32; 24] { std::array::from_fn(|limb| element[(limb + 12) % 24]) }),
    );
    field("arithmetic_fp2", &elements, ADD..=INVERSE, fp2);
}

/// floor(w 2^256 / r), bit by bit.
fn quotient(w: &[u32; 8]) -> [u32; 8] {
    let (mut rest, mut quotient) = (*w, [0; 8]);
    for bit in (0..256).rev() {
        rest = add(&rest, &rest).0;
        let (less, below) = sub(&rest, &R);
        if !below {
            rest = less;
            quotient[bit / 32] |= 1 << (bit % 32);
        }
    }
    quotient
}

#[test]
fn products_with_constants() {
    let gpu = testing::gpu();
    let mut rng = StdRng::seed_from_u64(5);
    let one = super::gpu::scalar_words(&[Scalar::ONE])[0];
    let constants = elements(&R, one, &mut rng);
    // Any number below 2^256.
    let (x, w): (Vec<Words>, Vec<Words>) =
        numbers(&R, &mut rng).iter().flat_map(|&x| constants.iter().map(move |&w| (x, w))).unzip();
    let factors: Vec<[u32; 16]> = w
        .iter()
        .map(|w| {
            let quotient = quotient(w);
            std::array::from_fn(|i| if i < 8 { w[i] } else { quotient[i - 8] })
        })
        .collect();
    for code in 0..3 {
        let found = ask(&gpu, "arithmetic_shoup", &x, &factors, [0u32; 8], code);
        for ((x, w), mut found) in x.iter().zip(&w).zip(found) {
            // x w R^-1 R: blst reduces wider numbers than r too.
            let scalar = |limbs: &[u32; 8]| -> blst_fr {
                let mut scalar = blst_scalar::default();
                // SAFETY: reads 32 bytes; the number is reduced.
                unsafe { blst_scalar_from_le_bytes(&mut scalar, bytes(limbs).as_ptr(), 32) };
                blst!(blst_fr_from_scalar(&scalar))
            };
            let expected = fr(&fr(&scalar(x), &scalar(w), MUL), &blst_fr::default(), CANONICAL).limbs();
            // The lazy ones may be above by the modulus.
            if code > 0 && !sub(&found, &R).1 {
                found = sub(&found, &R).0;
            }
            assert_eq!(found, expected, "{code} of {x:x?} and {w:x?}");
        }
    }
}

/// Infinity, multiples of a generator, their opposites, and others.
fn points<G: Group<Scalar = Scalar>>() -> Vec<G> {
    let small = [1u64, 2, 3, 4].map(|factor| G::generator() * Scalar::from(factor));
    let mut rng = StdRng::seed_from_u64(6);
    let mut points = vec![G::identity()];
    points.extend(small);
    points.extend((0..3).map(|_| G::generator() * Scalar::random(&mut rng)));
    points.extend(points.clone().into_iter().skip(1).map(|point| -point));
    points
}

/// Compares sums of all pairs of points, in coordinates with and without denominators.
fn curve<C: DeviceCurve, S: Plain>(kernel: &'static str, one: S, other: [S; 2]) {
    let gpu = testing::gpu();
    let stream = gpu.stream().unwrap();
    let (p, q) = pairs(&points::<C::Projective>());
    let upload = |points: &[C::Projective]| {
        let words: Vec<C::Affine> = points.iter().map(|&point| C::words_of(point)).collect();
        let buffer = gpu.allocate(words.len(), "points").unwrap();
        stream.upload(buffer.span(), &words).unwrap();
        buffer
    };
    let (left, right, out) = (upload(&p), upload(&q), gpu.allocate::<C::Affine>(p.len(), "sums").unwrap());
    let scales = gpu.allocate::<S>(2, "scales").unwrap();
    for (scale, code) in [[one, one], other].iter().flat_map(|scale| [0, 1, 2].map(|code| (scale, code))) {
        stream.upload(scales.span(), scale).unwrap();
        let args = args![left.span(), right.span(), scales.span(), out.span(), p.len() as u32, code];
        stream.launch(kernel, p.len().div_ceil(128) as u32, 128, 0, &args).unwrap();
        let mut found = vec![C::words_of(p[0]); p.len()];
        stream.download(out.span(), &mut found).unwrap();
        for (index, found) in found.iter().enumerate() {
            let expected = if code < 2 { p[index] + q[index] } else { p[index].double() };
            assert_eq!(*found, C::words_of(expected), "{kernel} {code}, pair {index}");
        }
    }
}

#[test]
fn sums_of_points() {
    let elements = fp_elements(&mut StdRng::seed_from_u64(7));
    let one: [u32; 12] = *elements.last().unwrap();
    let [.., u, v, _] = elements[..] else { panic!("too few elements") };
    curve::<G1, _>("arithmetic_g1", one, [u, v]);
    let wide = |c0: [u32; 12], c1: [u32; 12]| -> [u32; 24] {
        std::array::from_fn(|i| if i < 12 { c0[i] } else { c1[i - 12] })
    };
    let zero = [0; 12];
    curve::<G2, _>("arithmetic_g2", wide(one, zero), [wide(u, v), wide(v, one)]);
}
