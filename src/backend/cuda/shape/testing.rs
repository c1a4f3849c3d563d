//! Constraint systems and witnesses for tests of what a device makes of them.

use bellperson::gadgets::boolean::AllocatedBit;
use bellperson::{Circuit, ConstraintSystem, LinearCombination, SynthesisError, Variable};
use blstrs::Scalar;
use ff::Field;
use rand::rngs::StdRng;
use rand::{Rng, RngCore, SeedableRng};

use crate::backend::cuda::gpu::{Buffer, Gpu, Stream};
use crate::backend::cuda::shape::ShapeTables;
use crate::backend::cuda::witness::{DeviceWitness, Staging};
use crate::pipeline::Control;
use crate::r1cs::testing::{Bare, Mixed, Sha};
use crate::r1cs::{Bitmap, Constraints, PartitionWitness, Pass, R1cs, Templates};

/// Gadgets of rows of many lengths, alike up to their variables, over bits, numbers, and variables of others.
#[derive(Clone, Copy)]
struct Gadgets {
    blocks: usize,
}

const LENGTHS: [usize; 12] = [1, 2, 1, 3, 2, 1, 4, 9, 0, 33, 128, 3];
const ROWS: usize = 300;

impl Gadgets {
    /// Adds one gadget and gives its first bit. Rows are the same each time.
    fn gadget<CS: ConstraintSystem<Scalar>>(cs: &mut CS, outside: &[Variable]) -> Result<Variable, SynthesisError> {
        let mut rng = StdRng::seed_from_u64(7);
        let mut variables = outside.to_vec();
        for _ in 0..80 {
            variables.push(AllocatedBit::alloc(cs.namespace(|| "bit"), None)?.get_variable());
        }
        let first_bit = variables[outside.len()];
        for _ in 0..80 {
            variables.push(cs.alloc(|| "number", || Err(SynthesisError::AssignmentMissing))?);
        }
        let bits = outside.len()..outside.len() + 80;
        for row in 0..ROWS {
            let mut sides = [0, 1, 2].map(|matrix| {
                let mut row_of = |len: usize, bits_only: bool| {
                    let mut lc = LinearCombination::<Scalar>::zero();
                    for _ in 0..len {
                        let range = if bits_only { bits.clone() } else { 0..variables.len() };
                        lc = lc + (coefficient(&mut rng), variables[rng.gen_range(range)]);
                    }
                    lc
                };
                row_of(LENGTHS[(row + 5 * matrix) % LENGTHS.len()], row % 3 == 0)
            });
            let [a, b, c] = sides.each_mut().map(std::mem::take);
            cs.enforce(|| "row", |_| a, |_| b, |_| c);
        }
        Ok(first_bit)
    }
}

/// Those that rows have most, and any.
fn coefficient(rng: &mut StdRng) -> Scalar {
    match rng.gen_range(0..5) {
        0 => Scalar::ONE,
        1 => -Scalar::ONE,
        2 => Scalar::from(2),
        3 => Scalar::from(1 << 31),
        _ => Scalar::random(rng),
    }
}

impl Circuit<Scalar> for Gadgets {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let missing = || Err(SynthesisError::AssignmentMissing);
        let shared = cs.alloc(|| "shared", missing)?;
        let unused = cs.alloc_input(|| "input", missing)?;
        let input = cs.alloc_input(|| "input", missing)?;
        cs.enforce(|| "head", |lc| lc + shared, |lc| lc + unused - input, |lc| lc + input);
        for _ in 0..self.blocks {
            let mut cs = cs.namespace(|| "block");
            let bit = AllocatedBit::alloc(cs.namespace(|| "bit"), None)?.get_variable();
            let own = cs.alloc_input(|| "own input", missing)?;
            let outside = [CS::one(), shared, input, own, bit];
            let bit = Self::gadget(&mut cs.namespace(|| "first"), &outside)?;
            let outside = [CS::one(), shared, input, own, bit];
            Self::gadget(&mut cs.namespace(|| "second"), &outside)?;
        }
        Ok(())
    }
}

/// Small systems with everything that large ones have.
pub fn systems() -> Vec<(&'static str, Box<dyn Constraints>)> {
    let control = Control::new();
    let bare = |count: usize| {
        let circuit = Bare { count, rows: Vec::new(), values: Vec::new() };
        Box::new(R1cs::record(circuit, &control).expect("recording"))
    };
    let templates = |blocks: usize| {
        let run = |blocks: usize, pass: &mut Pass<'_>| pass.run(Gadgets { blocks });
        Templates::record(blocks, run, &control).expect("templates")
    };
    let three = templates(3);
    let layout = three.layout();
    assert!(three.num_blocks() >= 3, "the gadget is stored once");
    assert!(layout.slots.iter().any(|&slot| slot > 1 << 31), "slots stand for inputs");
    assert!(three.full_positions().iter().any(|position| layout.slots.contains(position)), "and for numbers");
    vec![
        ("one row", bare(0)),
        // Around the ends of words.
        ("63 numbers", bare(63)),
        ("64 numbers", bare(64)),
        ("65 numbers", bare(65)),
        ("all gadgets", Box::new(R1cs::record(Mixed::default(), &control).expect("recording"))),
        ("a hash", Box::new(R1cs::record(Sha::default(), &control).expect("recording"))),
        ("recorded gadgets", Box::new(R1cs::record(Gadgets { blocks: 2 }, &control).expect("recording"))),
        ("one block", Box::new(templates(1))),
        ("three blocks", Box::new(three)),
    ]
}

/// Any bits, and small and large values at full-width positions. That satisfies nothing.
pub fn random_witness(system: &dyn Constraints, rng: &mut StdRng) -> PartitionWitness {
    let mut words: Vec<u64> = (0..system.num_aux().div_ceil(64)).map(|_| rng.next_u64()).collect();
    if let (Some(last), tail @ 1..) = (words.last_mut(), system.num_aux() % 64) {
        *last &= (1 << tail) - 1;
    }
    let value = |rng: &mut StdRng| match rng.gen_range(0..6) {
        0 => Scalar::ZERO,
        1 => Scalar::ONE,
        2 => -Scalar::ONE,
        3 => Scalar::from(rng.next_u32() as u64),
        _ => Scalar::random(rng),
    };
    let mut inputs = vec![Scalar::ONE];
    inputs.extend((1..system.num_inputs()).map(|_| value(rng)));
    let full = (0..system.full_positions().len()).map(|_| value(rng)).collect();
    let mut bits = Bitmap::from_words(words, system.num_aux()).expect("no bits past the end");
    system.full_positions().iter().for_each(|&position| bits.clear(position as usize));
    PartitionWitness { inputs, bits, full }
}

/// All bits and values one or zero.
pub fn constant_witness(system: &dyn Constraints, one: bool) -> PartitionWitness {
    let mut bits = Bitmap::zeros(system.num_aux());
    let value = if one { Scalar::ONE } else { Scalar::ZERO };
    if one {
        (0..bits.len()).for_each(|index| bits.set(index));
    }
    let mut inputs = vec![value; system.num_inputs()];
    inputs[0] = Scalar::ONE;
    PartitionWitness { inputs, bits, full: vec![value; system.full_positions().len()] }
}

/// Tables and witnesses of one system on a device.
pub struct Loaded {
    pub stream: Stream,
    pub tables: ShapeTables,
    pub witnesses: Vec<DeviceWitness>,
    _memory: Buffer<u64>,
}

impl Loaded {
    pub fn new(gpu: &Gpu, system: &dyn Constraints, witnesses: &[PartitionWitness]) -> Self {
        let stream = gpu.stream().expect("stream");
        let tables = ShapeTables::upload(gpu, &stream, system).expect("tables");
        let words = tables.sizes().witness_words();
        let memory = gpu.allocate(words * witnesses.len(), "witnesses").expect("memory");
        let mut staging = Staging::new(gpu, tables.sizes()).expect("staging");
        let place = |(index, witness)| {
            let room = memory.span().slice(words * index..words * (index + 1));
            let place = DeviceWitness::new(room, tables.sizes());
            staging.upload(&stream, witness, &place).expect("upload");
            place
        };
        let witnesses = witnesses.iter().enumerate().map(place).collect();
        Loaded { stream, tables, witnesses, _memory: memory }
    }
}
