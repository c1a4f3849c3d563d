//! Counts and lengths: everything that later steps index into. Looks at no element.

use super::place::{columns, PathName};
use super::{for_each_proof, place};
use crate::error::{Error, Place, Result};
use crate::porep::c1::{C1Output, MerkleProof, PathElement, VanillaProof};
use crate::porep::sector::{excerpt, SectorSize, DRG_PARENTS, EXP_PARENTS, LABEL_PARENTS};

pub(super) fn check(c1: &C1Output) -> Result<()> {
    let proof = c1.registered_proof;
    if c1.inner_tag != proof.inner_tag() {
        let (actual, expected) = (excerpt(&c1.inner_tag), proof.inner_tag());
        let detail =
            format!("the vanilla proofs are tagged {actual:?}, which {proof} does not use; it uses {expected}");
        return Err(Error::C1Shape { place: Place::top("vanilla_proofs"), detail });
    }
    if let Some(envelope) = c1.envelope.filter(|envelope| envelope.sector_size != proof.size.bytes()) {
        let (actual, expected) = (envelope.sector_size, proof.size.bytes());
        let detail = format!("the envelope says {actual} bytes, {proof} has {expected}");
        return Err(Error::C1Shape { place: Place::top("SectorSize"), detail });
    }
    count(c1.vanilla_proofs.len(), proof.partitions(), "partitions", || Place::top("vanilla_proofs"))?;
    for (k, proofs) in c1.vanilla_proofs.iter().enumerate() {
        let place = || Place { partition: Some(k), challenge: None, part: "vanilla_proofs".to_owned() };
        count(proofs.len(), proof.challenges_per_partition(), "challenges", place)?;
    }
    for_each_proof(c1, |k, i, vanilla| check_proof(vanilla, proof.size, k, i))
}

fn check_proof(proof: &VanillaProof, size: SectorSize, k: usize, i: usize) -> Result<()> {
    let at = |part: &str| Place::at(k, i, part);
    count(proof.drg_parents.len(), DRG_PARENTS, "columns", || at("replica_column_proofs.drg_parents"))?;
    count(proof.exp_parents.len(), EXP_PARENTS, "columns", || at("replica_column_proofs.exp_parents"))?;
    for (name, column) in columns(proof) {
        count(column.rows.len(), size.layers(), "labels", || at(&format!("{name}.column.rows")))?;
    }
    count(proof.labeling_proofs.len(), size.layers(), "layers", || at("labeling_proofs"))?;
    for (layer, labeling) in proof.labeling_proofs.iter().enumerate() {
        let place = || at(&format!("labeling_proofs[{layer}].parents"));
        count(labeling.parents.len(), LABEL_PARENTS, "labels", place)?;
    }
    count(proof.encoding_proof.parents.len(), LABEL_PARENTS, "labels", || at("encoding_proof.parents"))?;
    for (name, path) in place::paths(proof) {
        check_path(path, name, size, |part| at(&part))?;
    }
    Ok(())
}

fn check_path(proof: &MerkleProof, name: PathName, size: SectorSize, at: impl Fn(String) -> Place) -> Result<()> {
    let (base_len, [base, sub, top]) = match name {
        PathName::Data => (size.data_path_len(), [2, 0, 0]),
        PathName::Replica | PathName::Column(_) => (size.base_path_len(), size.tree_arities()),
    };
    let form = match (sub, top) {
        (0, _) => "Single",
        (_, 0) => "Sub",
        _ => "Top",
    };
    if proof.sub.is_some() != (sub > 0) || proof.top.is_some() != (top > 0) {
        let detail = format!("the tree has another form than {form}, which is that of {size} sectors");
        return Err(Error::C1Shape { place: at(format!("{name}.data")), detail });
    }
    check_levels(&proof.base, base_len, base, || at(format!("{name}.path")))?;
    if let Some(levels) = &proof.sub {
        check_levels(levels, 1, sub, || at(format!("{name}.sub_proof")))?;
    }
    if let Some(levels) = &proof.top {
        check_levels(levels, 1, top, || at(format!("{name}.top_proof")))?;
    }
    Ok(())
}

fn check_levels(levels: &[PathElement], len: usize, arity: usize, at: impl Fn() -> Place) -> Result<()> {
    count(levels.len(), len, "levels", &at)?;
    for (height, level) in levels.iter().enumerate() {
        let below = |suffix: &str| {
            let mut place = at();
            place.part += &format!("[{height}]{suffix}");
            place
        };
        count(level.hashes.len(), arity - 1, "siblings", || below(".hashes"))?;
        if level.index >= arity as u64 {
            let detail = format!("{} is no index among {arity} nodes", level.index);
            return Err(Error::C1Shape { place: below(".index"), detail });
        }
    }
    Ok(())
}

fn count(actual: usize, expected: usize, what: &str, place: impl Fn() -> Place) -> Result<()> {
    if actual == expected {
        return Ok(());
    }
    Err(Error::C1Shape { place: place(), detail: format!("{actual} {what}, expected {expected}") })
}
