//! Templates of small circuits, of blocks put together by hand, and from hostile files.

use std::fs;
use std::path::PathBuf;

use bellperson::gadgets::boolean::{AllocatedBit, Boolean};
use bellperson::{Circuit, ConstraintSystem, SynthesisError};
use blstrs::Scalar;
use ff::Field;
use sha2::{Digest, Sha256};

use super::block::{Block, Call, Expansion};
use super::{Pass, Templates};
use crate::error::{Class, Error, Result};
use crate::pipeline::{CancelToken, Control};
use crate::r1cs::layout::expand;
use crate::r1cs::rows::{Rows, INPUT, ONE};
use crate::r1cs::testing::{Mixed, Sha};
use crate::r1cs::{Bitmap, Matrix, PartitionWitness, R1cs, ShapeStore};

const MATRICES: [Matrix; 3] = [Matrix::A, Matrix::B, Matrix::C];
const KEY: &str = "a repeated circuit";

/// What the blocks of a [`Repeated`] circuit are made of.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Few rows over the head's variables, own ones and an own input.
    Small,
    /// Every gadget, and hashes of the same and of other kinds that share variables with each other.
    Large,
    /// The second block has a constraint more.
    Longer,
    /// The second block has another coefficient.
    Other,
}

/// A head and some blocks.
#[derive(Clone)]
struct Repeated {
    times: usize,
    kind: Kind,
    /// All values follow from this number, or there are none.
    seed: Option<u64>,
}

fn repeated(times: usize, kind: Kind) -> Repeated {
    Repeated { times, kind, seed: None }
}

impl Circuit<Scalar> for Repeated {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let number = |add: u64| self.seed.map(|seed| Scalar::from(seed + add)).ok_or(SynthesisError::AssignmentMissing);
        let shared = cs.alloc(|| "shared", || number(0))?;
        let public = cs.alloc_input(|| "public", || number(0))?;
        cs.enforce(|| "public", |lc| lc + shared, |lc| lc + CS::one(), |lc| lc + public);
        for index in 0..self.times {
            let mut cs = cs.namespace(|| format!("block {index}"));
            let own = cs.alloc(|| "own", || number(index as u64))?;
            let add = if self.kind == Kind::Other && index == 1 { 2 } else { index as u64 };
            let input =
                cs.alloc_input(|| "input", || Ok(number(index as u64)? * number(0)? + Scalar::from(3) * number(0)?))?;
            let three = Scalar::from(if self.kind == Kind::Other { 3 + add } else { 3 });
            cs.enforce(|| "product", |lc| lc + own + (three, CS::one()), |lc| lc + shared, |lc| lc + input);
            if self.kind == Kind::Longer && index == 1 {
                cs.enforce(|| "zero", |lc| lc, |lc| lc, |lc| lc);
            }
            let bit =
                AllocatedBit::alloc(cs.namespace(|| "bit"), self.seed.map(|seed| (seed + index as u64) % 3 == 1))?;
            if self.kind == Kind::Large {
                hashes(&mut cs, &Boolean::from(bit), self.seed.map(|seed| (seed + index as u64) as u8))?;
            }
        }
        Ok(())
    }
}

/// Two hashes that are alike up to the variables and one that is not, around gadgets of all kinds.
fn hashes<CS: ConstraintSystem<Scalar>>(cs: &mut CS, bit: &Boolean, seed: Option<u8>) -> Result<(), SynthesisError> {
    let preimage = seed.map(|seed| [seed; 64]);
    Sha { preimage }.synthesize(&mut cs.namespace(|| "first"))?;
    let mixed = seed.map_or_else(Mixed::default, |seed| {
        Mixed::assigned([true, seed % 2 == 0, true], [Scalar::from(7), Scalar::from(u64::from(seed))], [1, seed.into()])
    });
    mixed.synthesize(&mut cs.namespace(|| "mixed"))?;
    Sha { preimage: preimage.map(|_| [3; 64]) }.synthesize(&mut cs.namespace(|| "second"))?;
    let mut bits = vec![bit.clone(); 8];
    bits.extend([true, false, true, true, false, false, true, false].map(Boolean::constant));
    bellperson::gadgets::sha256::sha256(cs.namespace(|| "third"), &bits).map(|_| ())
}

fn record(times: usize, kind: Kind) -> Result<Templates> {
    let control = Control::new();
    Templates::record(times, |count, pass: &mut Pass<'_>| pass.run(repeated(count, kind)), &control)
}

fn recorded(times: usize, kind: Kind) -> R1cs {
    R1cs::record(repeated(times, kind), &Control::new()).expect("recording")
}

#[test]
fn templates_expand_to_the_recorded_rows_for_any_number_of_blocks() {
    for kind in [Kind::Small, Kind::Large] {
        for times in [1, 2, 3, 5] {
            let (templates, r1cs) = (record(times, kind).expect("templates"), recorded(times, kind));
            assert!(templates.expand(&Control::new()).expect("expansion") == r1cs, "{times}");
            let counts = (templates.num_inputs(), templates.num_aux(), templates.num_rows(), templates.log_domain());
            assert_eq!(counts, (r1cs.num_inputs(), r1cs.num_aux(), r1cs.num_rows(), r1cs.log_domain()));
            assert_eq!(MATRICES.map(|m| templates.num_entries(m)), MATRICES.map(|m| r1cs.num_entries(m)));
            assert_eq!(templates.first_difference(repeated(times, kind), &Control::new()).expect("synthesis"), None);
            for other in [times + 1, times + 2] {
                let difference = templates.first_difference(repeated(other, kind), &Control::new());
                assert!(difference.expect("synthesis").is_some());
            }
        }
    }
}

#[test]
fn what_is_repeated_is_stored_once() {
    let (templates, r1cs) = (record(5, Kind::Large).expect("templates"), recorded(5, Kind::Large));
    // Five blocks, and two of the three hashes in each are the same.
    assert!(templates.num_blocks() >= 3);
    assert!(templates.num_stored_rows() * 15 < r1cs.num_rows() * 2 + 15 * 1000, "{}", templates.num_stored_rows());
}

#[test]
fn evaluation_is_that_of_the_rows() {
    let (templates, r1cs) = (record(3, Kind::Large).expect("templates"), recorded(3, Kind::Large));
    let control = Control::new();
    let circuit = Repeated { seed: Some(4), ..repeated(3, Kind::Large) };
    let real = r1cs.assign(circuit, &control).expect("assignment");
    assert_eq!(templates.first_unsatisfied(&real, &control).expect("check"), None);
    let mut witnesses = vec![real.clone()];
    for index in (0..r1cs.num_aux()).step_by(4999) {
        let mut wrong = real.clone();
        match r1cs.full_positions().binary_search(&(index as u32)) {
            Ok(position) => wrong.full[position] += Scalar::ONE,
            Err(_) if wrong.bits.get(index) => wrong.bits.clear(index),
            Err(_) => wrong.bits.set(index),
        }
        witnesses.push(wrong);
    }
    for witness in &witnesses {
        for matrix in MATRICES {
            let mut out = [5, 6].map(|value| vec![Scalar::from(value); 1 << r1cs.log_domain()]);
            r1cs.evaluate(matrix, witness, &mut out[0], &control).expect("evaluation");
            templates.evaluate(matrix, witness, &mut out[1], &control).expect("evaluation");
            assert!(out[0] == out[1], "{matrix:?}");
        }
        let found = templates.first_unsatisfied(witness, &control).expect("check");
        assert_eq!(found, r1cs.first_unsatisfied(witness, &control).expect("check"));
    }
}

#[test]
fn the_layout_is_that_of_the_recorded_rows() {
    for kind in [Kind::Small, Kind::Large] {
        let (templates, r1cs) = (record(3, kind).expect("templates"), recorded(3, kind));
        let (layout, expected) = (templates.layout(), r1cs.layout());
        for matrix in MATRICES {
            let expected = expand(&expected, matrix, &expected.runs[0]);
            let mut row = 0;
            for run in &layout.runs {
                assert_eq!(run.row as usize, row);
                let found = expand(&layout, matrix, run);
                row += found.len();
                assert!(found == expected[run.row as usize..row], "{matrix:?} from {}", run.row);
            }
            assert_eq!(row, r1cs.num_rows());
        }
    }
}

#[test]
fn wrong_sizes_are_refused_and_a_cancel_stops() {
    let templates = record(2, Kind::Small).expect("templates");
    let token = CancelToken::new();
    token.cancel();
    let cancelled = Control::new().with_cancel(token);
    let record = |count: usize, pass: &mut Pass<'_>| pass.run(repeated(count, Kind::Small));
    assert_eq!(Templates::record(2, record, &cancelled).expect_err("must fail").class(), Class::Cancelled);
    assert_eq!(templates.expand(&cancelled).expect_err("must fail").class(), Class::Cancelled);
    let good = any_witness(&templates);
    let mut out = vec![Scalar::ZERO; 1 << templates.log_domain()];
    let mut class = |witness: &PartitionWitness, places: usize, control: &Control| {
        templates.evaluate(Matrix::A, witness, &mut out[..places], control).expect_err("must fail").class()
    };
    let domain = 1 << templates.log_domain();
    assert_eq!(class(&good, domain - 1, &Control::new()), Class::Internal);
    assert_eq!(class(&good, domain, &cancelled), Class::Cancelled);
    assert_eq!(templates.first_unsatisfied(&good, &cancelled).expect_err("must fail").class(), Class::Cancelled);
    let mut short = good.clone();
    short.full.pop();
    assert_eq!(class(&short, domain, &Control::new()), Class::Internal);
    let mut without_one = good;
    without_one.inputs[0] = Scalar::ZERO;
    assert_eq!(class(&without_one, domain, &Control::new()), Class::Input);
}

#[test]
fn blocks_that_are_not_alike_are_refused() {
    for kind in [Kind::Longer, Kind::Other] {
        let error = record(3, kind).expect_err("must fail");
        assert!(matches!(error, Error::Argument { name: "circuit", .. }), "{error}");
        assert!(error.to_string().contains("not alike"), "{error}");
    }
    let error = record(0, Kind::Small).expect_err("must fail");
    assert!(matches!(error, Error::Argument { name: "times", .. }), "{error}");
    let forgotten = Templates::record(2, |_, _: &mut Pass<'_>| Ok(()), &Control::new()).expect_err("must fail");
    assert_eq!(forgotten.class(), Class::Internal);
}

/// A store with one directory, and where it keeps the templates of `KEY`.
fn store() -> (tempfile::TempDir, ShapeStore, PathBuf) {
    let directory = tempfile::tempdir().expect("directory");
    let store = ShapeStore::new(vec![directory.path().to_path_buf()]);
    let path = directory.path().join(ShapeStore::file_name::<Templates>(KEY));
    (directory, store, path)
}

#[test]
fn templates_are_read_back_equal_and_apart_from_recorded_rows() {
    let (_directory, store, _) = store();
    let control = Control::new();
    let (templates, r1cs) = (record(3, Kind::Large).expect("templates"), recorded(3, Kind::Small));
    assert!(store.keep(KEY, &templates, &control).expect("keep"));
    assert_eq!(store.load::<R1cs>(KEY, &control).expect("load"), None);
    assert!(store.keep(KEY, &r1cs, &control).expect("keep"));
    assert!(store.load::<Templates>(KEY, &control).expect("load") == Some(templates));
    assert!(store.load::<R1cs>(KEY, &control).expect("load") == Some(r1cs));
}

#[test]
fn a_cut_longer_altered_or_foreign_file_is_not_taken() {
    let (directory, store, path) = store();
    let control = Control::new();
    let templates = record(2, Kind::Small).expect("templates");
    store.keep(KEY, &templates, &control).expect("keep");
    let whole = fs::read(&path).expect("file");
    let refused = |bytes: &[u8], what: &str| {
        fs::write(&path, bytes).expect("write");
        assert_eq!(store.load::<Templates>(KEY, &control).expect("load"), None, "{what}");
    };
    for len in 0..whole.len() {
        refused(&whole[..len], &format!("cut at {len}"));
    }
    refused(&[whole.as_slice(), &[0]].concat(), "longer");
    for index in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[index] ^= 0x41;
        refused(&flipped, &format!("byte {index}"));
    }
    // A good file of another circuit, and of the same under another form.
    store.keep("another circuit!!!", &templates, &control).expect("keep");
    let other = directory.path().join(ShapeStore::file_name::<Templates>("another circuit!!!"));
    refused(&fs::read(other).expect("file"), "another key");
    store.keep(KEY, &recorded(2, Kind::Small), &control).expect("keep");
    let rows = directory.path().join(ShapeStore::file_name::<R1cs>(KEY));
    refused(&fs::read(rows).expect("file"), "recorded rows");
    fs::write(&path, &whole).expect("write");
    assert_eq!(store.load(KEY, &control).expect("load"), Some(templates));
}

#[test]
fn hostile_content_under_a_good_digest_never_reads_out_of_bounds() {
    let (_directory, store, path) = store();
    let control = Control::new();
    store.keep(KEY, &record(2, Kind::Small).expect("templates"), &control).expect("keep");
    let whole = fs::read(&path).expect("file");
    let content = whole.len() - 32;
    let (mut refused, mut taken) = (0, 0);
    // All parts behind the key are words.
    for place in (16 + KEY.len()..content).step_by(4) {
        let word = u32::from_le_bytes(whole[place..place + 4].try_into().expect("four bytes"));
        let near = [word.wrapping_add(1), word.wrapping_sub(1), word ^ INPUT, (word + 1) ^ INPUT];
        for value in [[0, 1, 2, 3], [5, 1000, u32::MAX, INPUT], near].concat() {
            let mut hostile = whole[..content].to_vec();
            hostile[place..place + 4].copy_from_slice(&value.to_le_bytes());
            let digest = Sha256::digest(&hostile);
            hostile.extend_from_slice(&digest);
            fs::write(&path, hostile).expect("write");
            let Some(templates) = store.load::<Templates>(KEY, &control).expect("load") else {
                refused += 1;
                continue;
            };
            taken += 1;
            let witness = any_witness(&templates);
            let mut out = vec![Scalar::ZERO; 1 << templates.log_domain()];
            for matrix in MATRICES {
                templates.evaluate(matrix, &witness, &mut out, &control).expect("evaluation");
            }
            templates.first_unsatisfied(&witness, &control).expect("check");
            let r1cs = templates.expand(&control).expect("expansion");
            assert!(r1cs.a_aux_density() == templates.a_aux_density());
        }
    }
    assert!(refused > 500 && taken > 100, "{refused} {taken}");
}

fn any_witness(templates: &Templates) -> PartitionWitness {
    PartitionWitness {
        inputs: vec![Scalar::ONE; templates.num_inputs()],
        bits: Bitmap::zeros(templates.num_aux()),
        full: vec![Scalar::from(5); templates.full_positions().len()],
    }
}

/// Empty rows.
fn empty(count: usize, inputs: usize, aux: usize) -> [Rows; 3] {
    let templates = record(1, Kind::Small).expect("templates");
    let pattern = (0..templates.dictionary.patterns() as u32).find(|&p| templates.dictionary.pattern(p).is_empty());
    [0; 3].map(|_: i32| {
        let patterns = vec![pattern.expect("there are empty rows"); count];
        Rows::from_parts(Vec::new(), patterns, &templates.dictionary, inputs, aux).expect("rows")
    })
}

/// A block with the rows of an input, one for ONE and one own, that calls one block.
fn caller(block: u32) -> Block {
    let calls = vec![Call { block, after: 1, base: 2 }];
    Block { inputs: 2, aux: 5, rows: empty(2, 2, 5), calls, arguments: vec![INPUT | 1], full: vec![0, 4] }
}

fn leaf() -> Block {
    Block { inputs: 2, aux: 3, rows: empty(1, 2, 3), calls: Vec::new(), arguments: Vec::new(), full: vec![0] }
}

#[test]
fn blocks_that_do_not_hang_together_are_refused() {
    let good = || vec![leaf(), caller(0)];
    let expansion = Expansion::of(&good()).expect("a good one");
    assert_eq!((expansion.rows, expansion.instances.len(), expansion.pieces.len()), (3, 2, 3));
    assert_eq!(expansion.instances[1].base, 2);
    let places = expansion.places(&expansion.instances[1]);
    assert_eq!([places(2), places(ONE), places(INPUT | 1)], [4, ONE, INPUT | 1]);

    let alterations: [fn(&mut Vec<Block>); 16] = [
        |blocks| blocks.clear(),
        |blocks| blocks[1].calls[0].block = 1,
        |blocks| blocks[1].calls[0].block = u32::MAX,
        |blocks| blocks[1].calls[0].after = 3,
        |blocks| blocks[1].calls[0].base = 3,
        |blocks| blocks[1].calls[0].base = u32::MAX,
        |blocks| blocks[1].arguments[0] = 5,
        |blocks| blocks[1].arguments[0] = INPUT | 2,
        |blocks| blocks[1].arguments.push(0),
        |blocks| blocks[1].arguments.clear(),
        |blocks| blocks[1].calls.clear(),
        |blocks| blocks[1].full = vec![4, 0],
        |blocks| blocks[1].full = vec![5],
        |blocks| blocks[0].inputs = 0,
        |blocks| blocks[0].aux = INPUT as usize,
        |blocks| {
            let [last, ..] = empty(1, 2, 5);
            blocks[1].rows[2] = last;
        },
    ];
    for (index, alter) in alterations.into_iter().enumerate() {
        let mut blocks = good();
        alter(&mut blocks);
        assert_eq!(Expansion::of(&blocks), None, "{index}");
    }
}

#[test]
fn blocks_that_expand_out_of_all_proportion_are_refused() {
    // Each block calls the one before twice.
    let twice = |blocks: usize| {
        let mut chain = vec![leaf()];
        for block in 0..blocks {
            let call = Call { block: block as u32, after: 0, base: 0 };
            let (calls, arguments) = (vec![call; 2], vec![0, 0]);
            chain.push(Block { rows: empty(2, 2, 3), calls, arguments, ..leaf() });
        }
        Expansion::of(&chain).map(|expansion| expansion.rows)
    };
    assert_eq!(twice(3), Some(8 + 2 * 7));
    assert_eq!(twice(30), None);
    // Each block calls the one before once.
    let once = |blocks: u32| {
        let callers = (0..blocks).map(|block| {
            let calls = vec![Call { block, after: 0, base: 0 }];
            Block { calls, arguments: vec![0], rows: empty(2, 2, 3), ..leaf() }
        });
        Expansion::of(&std::iter::once(leaf()).chain(callers).collect::<Vec<_>>()).is_some()
    };
    assert!(once(20) && !once(100) && !once(3000));
    // More inputs than rows.
    assert_eq!(Expansion::of(&[Block { inputs: 1 << 30, ..leaf() }]), None);
}
