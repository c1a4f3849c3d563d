//! What is set aside for proofs is what they take: many at once, with every allocation of the process counted. A test
//! binary of its own for that.

#[path = "common/counting.rs"]
mod counting;

use std::thread;

use bellperson::{Circuit, ConstraintSystem, SynthesisError};
use blstrs::Scalar;
use cuporep::groth16::setup::{self, Target};
use cuporep::groth16::{Counts, Expected, Parameters};
use cuporep::pipeline::Control;
use cuporep::r1cs::R1cs;
use cuporep::{Config, Placement, Policy, Prover};
use ff::Field;

/// x, x^2, x^4 and so on, all full-width; the last one is public.
#[derive(Clone)]
struct Squares {
    start: Scalar,
    count: usize,
}

impl Squares {
    fn last(&self) -> Scalar {
        (0..self.count).fold(self.start, |value, _| value.square())
    }
}

impl Circuit<Scalar> for Squares {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let mut value = self.start;
        let mut variable = cs.alloc(|| "start", || Ok(value))?;
        for index in 0..self.count {
            let square = value.square();
            let next = cs.alloc(|| format!("{index}"), || Ok(square))?;
            cs.enforce(|| format!("{index}"), |lc| lc + variable, |lc| lc + variable, |lc| lc + next);
            (value, variable) = (square, next);
        }
        let last = cs.alloc_input(|| "last", || Ok(value))?;
        cs.enforce(|| "end", |lc| lc + variable, |lc| lc + CS::one(), |lc| lc + last);
        Ok(())
    }
}

#[test]
fn thirty_proofs_at_once_take_what_was_set_aside_for_them_and_give_it_back() {
    let circuit = |start: u64| Squares { start: Scalar::from(start), count: 30_000 };
    let directory = tempfile::tempdir().unwrap();
    let r1cs = R1cs::record(circuit(2), &Control::new()).unwrap();
    let target = Target { directory: directory.path(), stem: "squares", meta: "{}" };
    setup::generate(&r1cs, 3, &target, &Control::new(), &mut |_, _| ()).unwrap();
    let expected = Expected { stem: "squares".into(), counts: Counts::of(&r1cs), official: None, known: Vec::new() };
    let parameters = Parameters::open(directory.path(), &expected, &Control::new()).unwrap();
    let placement = Placement { policy: Some(Policy::Cpu), devices: Vec::new() };
    let config = |memory| Config { placement: placement.clone(), threads: Some(2), memory, ..Config::default() };
    let prove = |prover: &Prover, start: u64| {
        let circuit = circuit(start);
        let inputs = [circuit.last()];
        prover.prove_circuit(circuit, &inputs, &r1cs, &parameters, &Control::new()).map(drop)
    };

    // One alone says what is needed.
    let needed = {
        let prover = Prover::new(config(None)).unwrap();
        prove(&prover, 3).unwrap();
        prover.status().host_peak as usize
    };
    // A little more: the witness of one more proof, not of two.
    let budget = needed + needed / 20;
    let prover = Prover::new(config(Some(budget as u64))).unwrap();
    let before = counting::begin();
    thread::scope(|scope| {
        for start in 0..30 {
            let (prover, prove) = (&prover, &prove);
            scope.spawn(move || prove(prover, 5 + start).unwrap());
        }
    });
    let status = prover.status();
    let (reserved, taken) = (status.host_peak as usize, counting::peak() - before);
    println!("{needed} bytes for one, {reserved} set aside, {taken} taken");
    assert!(reserved <= budget, "{status:?}");
    assert!(taken <= budget + budget / 10, "{taken} bytes taken of {budget}");
    assert!(taken >= reserved - reserved / 10, "{taken} bytes taken of {reserved} that were set aside");
    // Bases stay, and nothing else.
    let kept = counting::in_use() - before;
    assert!(
        kept <= status.host_reserved as usize + (1 << 20),
        "{kept} bytes kept, {} by the books",
        status.host_reserved
    );
    prover.release();
    let left = counting::in_use() - before;
    assert!(left < 1 << 20, "{left} bytes are left");
    assert_eq!(prover.status().host_reserved, 0);
}
