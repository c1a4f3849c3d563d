//! The public verifier of vanilla proofs.

use cuporep::porep::{RegisteredProof, SectorSize};
use filecoin_hashers::poseidon::{PoseidonDomain, PoseidonHasher};
use filecoin_hashers::sha256::{Sha256Domain, Sha256Hasher};
use filecoin_proofs::constants::{SectorShape2KiB, SectorShape32GiB, SectorShape64GiB};
use filecoin_proofs_api::RegisteredSealProof;
use serde_json::Value;
use storage_proofs_core::merkle::MerkleTreeTrait;
use storage_proofs_core::proof::ProofScheme;
use storage_proofs_porep::stacked::{Proof, PublicInputs, PublicParams, StackedDrg, Tau};

/// The public verifier's input.
pub struct Public<Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>> {
    params: PublicParams<Tree>,
    inputs: PublicInputs<PoseidonDomain, Sha256Domain>,
    proofs: Vec<Vec<Proof<Tree, Sha256Hasher>>>,
}

impl<Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>> Public<Tree> {
    /// Reads a C1 output with the storage-proofs crates' own types.
    pub fn read(c1: &Value) -> serde_json::Result<Self> {
        let name = c1["registered_proof"].clone();
        let tag = RegisteredProof::from_name(name.as_str().unwrap()).unwrap().inner_tag();
        let config = serde_json::from_value::<RegisteredSealProof>(name)?.as_v1_config();
        let bytes = |field: &str| serde_json::from_value::<[u8; 32]>(c1[field].clone());
        Ok(Public {
            params: filecoin_proofs::parameters::public_params(&config).unwrap(),
            inputs: PublicInputs {
                replica_id: bytes("replica_id")?.into(),
                seed: Some(bytes("seed")?),
                tau: Some(Tau { comm_d: bytes("comm_d")?.into(), comm_r: bytes("comm_r")?.into() }),
                k: None,
            },
            proofs: serde_json::from_value(c1["vanilla_proofs"][tag].clone())?,
        })
    }

    pub fn verify(&self) -> bool {
        StackedDrg::<Tree, Sha256Hasher>::verify_all_partitions(&self.params, &self.inputs, &self.proofs).unwrap()
    }
}

/// Whether the public verifier accepts a C1 output of this size.
pub fn accepts(size: SectorSize, c1: &Value) -> serde_json::Result<bool> {
    Ok(match size {
        // These have the same tree type.
        SectorSize::KiB2 | SectorSize::MiB8 | SectorSize::MiB512 => Public::<SectorShape2KiB>::read(c1)?.verify(),
        SectorSize::GiB32 => Public::<SectorShape32GiB>::read(c1)?.verify(),
        SectorSize::GiB64 => Public::<SectorShape64GiB>::read(c1)?.verify(),
    })
}
