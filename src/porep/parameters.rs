//! The official parameter set of each sector size: file names, lengths, digests, and the counts of the circuit that it
//! proves. Knows constants only; opens no file.

use super::sector::SectorSize;

/// Counts of one partition's circuit, as bellperson's prover and generator see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CircuitCounts {
    /// Constraints, with the one that bellperson appends for each input.
    pub rows: usize,
    /// Public inputs, with ONE.
    pub inputs: usize,
    /// Auxiliary variables.
    pub aux: usize,
    /// Base-2 logarithm of the evaluation domain: the least power of two that holds all rows.
    pub domain_log: u32,
    /// Auxiliary variables that occur in A.
    pub a_aux_density: usize,
    /// Auxiliary variables that occur in B.
    pub b_aux_density: usize,
}

impl CircuitCounts {
    /// Bytes of bellperson's `.params` file for these counts.
    ///
    /// The verifying key (three G1 points, three G2 points, a count and one G1 point an input), then h, l, a, b in G1
    /// and b in G2, each a count and points; uncompressed, 96 bytes in G1 and 192 in G2. h has one point less than the
    /// domain, l one an auxiliary variable; a has all inputs and b the input ONE beside the variables that occur.
    pub const fn params_bytes(&self) -> u64 {
        const COUNT: u64 = 4;
        const G1: u64 = 96;
        const G2: u64 = 192;
        let h = (1 << self.domain_log) - 1;
        let l = self.aux as u64;
        let a = (self.inputs + self.a_aux_density) as u64;
        let b = (1 + self.b_aux_density) as u64;
        let key = 3 * G1 + 3 * G2 + COUNT + G1 * self.inputs as u64;
        key + 5 * COUNT + G1 * (h + l + a + b) + G2 * b
    }
}

/// The official parameters of one sector size; all kinds of registered proofs share them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParameterSet {
    /// The sector size.
    pub size: SectorSize,
    /// The file name without its extension.
    pub stem: &'static str,
    /// Bytes of the `.params` file.
    pub params_bytes: u64,
    /// The first 16 bytes of the BLAKE2b-512 hash of the official `.params` file, in hex.
    pub params_digest: &'static str,
    /// The same of the official `.vk` file.
    pub vk_digest: &'static str,
    /// Counts of the circuit.
    pub counts: CircuitCounts,
}

impl ParameterSet {
    /// The set of this size.
    pub const fn of(size: SectorSize) -> &'static ParameterSet {
        &SETS[size as usize]
    }

    /// The name of the proving parameters' file.
    pub fn params_name(&self) -> String {
        format!("{}.params", self.stem)
    }

    /// The name of the verifying key's file.
    pub fn vk_name(&self) -> String {
        format!("{}.vk", self.stem)
    }

    /// The name of the metadata file.
    pub fn meta_name(&self) -> String {
        format!("{}.meta", self.stem)
    }
}

impl SectorSize {
    /// The official parameters of this size.
    pub const fn parameters(self) -> &'static ParameterSet {
        ParameterSet::of(self)
    }
}

/// By size, smallest first. Digests are those of filecoin-proofs' parameters.json; counts were measured on the circuits.
static SETS: [ParameterSet; 5] = [
    ParameterSet {
        size: SectorSize::KiB2,
        stem: concat!(
            "v28-stacked-proof-of-replication-merkletree-poseidon_hasher-",
            "8-0-0-sha256_hasher-032d3138d22506ec0082ed72b2dcba18df18477904e35bafee82b3793b06832f"
        ),
        params_bytes: 1_114_707_768,
        params_digest: "434fb1338ecfaf0f59256f30dde4968f",
        vk_digest: "dc1ade9929ade1708238f155343044ac",
        counts: CircuitCounts {
            rows: 2_687_961,
            inputs: 40,
            aux: 2_685_673,
            domain_log: 22,
            a_aux_density: 2_674_908,
            b_aux_density: 685_521,
        },
    },
    ParameterSet {
        size: SectorSize::MiB8,
        stem: concat!(
            "v28-stacked-proof-of-replication-merkletree-poseidon_hasher-",
            "8-0-0-sha256_hasher-ecd683648512ab1765faa2a5f14bab48f676e633467f0aa8aad4b55dcb0652bb"
        ),
        params_bytes: 1_429_027_896,
        params_digest: "09e612e4eeb7a0eb95679a88404f960c",
        vk_digest: "b687beb9adbd9dabe265a7e3620813e4",
        counts: CircuitCounts {
            rows: 3_844_969,
            inputs: 40,
            aux: 3_842_449,
            domain_log: 22,
            a_aux_density: 3_814_996,
            b_aux_density: 1_011_289,
        },
    },
    ParameterSet {
        size: SectorSize::MiB512,
        stem: concat!(
            "v28-stacked-proof-of-replication-merkletree-poseidon_hasher-",
            "8-0-0-sha256_hasher-6babf46ce344ae495d558e7770a585b2382d54f225af8ed0397b8be7c3fcd472"
        ),
        params_bytes: 1_988_841_144,
        params_digest: "6c77597eb91ab936c1cef4cf19eba1b3",
        vk_digest: "065179da19fbe515507267677f02823e",
        counts: CircuitCounts {
            rows: 4_423_473,
            inputs: 40,
            aux: 4_420_837,
            domain_log: 23,
            a_aux_density: 4_385_040,
            b_aux_density: 1_174_173,
        },
    },
    ParameterSet {
        size: SectorSize::GiB32,
        stem: concat!(
            "v28-stacked-proof-of-replication-merkletree-poseidon_hasher-",
            "8-8-0-sha256_hasher-82a357d2f2ca81dc61bb45f4a762807aedee1b0a53fd6c4e77b46a01bfef7820"
        ),
        params_bytes: 47_373_928_632,
        params_digest: "6a388072a518cf46ebd661f5cc46900a",
        vk_digest: "0c7b4aac1c40fdb7eb82bc355b41addf",
        counts: CircuitCounts {
            rows: 130_278_869,
            inputs: 328,
            aux: 130_169_893,
            domain_log: 27,
            a_aux_density: 129_753_292,
            b_aux_density: 33_112_281,
        },
    },
    ParameterSet {
        size: SectorSize::GiB64,
        stem: concat!(
            "v28-stacked-proof-of-replication-merkletree-poseidon_hasher-",
            "8-8-2-sha256_hasher-96f1b4a04c5c51e4759bbf224bbc2ef5a42c7100f16ec0637123f16a845ddfb2"
        ),
        params_bytes: 47_624_967_288,
        params_digest: "1801f8a6e1b00bceb00cc27314bb5ce3",
        vk_digest: "a89884252c04c298d0b3c81bfd884164",
        counts: CircuitCounts {
            rows: 131_186_177,
            inputs: 328,
            aux: 131_076_643,
            domain_log: 27,
            a_aux_density: 130_637_542,
            b_aux_density: 33_386_943,
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::porep::sector::{ProofKind, RegisteredProof};
    use filecoin_proofs_api::RegisteredSealProof;
    use sha2::{Digest, Sha256};

    /// The stem computed from the identifier of the public parameters.
    fn computed_stem(size: SectorSize) -> String {
        let [base, sub, top] = size.tree_arities();
        let tree = format!("merkletree-poseidon_hasher-{base}-{sub}-{top}");
        let identifier = format!(
            "layered_drgporep::PublicParams{{ graph: stacked_graph::StackedGraph{{expansion_degree: 8 base_graph: \
             drgraph::BucketGraph{{size: {}; degree: 6; hasher: poseidon_hasher}} }}, challenges: LayerChallenges {{ \
             layers: {}, max_count: {} }}, tree: {tree} }}",
            size.nodes(),
            size.layers(),
            size.challenges_per_partition(),
        );
        let hash = hex::encode(Sha256::digest(identifier));
        format!("v28-stacked-proof-of-replication-{tree}-sha256_hasher-{hash}")
    }

    #[test]
    fn file_names_are_those_that_storage_proofs_computes() {
        for size in SectorSize::ALL {
            let set = size.parameters();
            assert_eq!(set.size, size);
            assert_eq!(set.stem, computed_stem(size));
            for kind in ProofKind::ALL {
                let name = RegisteredProof::new(size, kind).name();
                let public: RegisteredSealProof = serde_json::from_value(name.into()).unwrap();
                assert_eq!(set.stem, format!("v28-{}", public.circuit_identifier().unwrap()), "{name}");
            }
        }
    }

    #[test]
    fn digests_are_those_of_the_published_parameters() {
        use storage_proofs_core::parameter_cache::get_parameter_data_from_id;
        for size in SectorSize::ALL {
            let set = size.parameters();
            let digest = |name: String| get_parameter_data_from_id(&name).unwrap().digest.clone();
            assert_eq!(set.params_digest, digest(set.params_name()));
            assert_eq!(set.vk_digest, digest(set.vk_name()));
        }
    }

    #[test]
    fn lengths_follow_from_the_counts() {
        for size in SectorSize::ALL {
            let set = size.parameters();
            assert_eq!(set.counts.params_bytes(), set.params_bytes, "{size}");
            assert_eq!(set.counts.rows.next_power_of_two(), 1 << set.counts.domain_log, "{size}");
        }
    }
}
