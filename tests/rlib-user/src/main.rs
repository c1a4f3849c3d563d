//! A crate outside the workspace that uses cuporep from Rust: checks a C1 output and, with parameters, proves it.
//!
//! ```text
//! cargo run --release -- C1_FILE SECTOR MINER_ID [PARAMS_DIR]
//! ```

use cuporep::pipeline::Control;
use cuporep::{Config, Placement, ProveRequest, Prover};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [c1, sector, miner, params @ ..] = &arguments[..] else {
        return Err("usage: rlib-user C1_FILE SECTOR MINER_ID [PARAMS_DIR]".into());
    };
    let (c1, sector, miner) = (std::fs::read(c1)?, sector.parse()?, miner.parse::<u64>()?);
    let prover = Prover::new(Config::default())?;
    let checked = prover.check(&c1, sector, miner, &Control::new())?;
    println!("{} of sector {sector}: {} bytes", checked.registered_proof(), checked.registered_proof().proof_len());
    if let [params] = params {
        let proof = prover.prove(&ProveRequest {
            c1: &c1,
            sector,
            miner: Some(miner),
            parameter_dir: Some(params.into()),
            placement: Placement::default(),
            fixed_randomness: None,
            control: Control::new(),
        })?;
        prover.verify(&checked, &proof.bytes, params.as_ref(), &Control::new())?;
        println!("proved on {}: {} bytes", proof.device, proof.bytes.len());
    }
    Ok(())
}
