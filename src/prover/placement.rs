//! Where proofs may be made, and what there is to make them on.

use std::fmt;
use std::str::FromStr;

use super::{Fallback, Prover};
use crate::backend::accelerator::accelerators;
use crate::backend::Device;
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

/// What a device is called.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DeviceName {
    /// Its number, as [`devices`] counts.
    Ordinal(u32),
    /// Its UUID, or so much of its beginning that only one device has it.
    Uuid(String),
}

impl From<u32> for DeviceName {
    fn from(ordinal: u32) -> Self {
        DeviceName::Ordinal(ordinal)
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceName::Ordinal(ordinal) => write!(f, "cuda:{ordinal}"),
            DeviceName::Uuid(uuid) => f.write_str(uuid),
        }
    }
}

impl FromStr for DeviceName {
    type Err = Error;

    /// Parses `cuda:0` or `GPU-12345678`.
    fn from_str(text: &str) -> Result<Self> {
        let ordinal = text.strip_prefix("cuda:").and_then(|number| number.parse().ok());
        let uuid = text.len() > 4 && text.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("gpu-"));
        match ordinal {
            Some(ordinal) => Ok(DeviceName::Ordinal(ordinal)),
            None if uuid => Ok(DeviceName::Uuid(text.into())),
            None => Err(Error::Argument {
                name: "device",
                detail: format!("{text:?} is none; expected a number as in cuda:0 or a UUID as in GPU-12345678"),
            }),
        }
    }
}

impl DeviceName {
    fn fits(&self, device: &Device) -> bool {
        match self {
            DeviceName::Ordinal(ordinal) => device.ordinal == *ordinal,
            DeviceName::Uuid(uuid) => {
                device.uuid.get(..uuid.len()).is_some_and(|start| start.eq_ignore_ascii_case(uuid))
            }
        }
    }

    pub(super) fn find<'a>(&self, devices: &'a [Device]) -> Result<&'a Device> {
        let fitting: Vec<&Device> = devices.iter().filter(|device| self.fits(device)).collect();
        let detail = match fitting[..] {
            [device] => return Ok(device),
            [] => format!("does not exist; {} devices are usable", devices.len()),
            _ => format!("{} devices are called so", fitting.len()),
        };
        Err(Error::Device { device: self.to_string(), detail })
    }
}

/// What a proof may be made on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Placement {
    /// Default: the CPU if `BELLMAN_NO_GPU` asks for it, else [`Policy::PreferGpu`].
    pub policy: Option<Policy>,
    /// The GPUs to use, the first one first; empty means any.
    pub devices: Vec<DeviceName>,
}

impl FromStr for Placement {
    type Err = Error;

    /// Parses `auto` (as the environment says, else GPUs where there are any that work), `cpu`, `gpu`, or names of
    /// GPUs separated by commas, and then nothing else makes the proof.
    fn from_str(text: &str) -> Result<Self> {
        let any = |policy| Placement { policy, devices: Vec::new() };
        match text {
            "auto" => Ok(any(None)),
            "cpu" => Ok(any(Some(Policy::Cpu))),
            "gpu" => Ok(any(Some(Policy::GpuOnly))),
            _ => {
                let devices = text.split(',').map(|name| name.trim().parse()).collect::<Result<_>>()?;
                Ok(Placement { policy: Some(Policy::GpuOnly), devices })
            }
        }
    }
}

/// The GPUs that can make proofs; none where they cannot be asked.
pub fn devices() -> Vec<Device> {
    accelerators().list().unwrap_or_else(|error| {
        log::warn!("{error}");
        Vec::new()
    })
}

/// Why [`devices`] has none, if it has none.
pub fn why_no_devices() -> Option<String> {
    match accelerators().list() {
        Ok(devices) => devices.is_empty().then(|| accelerators().why_none()),
        Err(error) => Some(error.to_string()),
    }
}

/// What may make a proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Candidate {
    Gpu(Device),
    Cpu,
}

/// All that may make a proof, in order, and what was asked for and is not there.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Candidates {
    pub candidates: Vec<Candidate>,
    pub fallbacks: Vec<Fallback>,
}

impl Prover {
    /// What may make a proof under a request's placement; refuses one that cannot be had.
    pub(super) fn candidates(&self, request: &Placement) -> Result<Candidates> {
        let from_environment = || if environment::no_gpu() { Policy::Cpu } else { Policy::PreferGpu };
        let policy = request.policy.or(self.placement.policy).unwrap_or_else(from_environment);
        let named = if request.devices.is_empty() { &self.placement.devices } else { &request.devices };
        if policy == Policy::Cpu {
            return Ok(Candidates { candidates: vec![Candidate::Cpu], fallbacks: Vec::new() });
        }
        let mut found = match self.lanes.accelerators().list() {
            Ok(devices) => self.among(&devices, named, policy)?,
            Err(error) if policy == Policy::GpuOnly => return Err(error),
            Err(error) => Candidates { candidates: Vec::new(), fallbacks: vec![Fallback::new("cuda", &error)] },
        };
        if policy == Policy::PreferGpu {
            found.candidates.push(Candidate::Cpu);
        }
        Ok(found)
    }

    fn among(&self, devices: &[Device], named: &[DeviceName], policy: Policy) -> Result<Candidates> {
        if policy == Policy::GpuOnly && devices.is_empty() {
            let detail =
                format!("the policy allows GPUs only, and {}; allow the CPU", self.lanes.accelerators().why_none());
            return Err(Error::Device { device: "gpu".into(), detail });
        }
        let chosen: Vec<&Device> = match named.is_empty() {
            true => devices.iter().collect(),
            false => named.iter().map(|name| name.find(devices)).collect::<Result<_>>()?,
        };
        let mut candidates: Vec<Candidate> = Vec::new();
        for device in chosen {
            // One that was named twice is tried once.
            if !candidates.contains(&Candidate::Gpu(device.clone())) {
                candidates.push(Candidate::Gpu(device.clone()));
            }
        }
        Ok(Candidates { candidates, fallbacks: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prover::testing::{prover, FakeGpus};

    const FIRST: &str = "GPU-00000000-aaaa";
    const SECOND: &str = "GPU-00000000-bbbb";

    fn gpus() -> FakeGpus {
        FakeGpus::new(&[FIRST, SECOND])
    }

    fn placement(policy: Option<Policy>, devices: &[&str]) -> Placement {
        Placement { policy, devices: devices.iter().map(|name| name.parse().unwrap()).collect() }
    }

    /// The ordinals of the GPUs, and whether the CPU comes last; or the error's number.
    fn outcome(gpus: FakeGpus, own: Placement, request: Placement) -> Result<(Vec<u32>, bool), i32> {
        let candidates = prover(gpus, own).candidates(&request).map_err(|error| error.code())?.candidates;
        let ordinals = candidates.iter().filter_map(|candidate| match candidate {
            Candidate::Gpu(device) => Some(device.ordinal),
            Candidate::Cpu => None,
        });
        Ok((ordinals.collect(), candidates.last() == Some(&Candidate::Cpu)))
    }

    #[test]
    fn a_request_overrides_the_prover() {
        use Policy::*;
        let any = Placement::default;
        let policy = |policy| placement(Some(policy), &[]);
        assert_eq!(outcome(gpus(), any(), any()), Ok((vec![0, 1], true)));
        assert_eq!(outcome(gpus(), policy(GpuOnly), any()), Ok((vec![0, 1], false)));
        assert_eq!(outcome(gpus(), policy(GpuOnly), policy(Cpu)), Ok((vec![], true)));
        assert_eq!(outcome(gpus(), policy(Cpu), policy(GpuOnly)), Ok((vec![0, 1], false)));
        assert_eq!(outcome(gpus(), placement(None, &["cuda:1"]), any()), Ok((vec![1], true)));
        assert_eq!(outcome(gpus(), placement(None, &["cuda:1"]), placement(None, &["cuda:0"])), Ok((vec![0], true)));
        assert_eq!(outcome(gpus(), placement(None, &["cuda:1"]), policy(GpuOnly)), Ok((vec![1], false)));
    }

    #[test]
    fn devices_are_found_by_number_and_uuid_in_the_order_given() {
        let only = |devices: &[&str]| outcome(gpus(), Placement::default(), placement(Some(Policy::GpuOnly), devices));
        assert_eq!(only(&["cuda:1", "cuda:0"]), Ok((vec![1, 0], false)));
        assert_eq!(only(&[SECOND, "gpu-00000000-AAAA", "cuda:1"]), Ok((vec![1, 0], false)));
        assert_eq!(only(&["GPU-00000000-b"]), Ok((vec![1], false)));
        assert_eq!(only(&["GPU-0"]), Err(302), "two devices begin so");
        assert_eq!(only(&["cuda:2"]), Err(302));
        assert_eq!(only(&["GPU-7"]), Err(302));
        // A name that nothing has is a mistake under every policy that looks for it.
        let named = placement(Some(Policy::PreferGpu), &["cuda:2"]);
        assert_eq!(outcome(gpus(), Placement::default(), named), Err(302));
    }

    #[test]
    fn without_gpus_the_policy_decides() {
        let policy = |policy| placement(Some(policy), &[]);
        let none = || FakeGpus::new(&[]);
        assert_eq!(outcome(none(), Placement::default(), policy(Policy::PreferGpu)), Ok((vec![], true)));
        assert_eq!(outcome(none(), Placement::default(), policy(Policy::GpuOnly)), Err(302));
        let broken = || FakeGpus::new(&[FIRST]).with_broken_list();
        assert_eq!(outcome(broken(), Placement::default(), policy(Policy::GpuOnly)), Err(302));
        let found = prover(broken(), Placement::default()).candidates(&policy(Policy::PreferGpu)).unwrap();
        assert_eq!(found.candidates, [Candidate::Cpu]);
        assert_eq!(found.fallbacks.len(), 1);
        // The CPU needs no GPUs, and they are not asked.
        assert_eq!(outcome(broken(), Placement::default(), policy(Policy::Cpu)), Ok((vec![], true)));
    }

    #[test]
    fn policies_and_placements_parse() {
        for (text, policy) in [("gpu-only", Policy::GpuOnly), ("prefer-gpu", Policy::PreferGpu), ("cpu", Policy::Cpu)] {
            assert_eq!(text.parse::<Policy>().unwrap(), policy);
        }
        assert_eq!("gpu".parse::<Policy>().unwrap_err().code(), 100);
        assert_eq!("auto".parse::<Placement>().unwrap(), Placement::default());
        assert_eq!("cpu".parse::<Placement>().unwrap(), placement(Some(Policy::Cpu), &[]));
        assert_eq!("gpu".parse::<Placement>().unwrap(), placement(Some(Policy::GpuOnly), &[]));
        let two = placement(Some(Policy::GpuOnly), &["cuda:3", "GPU-1234"]);
        assert_eq!("cuda:3, GPU-1234".parse::<Placement>().unwrap(), two);
        for wrong in ["", "cuda", "cuda:", "cuda:x", "cuda:-1", "0", "GPU-", "cuda:0,", "cpu,cuda:0"] {
            assert_eq!(wrong.parse::<Placement>().unwrap_err().code(), 100, "{wrong:?}");
        }
    }
}
