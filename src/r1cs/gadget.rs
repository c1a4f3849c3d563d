//! Which gadget makes a row. Recorded systems keep no names, so the circuit is run again up to the row.

use bellperson::{Circuit, LinearCombination};
use blstrs::Scalar;

use super::recorder::{Name, Synthesis, Watcher};
use crate::error::{Error, Result};
use crate::pipeline::Control;

struct Search {
    path: Vec<String>,
    remaining: usize,
    found: Option<String>,
}

impl Watcher for Search {
    fn row(&mut self, _: &[LinearCombination<Scalar>; 3], name: Name<'_>) -> Result<()> {
        if let Some(remaining) = self.remaining.checked_sub(1) {
            self.remaining = remaining;
            return Ok(());
        }
        self.path.push(name());
        self.found = Some(self.path.join("/"));
        Err(Error::internal("the row was found"))
    }

    fn open(&mut self, name: Name<'_>) {
        self.path.push(name());
    }

    fn close(&mut self) {
        self.path.pop();
    }
}

/// The names of the gadgets around a row of a circuit and of the row itself, joined by `/`; for one of the rows that
/// are appended, one for each input, what it is. `None` if there are not so many rows.
///
/// Runs the circuit, whose values are not asked for, up to the row.
///
/// # Errors
/// As [`R1cs::record`](super::R1cs::record).
pub fn gadget_of_row<C: Circuit<Scalar>>(circuit: C, row: usize, control: &Control) -> Result<Option<String>> {
    let mut search = Search { path: Vec::new(), remaining: row, found: None };
    let outcome = Synthesis::watch(circuit, &mut search, control);
    if search.found.is_some() {
        return Ok(search.found);
    }
    let (inputs, _) = outcome?;
    let input = search.remaining;
    Ok((input < inputs).then(|| format!("the appended row of input {input}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::r1cs::testing::{Mixed, Sha};
    use crate::r1cs::R1cs;

    #[test]
    fn rows_are_named_by_the_gadgets_around_them() {
        let control = Control::new();
        let find = |row| gadget_of_row(Sha::default(), row, &control).expect("synthesis");
        assert_eq!(find(0).as_deref(), Some("bit/boolean constraint"));
        assert_eq!(find(511).as_deref(), Some("bit/boolean constraint"));
        let first = find(512).expect("a row");
        assert!(first.starts_with("sha256/block 0/"), "{first}");
        let r1cs = R1cs::record(Sha::default(), &control).expect("recording");
        let (rows, inputs) = (r1cs.num_rows(), r1cs.num_inputs());
        let last = find(rows - inputs - 1).expect("a row");
        assert!(last.starts_with("pack/"), "{last}");
        for input in 0..inputs {
            let name = find(rows - inputs + input);
            assert_eq!(name, Some(format!("the appended row of input {input}")));
        }
        assert_eq!(find(rows), None);
    }

    #[test]
    fn rows_outside_of_all_gadgets_have_their_own_name() {
        let control = Control::new();
        let rows = R1cs::record(Mixed::default(), &control).expect("recording").num_rows();
        let names = (0..rows).map(|row| gadget_of_row(Mixed::default(), row, &control).expect("synthesis"));
        let names: Vec<_> = names.map(|name| name.expect("a row")).collect();
        for name in ["choose", "repeated", "square"] {
            assert_eq!(names.iter().filter(|found| *found == name).count(), 1, "{name}");
        }
    }
}
