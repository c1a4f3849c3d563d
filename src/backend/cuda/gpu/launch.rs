//! Kernels by name, and their arguments.

use std::ffi::{c_int, c_void, CString};
use std::ptr::null_mut;

use super::context::Context;
use super::driver::{Handle, NOT_FOUND, SUCCESS};
use super::{Plain, Span};
use crate::error::{Error, Result};

/// Shared memory that a block may have without asking.
const SHARED_BYTES: u32 = 48 << 10;
/// The attribute that raises it, by the driver's number.
const MAX_DYNAMIC_SHARED: c_int = 8;

/// A kernel that was looked up.
#[derive(Clone)]
pub(super) struct Function {
    pub handle: Handle,
    /// Sizes of its parameters, if the driver tells.
    parameters: Option<Vec<usize>>,
    /// Shared memory that a block may have.
    shared: u32,
}

/// One argument of a launch, by value.
#[repr(C, align(16))]
#[derive(Clone, Copy)]
pub struct Arg {
    bytes: [u8; Arg::CAPACITY],
    size: usize,
}

/// What can be passed to a kernel.
pub trait Argument {
    /// As the kernel takes it.
    fn into_arg(self) -> Arg;
}

impl<T: Plain> Argument for T {
    fn into_arg(self) -> Arg {
        let size = size_of::<T>();
        assert!(size <= Arg::CAPACITY && align_of::<T>() <= align_of::<Arg>(), "an argument of {size} bytes");
        let mut arg = Arg { bytes: [0; Arg::CAPACITY], size };
        // SAFETY: it fits; a Plain value has no padding.
        unsafe { std::ptr::copy_nonoverlapping((&raw const self).cast(), arg.bytes.as_mut_ptr(), size) };
        arg
    }
}

/// A span is passed as a pointer.
impl<T: Plain> Argument for Span<T> {
    fn into_arg(self) -> Arg {
        self.address().into_arg()
    }
}

impl Arg {
    /// The most bytes that an argument may have.
    pub const CAPACITY: usize = 256;

    /// An argument of this value.
    pub fn new(value: impl Argument) -> Self {
        value.into_arg()
    }
}

/// The arguments of a launch: spans become pointers, numbers and small plain types are passed by value. The types must
/// be those of the kernel's parameters: write `5u32`, not `5`.
#[macro_export]
#[doc(hidden)]
macro_rules! cuporep_kernel_args {
    ($($value:expr),* $(,)?) => { [$($crate::backend::cuda::gpu::Arg::new($value)),*] };
}
pub use crate::cuporep_kernel_args as args;

impl Context {
    /// The kernel of this name, ready for launches with so many bytes of dynamic shared memory. The context must be
    /// current.
    pub fn function(&self, kernel: &'static str, shared: u32) -> Result<Function> {
        let mut functions = self.functions.lock();
        if !functions.contains_key(kernel) {
            functions.insert(kernel, self.find(kernel)?);
        }
        let function = functions.get_mut(kernel).expect("it was just inserted");
        if shared > function.shared {
            let entry = &self.driver.function_set;
            // SAFETY: the function belongs to a loaded module.
            let code = unsafe { (entry.function)(function.handle, MAX_DYNAMIC_SHARED, shared as c_int) };
            self.check(entry.name, code)?;
            function.shared = shared;
        }
        Ok(function.clone())
    }

    fn find(&self, kernel: &'static str) -> Result<Function> {
        let name = CString::new(kernel).map_err(|_| Error::internal("a kernel's name has a NUL"))?;
        let entry = &self.driver.module_function;
        for module in self.modules() {
            let mut handle = null_mut();
            // SAFETY: the module is loaded; the driver stores the function.
            match unsafe { (entry.function)(&mut handle, module, name.as_ptr()) } {
                NOT_FOUND => continue,
                code => self.check(entry.name, code)?,
            }
            return Ok(Function { handle, parameters: self.parameter_sizes(handle), shared: SHARED_BYTES });
        }
        Err(Error::internal(format!("no module has a kernel {kernel}")))
    }

    fn parameter_sizes(&self, function: Handle) -> Option<Vec<usize>> {
        let info = self.driver.parameter_info?;
        let mut sizes = Vec::new();
        let (mut offset, mut size) = (0, 0);
        // SAFETY: the driver stores two numbers; an index past the last parameter is an error code.
        while unsafe { info(function, sizes.len(), &mut offset, &mut size) } == SUCCESS {
            sizes.push(size);
        }
        Some(sizes)
    }
}

impl Function {
    /// Refuses arguments of which the kernel would read something else.
    pub fn check(&self, kernel: &str, args: &[Arg]) -> Result<()> {
        let given: Vec<usize> = args.iter().map(|arg| arg.size).collect();
        match &self.parameters {
            Some(sizes) if *sizes != given => {
                Err(Error::internal(format!("kernel {kernel} has parameters of {sizes:?} bytes, was given {given:?}")))
            }
            _ => Ok(()),
        }
    }
}

/// Pointers to the arguments, as the driver takes them; it only reads what they point to.
pub(super) fn pointers(args: &[Arg]) -> Vec<*mut c_void> {
    args.iter().map(|arg| arg.bytes.as_ptr().cast_mut().cast()).collect()
}
