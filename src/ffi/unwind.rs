//! Calls foreign functions and survives what they throw: Rust panics of this or another runtime, and C++ exceptions.
//!
//! `catch_unwind` ends the process when it meets an exception of another language or of another Rust archive. So
//! foreign functions are called through a frame with a personality of its own, which stops all exceptions but
//! the panics of this runtime; those go on to `catch_unwind`.

use std::ffi::c_void;

use crate::panics;

/// Runs `call`, which calls a foreign function. `false` if something was thrown; that is dropped.
pub(super) fn survives(mut call: impl FnMut()) -> bool {
    unsafe extern "C-unwind" fn run<F: FnMut()>(call: *mut c_void) {
        // SAFETY: `call` is the closure below, which nobody else uses meanwhile.
        unsafe { (*call.cast::<F>())() }
    }
    fn function_of<F: FnMut()>(_: &F) -> unsafe extern "C-unwind" fn(*mut c_void) {
        run::<F>
    }
    frame::know_own_panics();
    let function = function_of(&call);
    let mut caught = false;
    let panicked = panics::guard(|| {
        // SAFETY: the function and its argument belong together.
        caught = unsafe { frame::call(function, (&raw mut call).cast()) };
        Ok(())
    });
    !caught && panicked.is_ok()
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod frame {
    use std::arch::global_asm;
    use std::panic::{self, AssertUnwindSafe};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::Once;

    use super::c_void;

    /// The classes of exceptions that are Rust panics: "MOZ\0RUST" as older and newer compilers write it.
    const RUST_CLASSES: [u64; 2] = [u64::from_be_bytes(*b"MOZ\0RUST"), u64::from_ne_bytes(*b"MOZ\0RUST")];

    // Numbers of the Itanium C++ ABI, "Exception Handling".
    const CLEANUP_PHASE: i32 = 2;
    const SEARCH_PHASE: i32 = 1;
    const HANDLER_FRAME: i32 = 4;
    const FORCE_UNWIND: i32 = 8;
    const HANDLER_FOUND: i32 = 6;
    const INSTALL_CONTEXT: i32 = 7;
    const CONTINUE_UNWIND: i32 = 8;

    /// The begin of an exception, as every runtime lays it out.
    #[repr(C)]
    struct Exception {
        class: u64,
        cleanup: usize,
    }

    extern "C" {
        fn _Unwind_GetLanguageSpecificData(context: *mut c_void) -> usize;
        fn _Unwind_SetIP(context: *mut c_void, address: usize);
        fn _Unwind_SetGR(context: *mut c_void, register: i32, value: usize);
        fn _Unwind_DeleteException(exception: *mut Exception);
    }

    extern "C-unwind" {
        /// Calls the function with the argument. Returns 1 if it threw and the exception was disposed of, else 0.
        #[link_name = "porep_unwind_frame"]
        fn unwind_frame(function: unsafe extern "C-unwind" fn(*mut c_void), argument: *mut c_void) -> i32;
    }

    /// What this runtime's panics name as their destructor, which no other runtime's do. 0 until it is known.
    static OWN_CLEANUP: AtomicUsize = AtomicUsize::new(0);

    /// Makes one silent panic, by which the personality learns what ours look like.
    pub fn know_own_panics() {
        static ONCE: Once = Once::new();
        unsafe extern "C-unwind" fn throw(_: *mut c_void) {
            panic::resume_unwind(Box::new(()));
        }
        ONCE.call_once(|| {
            // SAFETY: the function ignores its argument.
            let thrown = panic::catch_unwind(AssertUnwindSafe(|| unsafe { call(throw, std::ptr::null_mut()) }));
            debug_assert!(thrown.is_err(), "our own panic goes on to catch_unwind");
        });
    }

    /// Calls the function. Whether it threw a foreign exception; our own panics unwind further.
    pub unsafe fn call(function: unsafe extern "C-unwind" fn(*mut c_void), argument: *mut c_void) -> bool {
        // SAFETY: the caller's promise.
        unsafe { unwind_frame(function, argument) != 0 }
    }

    /// The personality of `porep_unwind_frame`, whose language-specific data is the address of its handler.
    unsafe extern "C" fn personality(
        _version: i32,
        actions: i32,
        class: u64,
        exception: *mut Exception,
        context: *mut c_void,
    ) -> i32 {
        if actions & FORCE_UNWIND != 0 {
            return CONTINUE_UNWIND;
        }
        if RUST_CLASSES.contains(&class) {
            // SAFETY: the unwinder passes the exception that is being thrown.
            let cleanup = unsafe { (*exception).cleanup };
            let own = OWN_CLEANUP.compare_exchange(0, cleanup, Ordering::AcqRel, Ordering::Acquire);
            if own.is_ok() || own == Err(cleanup) {
                return CONTINUE_UNWIND;
            }
        }
        if actions & SEARCH_PHASE != 0 {
            return HANDLER_FOUND;
        }
        if actions & CLEANUP_PHASE != 0 && actions & HANDLER_FRAME != 0 {
            // SAFETY: the context is the unwinder's, of this frame. Register 0 holds the exception pointer for handlers on
            // both architectures.
            unsafe {
                _Unwind_SetGR(context, 0, exception as usize);
                _Unwind_SetIP(context, _Unwind_GetLanguageSpecificData(context));
            }
            return INSTALL_CONTEXT;
        }
        CONTINUE_UNWIND
    }

    /// Frees an exception that was caught, through the runtime that made it. A panic of another Rust runtime is
    /// left where it is: that runtime ends the process if anyone but itself drops one.
    unsafe extern "C" fn dispose(exception: *mut Exception) {
        // SAFETY: the exception was caught by the frame, which is done with it.
        unsafe {
            if !RUST_CLASSES.contains(&(*exception).class) {
                _Unwind_DeleteException(exception);
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    global_asm!(
        ".pushsection .data.rel.local.porep_unwind, \"aw\", @progbits",
        ".p2align 3",
        ".Lporep_personality: .quad {personality}",
        ".popsection",
        ".pushsection .text.porep_unwind_frame, \"ax\", @progbits",
        ".globl porep_unwind_frame",
        ".hidden porep_unwind_frame",
        ".type porep_unwind_frame, @function",
        "porep_unwind_frame:",
        ".cfi_startproc",
        ".cfi_personality 0x9b, .Lporep_personality",
        ".cfi_lsda 0x1b, .Lporep_handler",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rax, rdi",
        "mov rdi, rsi",
        "call rax",
        "xor eax, eax",
        "5: pop rbp",
        ".cfi_remember_state",
        ".cfi_def_cfa_offset 8",
        "ret",
        ".cfi_restore_state",
        // The handler: rax is the exception.
        ".Lporep_handler: mov rdi, rax",
        "call {dispose}",
        "mov eax, 1",
        "jmp 5b",
        ".cfi_endproc",
        ".size porep_unwind_frame, . - porep_unwind_frame",
        ".popsection",
        personality = sym personality,
        dispose = sym dispose,
    );

    #[cfg(target_arch = "aarch64")]
    global_asm!(
        ".pushsection .data.rel.local.porep_unwind, \"aw\", @progbits",
        ".p2align 3",
        ".Lporep_personality: .quad {personality}",
        ".popsection",
        ".pushsection .text.porep_unwind_frame, \"ax\", @progbits",
        ".globl porep_unwind_frame",
        ".hidden porep_unwind_frame",
        ".type porep_unwind_frame, @function",
        ".p2align 2",
        "porep_unwind_frame:",
        ".cfi_startproc",
        ".cfi_personality 0x9b, .Lporep_personality",
        ".cfi_lsda 0x1b, .Lporep_handler",
        "stp x29, x30, [sp, #-16]!",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset x29, -16",
        ".cfi_offset x30, -8",
        "mov x9, x0",
        "mov x0, x1",
        "blr x9",
        "mov w0, #0",
        "5: ldp x29, x30, [sp], #16",
        ".cfi_remember_state",
        ".cfi_def_cfa_offset 0",
        ".cfi_restore x29",
        ".cfi_restore x30",
        "ret",
        ".cfi_restore_state",
        // The handler: x0 is the exception.
        ".Lporep_handler: bl {dispose}",
        "mov w0, #1",
        "b 5b",
        ".cfi_endproc",
        ".size porep_unwind_frame, . - porep_unwind_frame",
        ".popsection",
        personality = sym personality,
        dispose = sym dispose,
    );
}

/// Elsewhere only panics of this runtime are survived.
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod frame {
    use super::c_void;

    pub fn know_own_panics() {}

    pub unsafe fn call(function: unsafe extern "C-unwind" fn(*mut c_void), argument: *mut c_void) -> bool {
        // SAFETY: the caller's promise.
        unsafe { function(argument) };
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_ours_is_caught_and_the_next_call_works() {
        for _ in 0..3 {
            assert!(!survives(|| panic!("thrown {}", 1)));
            assert!(!std::thread::panicking());
            let mut called = false;
            assert!(survives(|| called = true));
            assert!(called);
        }
    }

    #[test]
    #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
    fn exceptions_of_other_languages_and_runtimes_are_caught_and_freed() {
        use std::sync::atomic::{AtomicU32, Ordering};
        static FREED: AtomicU32 = AtomicU32::new(0);
        extern "C" fn cleanup(_reason: i32, _exception: *mut c_void) {
            FREED.fetch_add(1, Ordering::SeqCst);
        }
        extern "C-unwind" {
            #[link_name = "_Unwind_RaiseException"]
            fn raise(exception: *mut [usize; 8]) -> i32;
        }
        let cleanup = cleanup as extern "C" fn(i32, *mut c_void) as usize;
        for (class, freed) in [(0x434c_4e47_432b_2b00usize, 1), (0x4d4f_5a00_5255_5354, 0), (0x5453_5552_005a_4f4d, 0)]
        {
            FREED.store(0, Ordering::SeqCst);
            let exception = Box::leak(Box::new([class, cleanup, 0, 0, 0, 0, 0, 0]));
            // SAFETY: an exception as the ABI describes it, which lives for ever.
            let survived = survives(|| unsafe {
                raise(exception);
            });
            assert!(!survived, "{class:x}");
            assert_eq!(FREED.load(Ordering::SeqCst), freed, "{class:x}");
        }
    }
}
