//! The functions of libcuda, found by name when they are first needed.

use std::ffi::{c_char, c_int, c_uint, c_void, CStr};
use std::sync::OnceLock;

use parking_lot::Mutex;

/// Handles of the driver.
pub(super) type Handle = *mut c_void;
/// A device's number within the driver.
pub(super) type DeviceNumber = c_int;
/// An address in a device's memory.
pub(super) type Address = u64;

/// What the driver's functions return when all is well. Codes stay integers: newer drivers have more of them than any
/// list that we could be compiled with.
pub(super) const SUCCESS: i32 = 0;
/// What cuInit returns where no device is visible.
const NO_DEVICE: i32 = 100;
pub(super) const OUT_OF_MEMORY: i32 = 2;
pub(super) const NOT_FOUND: i32 = 500;

/// One function with its name.
pub(super) struct Entry<F> {
    pub name: &'static str,
    pub function: F,
}

/// Declares the table: a field a function, which is found under the given name.
macro_rules! table {
    ($($field:ident = $name:literal ( $($argument:ty),* );)*) => {
        /// The functions that the library calls.
        pub(super) struct Driver {
            $(pub $field: Entry<unsafe extern "C" fn($($argument),*) -> i32>,)*
            /// Sizes of a kernel's parameters: of CUDA 12.4 and later.
            pub parameter_info: Option<unsafe extern "C" fn(Handle, usize, *mut usize, *mut usize) -> i32>,
        }

        impl Driver {
            /// Fills the table; the error is the name of the first function that is missing.
            fn fill(find: impl Fn(&CStr) -> Option<*mut c_void>) -> Result<Self, &'static str> {
                Ok(Driver {
                    $($field: {
                        let address = find(c_name(concat!($name, "\0"))).ok_or($name)?;
                        // SAFETY: the driver's header declares the function of this name with these arguments.
                        let function = unsafe {
                            std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) -> i32>(address)
                        };
                        Entry { name: $name, function }
                    },)*
                    parameter_info: find(c"cuFuncGetParamInfo").map(|address| {
                        // SAFETY: as above.
                        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Handle, usize, *mut usize, *mut usize) -> i32>(address) }
                    }),
                })
            }
        }
    };
}

table! {
    init = "cuInit"(c_uint);
    error_name = "cuGetErrorName"(i32, *mut *const c_char);
    error_string = "cuGetErrorString"(i32, *mut *const c_char);
    device_count = "cuDeviceGetCount"(*mut c_int);
    device_get = "cuDeviceGet"(*mut DeviceNumber, c_int);
    device_name = "cuDeviceGetName"(*mut c_char, c_int, DeviceNumber);
    device_uuid = "cuDeviceGetUuid_v2"(*mut u8, DeviceNumber);
    device_attribute = "cuDeviceGetAttribute"(*mut c_int, c_int, DeviceNumber);
    device_memory = "cuDeviceTotalMem_v2"(*mut usize, DeviceNumber);
    context_create = "cuCtxCreate_v2"(*mut Handle, c_uint, DeviceNumber);
    context_push = "cuCtxPushCurrent_v2"(Handle);
    context_pop = "cuCtxPopCurrent_v2"(*mut Handle);
    context_destroy = "cuCtxDestroy_v2"(Handle);
    module_load = "cuModuleLoadData"(*mut Handle, *const c_void);
    module_function = "cuModuleGetFunction"(*mut Handle, Handle, *const c_char);
    function_set = "cuFuncSetAttribute"(Handle, c_int, c_int);
    memory_allocate = "cuMemAlloc_v2"(*mut Address, usize);
    memory_free = "cuMemFree_v2"(Address);
    memory_info = "cuMemGetInfo_v2"(*mut usize, *mut usize);
    host_allocate = "cuMemHostAlloc"(*mut *mut c_void, usize, c_uint);
    host_free = "cuMemFreeHost"(*mut c_void);
    copy_to_device = "cuMemcpyHtoDAsync_v2"(Address, *const c_void, usize, Handle);
    copy_to_host = "cuMemcpyDtoHAsync_v2"(*mut c_void, Address, usize, Handle);
    copy_on_device = "cuMemcpyDtoDAsync_v2"(Address, Address, usize, Handle);
    set_bytes = "cuMemsetD8Async"(Address, u8, usize, Handle);
    stream_create = "cuStreamCreate"(*mut Handle, c_uint);
    stream_destroy = "cuStreamDestroy_v2"(Handle);
    stream_synchronize = "cuStreamSynchronize"(Handle);
    stream_wait = "cuStreamWaitEvent"(Handle, Handle, c_uint);
    event_create = "cuEventCreate"(*mut Handle, c_uint);
    event_destroy = "cuEventDestroy_v2"(Handle);
    event_record = "cuEventRecord"(Handle, Handle);
    event_query = "cuEventQuery"(Handle);
    event_synchronize = "cuEventSynchronize"(Handle);
    event_elapsed = "cuEventElapsedTime"(*mut f32, Handle, Handle);
    launch = "cuLaunchKernel"(Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void);
}

fn c_name(name: &'static str) -> &'static CStr {
    CStr::from_bytes_with_nul(name.as_bytes()).expect("the macro ends names with NUL")
}

/// Names under which the driver's library is found.
#[cfg(not(target_os = "windows"))]
const LIBRARIES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];
#[cfg(target_os = "windows")]
const LIBRARIES: [&str; 1] = ["nvcuda.dll"];

/// Why there is no driver.
pub(super) struct Unavailable {
    pub reason: String,
    /// It is there and does not work; otherwise this is simply a machine without a GPU.
    pub broken: bool,
}

impl Unavailable {
    fn broken(reason: String) -> Self {
        Unavailable { reason, broken: true }
    }
}

impl Driver {
    /// The driver, opened and initialised by the first call that succeeds, for as long as the process lives.
    pub fn get() -> Result<&'static Driver, Unavailable> {
        static DRIVER: OnceLock<Driver> = OnceLock::new();
        static OPENING: Mutex<()> = Mutex::new(());
        if let Some(driver) = DRIVER.get() {
            return Ok(driver);
        }
        let _one_at_a_time = OPENING.lock();
        if DRIVER.get().is_none() {
            let driver = Driver::open_any()?;
            driver.initialise()?;
            let _ = DRIVER.set(driver);
        }
        Ok(DRIVER.get().expect("it was just set"))
    }

    #[cfg(feature = "emulator")]
    fn open_any() -> Result<Self, Unavailable> {
        match super::emulated::wanted() {
            true => Driver::fill(super::emulated::symbol)
                .map_err(|name| Unavailable::broken(format!("the emulator has no {name}"))),
            false => Driver::open(&LIBRARIES),
        }
    }

    #[cfg(not(feature = "emulator"))]
    fn open_any() -> Result<Self, Unavailable> {
        Driver::open(&LIBRARIES)
    }

    /// Opens the first of these libraries that there is.
    fn open(names: &[&str]) -> Result<Self, Unavailable> {
        let mut reason = String::new();
        for name in names {
            // SAFETY: the driver's library may be opened at any time.
            match unsafe { libloading::Library::new(name) } {
                Ok(library) => {
                    // Never closed: the table's pointers must stay good.
                    let library: &'static libloading::Library = Box::leak(Box::new(library));
                    return Driver::fill(|symbol| {
                        // SAFETY: only the address is taken.
                        let found = unsafe { library.get::<*mut c_void>(symbol.to_bytes_with_nul()) };
                        found.ok().map(|found| *found)
                    })
                    .map_err(|missing| {
                        Unavailable::broken(format!("{name} has no {missing}; install a newer NVIDIA driver"))
                    });
                }
                Err(error) if reason.is_empty() => reason = error.to_string(),
                Err(_) => (),
            }
        }
        Err(Unavailable { reason: format!("the NVIDIA driver is not installed ({reason})"), broken: false })
    }

    fn initialise(&self) -> Result<(), Unavailable> {
        // SAFETY: cuInit may be called at any time.
        let code = unsafe { (self.init.function)(0) };
        let reason = || format!("cuInit failed with {}", self.describe(code));
        match code {
            SUCCESS => Ok(()),
            code => Err(Unavailable { reason: reason(), broken: code != NO_DEVICE }),
        }
    }

    /// A code with the driver's words for it.
    pub fn describe(&self, code: i32) -> String {
        let text = |function: unsafe extern "C" fn(i32, *mut *const c_char) -> i32| {
            let mut text = std::ptr::null();
            // SAFETY: the function stores a static string or null.
            unsafe {
                let known = function(code, &mut text) == SUCCESS && !text.is_null();
                known.then(|| CStr::from_ptr(text).to_string_lossy())
            }
        };
        match (text(self.error_name.function), text(self.error_string.function)) {
            (Some(name), Some(words)) => format!("{name} ({code}: {words})"),
            _ => format!("code {code}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_a_reason_and_no_crash() {
        let Unavailable { reason, broken } = Driver::open(&["libthere-is-no-such-driver.so"]).err().unwrap();
        assert!(
            !broken && reason.contains("not installed") && reason.contains("libthere-is-no-such-driver.so"),
            "{reason}"
        );
    }

    #[test]
    fn a_library_without_a_function_is_named_with_it() {
        let Unavailable { reason, broken } = Driver::open(&["libc.so.6"]).err().unwrap();
        assert!(broken && reason.contains("libc.so.6 has no cuInit"), "{reason}");
    }
}
