//! Times of kernels, for those who tune them.

use crate::backend::accelerator::{accelerators, Measurement};
use crate::backend::Figure;
use crate::error::{Error, Result};
use crate::pipeline::Control;
use crate::porep::{templates, SectorSize};
use crate::r1cs::Constraints;

use super::DeviceName;

/// The binary logarithms of sizes that can be measured.
pub const MEASURED_SIZES: std::ops::RangeInclusive<u32> = 6..=28;

/// Times the kernels of a GPU: transforms and sums of up to 2^`largest` elements, and evaluations of Filecoin's circuits
/// with as many rows. `report` gets each figure when it is there.
///
/// # Errors
/// [`Error::Device`] if there is no such GPU, [`Error::Memory`] if it has too little memory for the sizes,
/// [`Error::Argument`] for a size out of [`MEASURED_SIZES`]; cancelled.
pub fn measure_kernels(
    device: &DeviceName,
    largest: u32,
    control: &Control,
    report: &mut dyn FnMut(&Figure),
) -> Result<()> {
    if !MEASURED_SIZES.contains(&largest) {
        let detail = format!("2^{largest} elements; sizes from 2^6 to 2^28 can be measured");
        return Err(Error::Argument { name: "largest", detail });
    }
    let accelerators = accelerators();
    let devices = accelerators.list()?;
    if devices.is_empty() {
        return Err(Error::Device { device: device.to_string(), detail: accelerators.why_none() });
    }
    let device = device.find(&devices)?;
    let systems = [SectorSize::KiB2, SectorSize::GiB32].into_iter().filter(|size| log_rows(*size) <= largest);
    let systems = systems.map(|size| Ok((size.to_string(), templates(size, control)?))).collect::<Result<Vec<_>>>()?;
    let systems: Vec<(String, &dyn Constraints)> =
        systems.iter().map(|(name, system)| (name.clone(), system as &dyn Constraints)).collect();
    let mut report = |figure| {
        control.check("measuring")?;
        report(&figure);
        Ok(())
    };
    accelerators.measure(device, &mut Measurement { largest, systems: &systems, report: &mut report })
}

fn log_rows(size: SectorSize) -> u32 {
    match size {
        SectorSize::GiB32 | SectorSize::GiB64 => 27,
        SectorSize::MiB512 => 23,
        _ => 22,
    }
}
