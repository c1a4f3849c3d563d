//! Where a circuit's larger gadgets are: the rows and variables of each of its namespaces. Names do not matter.

use std::ops::Range;

/// Gadgets of fewer rows are not worth a block of their own.
const MIN_ROWS: usize = 256;

/// One gadget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub rows: Range<usize>,
    /// The auxiliary variables that it allocates.
    pub aux: Range<usize>,
    /// How many gadgets were begun before.
    opened: u64,
}

/// Collects gadgets while a circuit is synthesized.
#[derive(Debug, Default)]
pub(in crate::r1cs) struct Spans {
    open: Vec<(usize, usize, u64)>,
    opened: u64,
    found: Vec<Span>,
}

impl Spans {
    /// A gadget begins behind so many rows and auxiliary variables.
    pub fn open(&mut self, rows: usize, aux: usize) {
        self.open.push((rows, aux, self.opened));
        self.opened += 1;
    }

    /// The innermost gadget ends there.
    pub fn close(&mut self, rows: usize, aux: usize) {
        if let Some((first_row, first_aux, opened)) = self.open.pop() {
            if rows - first_row >= MIN_ROWS {
                self.found.push(Span { rows: first_row..rows, aux: first_aux..aux, opened });
            }
        }
    }

    /// The gadgets that lie inside `whole` and have fewer rows, each before those inside of it. Of gadgets that have the same
    /// rows, the outermost.
    pub(super) fn inside(mut self, whole: &Range<usize>, aux: &Range<usize>) -> Vec<Span> {
        self.found.retain(|span| {
            let within =
                |inner: &Range<usize>, outer: &Range<usize>| outer.start <= inner.start && inner.end <= outer.end;
            span.rows != *whole && within(&span.rows, whole) && within(&span.aux, aux)
        });
        self.found.sort_unstable_by_key(|span| span.opened);
        self.found.dedup_by(|inner, outer| inner.rows == outer.rows);
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gadgets_are_listed_from_the_outside_without_small_ones_and_repetitions() {
        let mut spans = Spans::default();
        spans.open(0, 0);
        spans.open(10, 5);
        spans.open(10, 6);
        spans.open(20, 7);
        spans.close(20 + MIN_ROWS, 100);
        spans.open(300, 100);
        spans.close(300 + MIN_ROWS - 1, 150);
        spans.close(600, 200);
        spans.close(600, 201);
        spans.open(600, 201);
        spans.close(600 + MIN_ROWS, 300);
        spans.close(1000, 301);
        let found = spans.inside(&(0..1000), &(0..301));
        let places: Vec<_> = found.into_iter().map(|span| (span.rows, span.aux)).collect();
        let expected = [(10..600, 5..201), (20..20 + MIN_ROWS, 7..100), (600..600 + MIN_ROWS, 201..300)];
        assert_eq!(places, expected);
    }
}
