//! Where proofs may be made, and what there is to make them on.

use std::str::FromStr;

use super::Prover;
use crate::environment;
use crate::error::{Error, Result};

/// Which kinds of devices may make a proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Policy {
    /// GPUs; where there is none that works, an error.
    GpuOnly,
    /// GPUs where there are any that work, else the CPU.
    PreferGpu,
    /// The CPU.
    Cpu,
}

impl FromStr for Policy {
    type Err = Error;

    /// Parses `gpu-only`, `prefer-gpu` or `cpu`.
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "gpu-only" => Ok(Policy::GpuOnly),
            "prefer-gpu" => Ok(Policy::PreferGpu),
            "cpu" => Ok(Policy::Cpu),
            _ => Err(Error::Argument {
                name: "policy",
                detail: format!("{text:?} is none; known are gpu-only, prefer-gpu and cpu"),
            }),
        }
    }
}

/// What a proof may be made on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Placement {
    /// Default: the CPU if `BELLMAN_NO_GPU` asks for it, else [`Policy::PreferGpu`].
    pub policy: Option<Policy>,
    /// Indices into [`devices`]; empty means any.
    pub devices: Vec<u32>,
}

/// A GPU that can make proofs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Device {
    /// The name that its maker gave it.
    pub name: String,
    /// What tells it apart from all others.
    pub uuid: String,
    /// Bytes of its memory.
    pub memory: u64,
}

/// The GPUs that can make proofs. This version has code for none.
pub fn devices() -> Vec<Device> {
    Vec::new()
}

impl Prover {
    /// Refuses a placement that cannot be had.
    pub(super) fn require_placement(&self, request: &Placement) -> Result<()> {
        let devices = devices();
        let wanted = if request.devices.is_empty() { &self.placement.devices } else { &request.devices };
        if let Some(missing) = wanted.iter().find(|&&index| index as usize >= devices.len()) {
            let detail = format!("does not exist; {} devices are usable", devices.len());
            return Err(Error::Device { device: missing.to_string(), detail });
        }
        let from_environment = || if environment::no_gpu() { Policy::Cpu } else { Policy::PreferGpu };
        let policy = request.policy.or(self.placement.policy).unwrap_or_else(from_environment);
        if policy == Policy::GpuOnly && devices.is_empty() {
            let detail = "the policy allows GPUs only, and this version has code for none; allow the CPU".into();
            return Err(Error::Device { device: "gpu".into(), detail });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prover::Config;

    fn outcome(prover: Placement, request: Placement) -> Option<i32> {
        let config = Config { placement: prover, threads: Some(1), memory: Some(1), ..Config::default() };
        Prover::new(config).unwrap().require_placement(&request).err().map(|error| error.code())
    }

    #[test]
    fn a_request_overrides_the_prover_and_missing_devices_are_refused() {
        let policy = |policy| Placement { policy: Some(policy), devices: vec![] };
        let first = Placement { policy: None, devices: vec![0] };
        assert_eq!(outcome(Placement::default(), Placement::default()), None);
        assert_eq!(outcome(policy(Policy::GpuOnly), Placement::default()), Some(302));
        assert_eq!(outcome(policy(Policy::GpuOnly), policy(Policy::Cpu)), None);
        assert_eq!(outcome(policy(Policy::Cpu), policy(Policy::GpuOnly)), Some(302));
        assert_eq!(outcome(Placement::default(), first.clone()), Some(302));
        assert_eq!(outcome(first, policy(Policy::PreferGpu)), Some(302));
    }

    #[test]
    fn policies_parse() {
        for (text, policy) in [("gpu-only", Policy::GpuOnly), ("prefer-gpu", Policy::PreferGpu), ("cpu", Policy::Cpu)] {
            assert_eq!(text.parse::<Policy>().unwrap(), policy);
        }
        assert_eq!("gpu".parse::<Policy>().unwrap_err().code(), 100);
    }
}
