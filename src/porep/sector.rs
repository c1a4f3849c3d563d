//! Sector sizes, registered seal proofs and the shapes that follow from them. Knows constants only, no data.

use std::fmt;
use std::str::FromStr;

use storage_proofs_core::api_version::ApiVersion;
use storage_proofs_porep::stacked::Challenges;

use crate::error::{Error, Result};

/// Bytes of one partition's Groth16 proof: A (48), B (96) and C (48), compressed.
pub const PARTITION_PROOF_BYTES: usize = 192;

/// Bytes of one node, a field element.
pub const NODE_BYTES: usize = 32;

/// Parents of a node in the same layer (depth-robust graph).
pub const DRG_PARENTS: usize = 6;

/// Parents of a node in the previous layer (expander graph).
pub const EXP_PARENTS: usize = 8;

/// Parent labels hashed into a label: the distinct parents, repeated in order up to this count.
pub const LABEL_PARENTS: usize = 37;

/// A sector size that has official proving parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SectorSize {
    /// 2 KiB, for tests.
    KiB2,
    /// 8 MiB, for tests.
    MiB8,
    /// 512 MiB, for tests.
    MiB512,
    /// 32 GiB.
    GiB32,
    /// 64 GiB.
    GiB64,
}

impl SectorSize {
    /// All sizes, smallest first; the order is that of the registered proof numbers.
    pub const ALL: [SectorSize; 5] =
        [SectorSize::KiB2, SectorSize::MiB8, SectorSize::MiB512, SectorSize::GiB32, SectorSize::GiB64];

    /// The name, such as `2KiB`.
    pub const fn name(self) -> &'static str {
        match self {
            SectorSize::KiB2 => "2KiB",
            SectorSize::MiB8 => "8MiB",
            SectorSize::MiB512 => "512MiB",
            SectorSize::GiB32 => "32GiB",
            SectorSize::GiB64 => "64GiB",
        }
    }

    /// Bytes of the sealed sector.
    pub const fn bytes(self) -> u64 {
        match self {
            SectorSize::KiB2 => 2 << 10,
            SectorSize::MiB8 => 8 << 20,
            SectorSize::MiB512 => 512 << 20,
            SectorSize::GiB32 => 32 << 30,
            SectorSize::GiB64 => 64 << 30,
        }
    }

    /// Nodes of 32 bytes; a power of two below 2^32.
    pub const fn nodes(self) -> u64 {
        self.bytes() / NODE_BYTES as u64
    }

    /// Layers of labels.
    pub const fn layers(self) -> usize {
        match self {
            SectorSize::KiB2 | SectorSize::MiB8 | SectorSize::MiB512 => 2,
            SectorSize::GiB32 | SectorSize::GiB64 => 11,
        }
    }

    /// Challenges in each partition.
    pub const fn challenges_per_partition(self) -> usize {
        match self {
            SectorSize::KiB2 | SectorSize::MiB8 | SectorSize::MiB512 => 2,
            SectorSize::GiB32 | SectorSize::GiB64 => 18,
        }
    }

    /// Arities of the trees over columns and replica: base, sub and top tree; 0 where there is no such level.
    pub const fn tree_arities(self) -> [usize; 3] {
        match self {
            SectorSize::KiB2 | SectorSize::MiB8 | SectorSize::MiB512 => [8, 0, 0],
            SectorSize::GiB32 => [8, 8, 0],
            SectorSize::GiB64 => [8, 8, 2],
        }
    }

    /// Length of a path through the binary tree over the data.
    pub const fn data_path_len(self) -> usize {
        self.nodes().trailing_zeros() as usize
    }

    /// Length of the base part of a path through the trees over columns and replica.
    pub const fn base_path_len(self) -> usize {
        let [_, sub, top] = self.tree_arities();
        let leaves = self.nodes() / (if sub == 0 { 1 } else { sub as u64 }) / (if top == 0 { 1 } else { top as u64 });
        // Arity 8: three bits of the index a level.
        leaves.trailing_zeros() as usize / 3
    }

    /// Arities of the levels of a path through the trees over columns and replica, from the leaf.
    pub(crate) fn path_arities(self) -> Vec<usize> {
        let [base, sub, top] = self.tree_arities();
        let upper = [sub, top].into_iter().filter(|&arity| arity > 0);
        std::iter::repeat_n(base, self.base_path_len()).chain(upper).collect()
    }

    const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for SectorSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for SectorSize {
    type Err = Error;

    /// Parses `2KiB`, `8MiB`, `512MiB`, `32GiB` or `64GiB`, exactly so.
    fn from_str(text: &str) -> Result<Self> {
        SectorSize::ALL.into_iter().find(|size| size.name() == text).ok_or_else(|| Error::Argument {
            name: "size",
            detail: format!(
                "{:?} is not a sector size; known are {}",
                excerpt(text),
                names(SectorSize::ALL.map(SectorSize::name))
            ),
        })
    }
}

/// The protocol version of a seal proof. All kinds of one size share circuit and parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProofKind {
    /// The first version, with the first graph.
    V1,
    /// Interactive, with the corrected graph.
    V1_1,
    /// Challenges chosen from a set fixed before the seed is known.
    SyntheticPoRep,
    /// Challenges without a seed, over more than twelve times as many partitions.
    NonInteractivePoRep,
}

impl ProofKind {
    /// All kinds, in the order of the registered proof numbers.
    pub const ALL: [ProofKind; 4] =
        [ProofKind::V1, ProofKind::V1_1, ProofKind::SyntheticPoRep, ProofKind::NonInteractivePoRep];

    /// The name, such as `V1_1` or `synthetic`.
    pub const fn name(self) -> &'static str {
        match self {
            ProofKind::V1 => "V1",
            ProofKind::V1_1 => "V1_1",
            ProofKind::SyntheticPoRep => "synthetic",
            ProofKind::NonInteractivePoRep => "non-interactive",
        }
    }

    const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for ProofKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ProofKind {
    type Err = Error;

    /// Parses `V1`, `V1_1`, `synthetic` or `non-interactive`, exactly so.
    fn from_str(text: &str) -> Result<Self> {
        ProofKind::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| Error::Argument {
            name: "kind",
            detail: format!(
                "{:?} is not a kind of proof; known are {}",
                excerpt(text),
                names(ProofKind::ALL.map(ProofKind::name))
            ),
        })
    }
}

/// Names by kind and size, as filecoin-proofs-api spells them. The first row is also the tag inside a C1 output.
const NAMES: [[&str; 5]; 4] = [
    ["StackedDrg2KiBV1", "StackedDrg8MiBV1", "StackedDrg512MiBV1", "StackedDrg32GiBV1", "StackedDrg64GiBV1"],
    ["StackedDrg2KiBV1_1", "StackedDrg8MiBV1_1", "StackedDrg512MiBV1_1", "StackedDrg32GiBV1_1", "StackedDrg64GiBV1_1"],
    [
        "StackedDrg2KiBV1_1_Feat_SyntheticPoRep",
        "StackedDrg8MiBV1_1_Feat_SyntheticPoRep",
        "StackedDrg512MiBV1_1_Feat_SyntheticPoRep",
        "StackedDrg32GiBV1_1_Feat_SyntheticPoRep",
        "StackedDrg64GiBV1_1_Feat_SyntheticPoRep",
    ],
    [
        "StackedDrg2KiBV1_2_Feat_NonInteractivePoRep",
        "StackedDrg8MiBV1_2_Feat_NonInteractivePoRep",
        "StackedDrg512MiBV1_2_Feat_NonInteractivePoRep",
        "StackedDrg32GiBV1_2_Feat_NonInteractivePoRep",
        "StackedDrg64GiBV1_2_Feat_NonInteractivePoRep",
    ],
];

/// A registered seal proof: a sector size and a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RegisteredProof {
    /// The sector size.
    pub size: SectorSize,
    /// The protocol version.
    pub kind: ProofKind,
}

impl RegisteredProof {
    /// The proof of this size and kind.
    pub const fn new(size: SectorSize, kind: ProofKind) -> Self {
        RegisteredProof { size, kind }
    }

    /// All registered proofs, by number.
    pub fn all() -> impl Iterator<Item = RegisteredProof> {
        ProofKind::ALL
            .into_iter()
            .flat_map(|kind| SectorSize::ALL.into_iter().map(move |size| RegisteredProof::new(size, kind)))
    }

    /// The name, such as `StackedDrg32GiBV1_1`.
    pub const fn name(self) -> &'static str {
        NAMES[self.kind.index()][self.size.index()]
    }

    /// The number on chain, 0 to 19.
    pub const fn number(self) -> u64 {
        (self.kind.index() * SectorSize::ALL.len() + self.size.index()) as u64
    }

    /// The proof with this name.
    ///
    /// # Errors
    /// [`Error::ProofType`] with the names that are known.
    pub fn from_name(name: &str) -> Result<Self> {
        RegisteredProof::all().find(|proof| proof.name() == name).ok_or_else(|| Error::ProofType {
            what: format!("registered proof {:?}", excerpt(name)),
            supported: names(RegisteredProof::all().map(RegisteredProof::name)),
            version: env!("CARGO_PKG_VERSION"),
        })
    }

    /// The tag of the vanilla proofs inside a C1 output: the name of the first version.
    pub const fn inner_tag(self) -> &'static str {
        NAMES[0][self.size.index()]
    }

    /// The id that separates the graphs and replica ids of registered proofs: the number, little-endian, then zeros.
    pub const fn porep_id(self) -> [u8; 32] {
        let mut id = [0; 32];
        // The remaining bytes are a nonce, which is 0 for all registered proofs.
        id[0] = self.number() as u8;
        id
    }

    /// Partitions of a proof; each gives one Groth16 proof.
    pub const fn partitions(self) -> usize {
        let large = matches!(self.size, SectorSize::GiB32 | SectorSize::GiB64);
        match (self.kind, large) {
            (ProofKind::NonInteractivePoRep, false) => 13,
            (ProofKind::NonInteractivePoRep, true) => 126,
            (_, false) => 1,
            (_, true) => 10,
        }
    }

    /// Challenges in each partition.
    pub const fn challenges_per_partition(self) -> usize {
        self.size.challenges_per_partition()
    }

    /// Bytes of all partitions' proofs, in partition order.
    pub const fn proof_len(self) -> usize {
        self.partitions() * PARTITION_PROOF_BYTES
    }

    /// Which version of the graph construction applies.
    pub(crate) const fn api_version(self) -> ApiVersion {
        match self.kind {
            ProofKind::V1 => ApiVersion::V1_0_0,
            ProofKind::V1_1 => ApiVersion::V1_1_0,
            ProofKind::SyntheticPoRep | ProofKind::NonInteractivePoRep => ApiVersion::V1_2_0,
        }
    }

    /// How challenges are derived.
    pub(crate) const fn challenges(self) -> Challenges {
        let count = self.challenges_per_partition();
        match self.kind {
            ProofKind::V1 | ProofKind::V1_1 => Challenges::new_interactive(count),
            ProofKind::SyntheticPoRep => Challenges::new_synthetic(count),
            ProofKind::NonInteractivePoRep => Challenges::new_non_interactive(count),
        }
    }
}

impl fmt::Display for RegisteredProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

pub(super) fn names(all: impl IntoIterator<Item = &'static str>) -> String {
    all.into_iter().collect::<Vec<_>>().join(", ")
}

/// The beginning of foreign text, short enough for a message.
pub(crate) fn excerpt(text: &str) -> String {
    const LONGEST: usize = 80;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use filecoin_proofs_api::RegisteredSealProof;

    fn public(proof: RegisteredProof) -> RegisteredSealProof {
        serde_json::from_value(proof.name().into()).unwrap()
    }

    #[test]
    fn every_registered_proof_agrees_with_filecoin_proofs_api() {
        assert_eq!(RegisteredProof::all().count(), 20);
        for (number, proof) in RegisteredProof::all().enumerate() {
            let config = public(proof).as_v1_config();
            assert_eq!(proof.number(), number as u64);
            assert_eq!(proof.porep_id(), config.porep_id, "{proof}");
            assert_eq!(proof.size.bytes(), u64::from(config.sector_size));
            assert_eq!(proof.partitions(), usize::from(config.partitions));
            assert_eq!(proof.api_version(), config.api_version);
            let setup = filecoin_proofs::parameters::setup_params(&config).unwrap();
            assert_eq!(proof.size.nodes() as usize, setup.nodes);
            assert_eq!(proof.size.layers(), setup.num_layers);
            assert_eq!(proof.challenges_per_partition(), setup.challenges.num_challenges_per_partition());
            assert_eq!(format!("{:?}", proof.challenges()), format!("{:?}", setup.challenges));
            assert_eq!((setup.degree, setup.expansion_degree), (DRG_PARENTS, EXP_PARENTS));
            assert_eq!(proof.proof_len(), proof.partitions() * public(proof).single_partition_proof_len());
        }
        assert_eq!(LABEL_PARENTS, storage_proofs_porep::stacked::TOTAL_PARENTS);
    }

    #[test]
    fn path_lengths_and_arities_cover_every_node_exactly() {
        for size in SectorSize::ALL {
            let [base, sub, top] = size.tree_arities().map(|arity| arity.max(1) as u64);
            assert_eq!(base.pow(size.base_path_len() as u32) * sub * top, size.nodes(), "{size}");
            assert_eq!(1 << size.data_path_len(), size.nodes(), "{size}");
        }
    }

    #[test]
    fn names_parse_back_and_foreign_names_are_refused_with_the_known_ones() {
        for proof in RegisteredProof::all() {
            assert_eq!(RegisteredProof::from_name(proof.name()).unwrap(), proof);
        }
        for size in SectorSize::ALL {
            assert_eq!(size.name().parse::<SectorSize>().unwrap(), size);
        }
        for kind in ProofKind::ALL {
            assert_eq!(kind.name().parse::<ProofKind>().unwrap(), kind);
        }
        let error = RegisteredProof::from_name("StackedDrg32GiBV2").unwrap_err();
        assert_eq!(error.code(), 104);
        assert!(error.to_string().contains("StackedDrg64GiBV1_2_Feat_NonInteractivePoRep"), "{error}");
        assert!(RegisteredProof::from_name(&"x".repeat(1 << 20)).unwrap_err().to_string().len() < 2000);
        assert_eq!("32gib".parse::<SectorSize>().unwrap_err().code(), 100);
        assert_eq!("v1".parse::<ProofKind>().unwrap_err().code(), 100);
    }
}
