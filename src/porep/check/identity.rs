//! Whether the C1 output belongs to the sector and miner of the call.

use crate::error::{Error, Result};
use crate::porep::c1::{C1Output, Node};
use crate::porep::ids::{prover_id, replica_id};
use crate::porep::sector::RegisteredProof;

/// Without a miner the replica id cannot be derived; then only the envelope's number is compared.
pub(super) fn check(c1: &C1Output, sector: u64, miner: Option<u64>) -> Result<()> {
    let refuse = |detail| Err(Error::C1Identity { sector, miner, detail });
    let enveloped = c1.envelope.map(|envelope| envelope.sector_number).filter(|&number| number != sector);
    let Some(known) = miner else {
        return enveloped.map_or(Ok(()), |number| refuse(format!("the envelope says sector {number}")));
    };
    let derive = |sector: u64, proof: RegisteredProof| {
        Node(replica_id(&prover_id(known), sector, &c1.ticket.0, &c1.comm_d.0, &proof.porep_id()))
    };
    let derived = derive(sector, c1.registered_proof);
    if derived == c1.replica_id {
        return match enveloped {
            None => Ok(()),
            Some(number) => {
                refuse(format!("the envelope says sector {number}, though the replica id is that of {sector}"))
            }
        };
    }
    let mut detail = format!(
        "its replica id is {}, while miner, sector, ticket, comm_d and {} give {derived}",
        c1.replica_id, c1.registered_proof
    );
    if let Some(number) = enveloped {
        let fits = if derive(number, c1.registered_proof) == c1.replica_id { ", which fits" } else { "" };
        detail += &format!("; the envelope says sector {number}{fits}");
    }
    if let Some(other) = RegisteredProof::all().find(|&proof| derive(sector, proof) == c1.replica_id) {
        detail += &format!("; it fits {other}, so the registered proof was swapped");
    }
    refuse(detail)
}
