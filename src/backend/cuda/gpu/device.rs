//! What a device is, without opening it.

use std::ffi::{c_char, c_int, CStr};
use std::fmt::Write;

use super::context::Gpu;
use super::driver::{DeviceNumber, Driver, Unavailable, SUCCESS};
use crate::error::{Error, Result};

// Attributes, by the driver's numbers.
const MULTIPROCESSORS: c_int = 16;
const COMPUTE_MAJOR: c_int = 75;
const COMPUTE_MINOR: c_int = 76;
const SHARED_OPTIN: c_int = 97;

/// What is known of a device.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Properties {
    /// Its number; `CUDA_VISIBLE_DEVICES` may hide and reorder devices.
    pub ordinal: u32,
    /// The name that its maker gave it.
    pub name: String,
    /// What tells it apart from all others, as `GPU-12345678-...`.
    pub uuid: String,
    /// Compute capability, as (9, 0).
    pub compute: (u32, u32),
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of its memory.
    pub memory: u64,
    /// The most bytes of shared memory that a block can ask for.
    pub shared_optin: u32,
}

/// What the sizes of kernels depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// The most bytes of shared memory that a block can ask for.
    pub shared_optin: u32,
}

impl From<&Gpu> for Limits {
    fn from(gpu: &Gpu) -> Self {
        gpu.properties().limits()
    }
}

impl Properties {
    /// What the sizes of kernels depend on.
    pub fn limits(&self) -> Limits {
        Limits { multiprocessors: self.multiprocessors, shared_optin: self.shared_optin }
    }

    /// How messages call it, as `cuda:0 (NVIDIA H200)`.
    pub fn label(&self) -> String {
        format!("cuda:{} ({})", self.ordinal, self.name)
    }
}

/// The properties of every device that the driver shows; none where there is no driver.
///
/// # Errors
/// [`Error::Device`] with the reason if there is a driver and it does not work.
pub fn properties_of_all() -> Result<Vec<Properties>> {
    let driver = match Driver::get() {
        Ok(driver) => driver,
        Err(Unavailable { broken: false, .. }) => return Ok(Vec::new()),
        Err(unavailable) => return Err(unavailable.into_error()),
    };
    let mut count = 0;
    // SAFETY: the driver stores the count.
    let code = unsafe { (driver.device_count.function)(&mut count) };
    check(driver, driver.device_count.name, code)?;
    (0..count.max(0) as u32).map(|ordinal| Ok(look_at(driver, ordinal)?.1)).collect()
}

/// Why [`properties_of_all`] shows none.
pub fn why_none() -> String {
    match Driver::get() {
        Ok(_) => "the NVIDIA driver shows no GPU; CUDA_VISIBLE_DEVICES can hide them".into(),
        Err(unavailable) => unavailable.reason,
    }
}

impl Unavailable {
    pub(super) fn into_error(self) -> Error {
        Error::Device { device: "cuda".into(), detail: self.reason }
    }
}

fn check(driver: &Driver, call: &'static str, code: i32) -> Result<()> {
    match code {
        SUCCESS => Ok(()),
        code => {
            let detail = format!("{call} failed with {}", driver.describe(code));
            Err(Error::Device { device: "cuda".into(), detail })
        }
    }
}

/// A device's number in the driver, and its properties.
pub(super) fn look_at(driver: &Driver, ordinal: u32) -> Result<(DeviceNumber, Properties)> {
    let mut device = 0;
    // SAFETY: the driver stores the device's number; an ordinal that does not exist is an error code.
    let code = unsafe { (driver.device_get.function)(&mut device, ordinal as c_int) };
    check(driver, driver.device_get.name, code)
        .map_err(|error| Error::Device { device: format!("cuda:{ordinal}"), detail: error.to_string() })?;
    let attribute = |number| {
        let mut value = 0;
        // SAFETY: the driver stores the value of this device's attribute.
        let code = unsafe { (driver.device_attribute.function)(&mut value, number, device) };
        check(driver, driver.device_attribute.name, code).map(|()| value.max(0) as u32)
    };
    let mut memory = 0;
    // SAFETY: the driver stores the number of bytes.
    let code = unsafe { (driver.device_memory.function)(&mut memory, device) };
    check(driver, driver.device_memory.name, code)?;
    let properties = Properties {
        ordinal,
        name: name(driver, device)?,
        uuid: uuid(driver, device)?,
        compute: (attribute(COMPUTE_MAJOR)?, attribute(COMPUTE_MINOR)?),
        multiprocessors: attribute(MULTIPROCESSORS)?,
        memory: memory as u64,
        shared_optin: attribute(SHARED_OPTIN)?,
    };
    Ok((device, properties))
}

fn name(driver: &Driver, device: DeviceNumber) -> Result<String> {
    let mut text: [c_char; 256] = [0; 256];
    // SAFETY: the driver writes at most so many characters, NUL included; the last one is never overwritten.
    let code = unsafe { (driver.device_name.function)(text.as_mut_ptr(), 255, device) };
    check(driver, driver.device_name.name, code)?;
    // SAFETY: the array ends with NUL.
    Ok(unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned())
}

fn uuid(driver: &Driver, device: DeviceNumber) -> Result<String> {
    let mut bytes = [0u8; 16];
    // SAFETY: the driver writes sixteen bytes.
    let code = unsafe { (driver.device_uuid.function)(bytes.as_mut_ptr(), device) };
    check(driver, driver.device_uuid.name, code)?;
    let mut text = "GPU".to_owned();
    for (index, byte) in bytes.iter().enumerate() {
        let dash = if [0, 4, 6, 8, 10].contains(&index) { "-" } else { "" };
        write!(text, "{dash}{byte:02x}").expect("a string can be written to");
    }
    Ok(text)
}
