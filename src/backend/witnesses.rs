//! Witnesses for a backend: made, or in the making while it works on earlier ones.

use std::ops::Range;
use std::sync::Arc;

use crate::error::Result;
use crate::pipeline::{Control, Promise};
use crate::r1cs::PartitionWitness;

/// Some witnesses of one constraint system, in order.
#[derive(Debug, Clone, Copy)]
pub struct Witnesses<'a>(Kind<'a>);

#[derive(Debug, Clone, Copy)]
enum Kind<'a> {
    Made(&'a [PartitionWitness]),
    Coming(&'a [Promise<Arc<PartitionWitness>>]),
}

impl<'a> From<&'a [PartitionWitness]> for Witnesses<'a> {
    fn from(made: &'a [PartitionWitness]) -> Self {
        Witnesses(Kind::Made(made))
    }
}

impl<'a> Witnesses<'a> {
    /// Those that somebody is making.
    pub(crate) fn coming(promised: &'a [Promise<Arc<PartitionWitness>>]) -> Self {
        Witnesses(Kind::Coming(promised))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match self.0 {
            Kind::Made(made) => made.len(),
            Kind::Coming(coming) => coming.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One of them. Waits while it is in the making, so that threads which it is made on must not ask.
    ///
    /// # Errors
    /// [`Error::Internal`](crate::Error::Internal) if it could not be made; cancel and deadline.
    pub fn get(&self, index: usize, control: &Control) -> Result<&'a PartitionWitness> {
        match self.0 {
            Kind::Made(made) => Ok(&made[index]),
            Kind::Coming(coming) => coming[index].wait(control).map(|witness| &**witness),
        }
    }

    /// Those of a range.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        Witnesses(match self.0 {
            Kind::Made(made) => Kind::Made(&made[range]),
            Kind::Coming(coming) => Kind::Coming(&coming[range]),
        })
    }
}
