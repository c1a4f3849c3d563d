//! The emulated machine, and what tests order of it.

use std::ffi::{c_char, c_void, CStr, CString};

use crate::environment::TEST_GPU_VARIABLE;

extern "C" {
    fn cuporep_emulated_symbol(name: *const c_char) -> *mut c_void;
    fn cuporep_emulated_reset();
    fn cuporep_emulated_devices(count: i32);
    fn cuporep_emulated_memory(bytes: u64);
    fn cuporep_emulated_fault(call: *const c_char, nth: i32, code: i32, sticky: i32);
    fn cuporep_emulated_corrupt(nth: i32);
    fn cuporep_emulated_census(census: *mut Census);
}

/// What is alive on the emulated machine.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Census {
    pub contexts: u64,
    pub streams: u64,
    pub events: u64,
    pub modules: u64,
    pub allocations: u64,
    pub bytes: u64,
    pub host_allocations: u64,
    pub host_bytes: u64,
    /// Ordered faults that did not happen yet.
    pub faults: u64,
}

/// Whether the emulator takes the place of the real driver: where `CUPOREP_TEST_GPU` is `emulated`, and in unit tests
/// unless it names a real device. Nobody else wants it: it is far slower than the CPU.
pub fn wanted() -> bool {
    match std::env::var_os(TEST_GPU_VARIABLE) {
        Some(value) => value == "emulated",
        None => cfg!(test),
    }
}

/// The emulator's function of this name.
pub(super) fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: looks the name up in a constant list.
    let address = unsafe { cuporep_emulated_symbol(name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

/// One device of 4 GiB, no faults.
pub fn reset() {
    // SAFETY: takes a lock and sets numbers, as all of these do.
    unsafe { cuporep_emulated_reset() }
}

/// How many devices there are from now on, at most 16.
pub fn set_devices(count: u32) {
    // SAFETY: as above.
    unsafe { cuporep_emulated_devices(count as i32) }
}

/// Bytes of each device's memory.
pub fn set_memory(bytes: u64) {
    // SAFETY: as above.
    unsafe { cuporep_emulated_memory(bytes) }
}

/// Makes the nth coming call of this name, from 0, fail with the code; a sticky one spoils the context.
pub fn fault(call: &str, nth: u32, code: i32, sticky: bool) {
    let call = CString::new(call).expect("a function's name has no NUL");
    // SAFETY: the name is copied.
    unsafe { cuporep_emulated_fault(call.as_ptr(), nth as i32, code, sticky.into()) }
}

/// Flips a bit of the nth coming copy to the host, from 0, and tells nobody.
pub fn corrupt(nth: u32) {
    // SAFETY: as above.
    unsafe { cuporep_emulated_corrupt(nth as i32) }
}

/// What is alive now.
pub fn census() -> Census {
    let mut census = Census::default();
    // SAFETY: fills the structure, which has the same layout in C.
    unsafe { cuporep_emulated_census(&mut census) };
    census
}
