//! The structs of the C ABI, and how those that carry their size are read and written.

use std::ffi::{c_char, c_void};
use std::mem::{offset_of, size_of, MaybeUninit};
use std::ptr;

use crate::error::{Error, Result};

/// A proof buffer of this many bytes is large enough for every registered proof.
pub const CUPOREP_PROOF_BYTES_MAX: usize = 24192;

/// Entries of `stage_ns` in a report; more than there are stages.
pub const CUPOREP_STAGES_MAX: usize = 32;

/// How a prover is set up. All zero but `struct_size`: everything from the environment, else from defaults.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cuporep_config {
    /// sizeof(struct cuporep_config).
    pub struct_size: usize,
    /// Directory of the proving parameters. NULL or empty: FIL_PROOFS_PARAMETER_CACHE, else
    /// /var/tmp/filecoin-proof-parameters.
    pub parameter_dir: *const c_char,
    /// Directory for recorded circuits and file digests. NULL or empty: CUPOREP_CACHE_DIR, else `cuporep-cache`
    /// beside the parameters, else the user's cache directory.
    pub cache_dir: *const c_char,
    /// Indices of the devices to use, as cuporep_device_info() counts them. NULL with 0: all.
    pub devices: *const u32,
    /// Length of `devices`.
    pub devices_len: usize,
    /// One of `enum cuporep_policy`.
    pub policy: i32,
    /// Threads of the CPU backend. 0: CUPOREP_THREADS, else one per core.
    pub threads: u32,
    /// Bytes of host memory that all proofs together may take, with what stays loaded between them. 0: CUPOREP_MEMORY,
    /// else what the system has available.
    pub host_bytes: u64,
    /// Bytes of memory that may be used on each device. 0: what is free there.
    pub device_bytes: u64,
    /// The devices to use by name instead, separated by commas: `cuda:0`, or a UUID, or so much of its beginning that
    /// only one device has it. NULL or empty: `devices`.
    pub device_names: *const c_char,
    /// Proofs that are in work on each device at once, from 1 to 64: one computes there, the others' witnesses are made
    /// and their bytes verified meanwhile. 0: CUPOREP_GPU_WORKERS, else 2.
    pub gpu_workers: u64,
}

/// What a progress callback is told.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cuporep_event {
    /// sizeof(struct cuporep_event) of the library: members beyond it do not exist.
    pub struct_size: usize,
    /// The request id, or the empty text.
    pub request_id: *const c_char,
    /// One of `enum cuporep_stage`.
    pub stage: i32,
    /// The partition that the stage works on, or -1.
    pub partition: i32,
    /// 0: the stage begins. 1: it has ended.
    pub ended: i32,
    /// How long the stage took, in nanoseconds, if it has ended.
    pub elapsed_ns: u64,
}

/// Is told the begin and the end of each stage. `event` is valid during the call only.
pub type cuporep_progress_fn = Option<unsafe extern "C-unwind" fn(user: *mut c_void, event: *const cuporep_event)>;

/// Receives log lines. `level` is one of `enum cuporep_log_level`; the texts are valid during the call only.
pub type cuporep_log_fn =
    Option<unsafe extern "C-unwind" fn(user: *mut c_void, level: i32, target: *const c_char, message: *const c_char)>;

/// One piece of work. Members that a function does not mention are ignored by it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cuporep_request {
    /// sizeof(struct cuporep_request).
    pub struct_size: usize,
    /// The output of seal commit phase 1: JSON, also in the envelope of lotus-bench.
    pub c1: *const u8,
    /// Length of `c1`.
    pub c1_len: usize,
    /// The sector number.
    pub sector_number: u64,
    /// The miner's actor id: 1000 for f01000.
    pub miner_actor_id: u64,
    /// Indices of the devices to use. NULL with 0: those of the prover.
    pub devices: *const u32,
    /// Length of `devices`.
    pub devices_len: usize,
    /// One of `enum cuporep_policy`.
    pub policy: i32,
    /// From -100 to 100: each level counts as ten seconds of waiting.
    pub priority: i32,
    /// Names the call in logs and events. NULL: no name.
    pub request_id: *const c_char,
    /// Stops the call when it is cancelled. NULL: nothing does. May be freed while the call runs.
    pub cancel_token: *const cuporep_cancel_token,
    /// 0: no deadline. 1: `deadline_ms` counts.
    pub has_deadline: i32,
    /// Milliseconds from the begin of the call after which it stops; 0 has already passed.
    pub deadline_ms: u64,
    /// Is told the begin and the end of each stage. NULL: nobody is.
    pub progress: cuporep_progress_fn,
    /// The first argument of `progress`.
    pub progress_user: *mut c_void,
    /// 1: the miner is not known and `miner_actor_id` is ignored. The replica id is then taken as the C1 output has
    /// it, and everything else is checked against it. 0: it must be that of the sector and the miner.
    pub miner_unknown: i32,
    /// 1: the proof is what goes on chain, as seal commit phase 2 of a node returns it. That of a non-interactive
    /// proof would be an aggregate, which this version does not make: CUPOREP_STATUS_PROOF_TYPE, before anything long
    /// is done. 0: the proofs of the partitions, of every kind.
    pub on_chain: i32,
    /// The devices to use by name instead, as in a configuration. NULL or empty: `devices`.
    pub device_names: *const c_char,
}

/// How a proof was made. On failure the stage times are those until then and all else is zero.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cuporep_report {
    /// sizeof(struct cuporep_report), set by the caller.
    pub struct_size: usize,
    /// The number of the registered proof.
    pub registered_proof: u64,
    /// Partitions, of 192 bytes each.
    pub partitions: u32,
    /// 1: made with test parameters; the proof is worth nothing.
    pub insecure_parameters: u32,
    /// Attempts that failed on a device before one made the proof.
    pub fallbacks: u32,
    /// 1: the progress callback threw and was not called again.
    pub progress_failed: u32,
    /// Bytes of host memory that were set aside.
    pub host_bytes: u64,
    /// Bytes of device memory that were set aside.
    pub device_bytes: u64,
    /// The whole call, in nanoseconds.
    pub total_ns: u64,
    /// Nanoseconds by `enum cuporep_stage`; sums over partitions, which may run at the same time.
    pub stage_ns: [u64; CUPOREP_STAGES_MAX],
    /// What made the proof, such as `cpu`; several are separated by commas.
    pub device: [c_char; 256],
    /// Why those attempts failed, one a line, cut where there is no more room.
    pub fallback_reasons: [c_char; 1024],
}

/// What is in a C1 output that passed all checks.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cuporep_c1_info {
    /// sizeof(struct cuporep_c1_info), set by the caller.
    pub struct_size: usize,
    /// The number of the registered proof.
    pub registered_proof: u64,
    /// Bytes of the sector.
    pub sector_size: u64,
    /// Partitions.
    pub partitions: usize,
    /// Bytes of the proof.
    pub proof_len: usize,
    /// The commitment to the replica.
    pub comm_r: [u8; 32],
    /// The commitment to the data.
    pub comm_d: [u8; 32],
}

/// A device that can make proofs.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cuporep_device {
    /// sizeof(struct cuporep_device), set by the caller.
    pub struct_size: usize,
    /// Bytes of its memory.
    pub memory: u64,
    /// The name that its maker gave it.
    pub name: [c_char; 256],
    /// What tells it apart from all others.
    pub uuid: [c_char; 64],
    /// Bytes of its memory that nobody holds; 0 where it cannot be asked.
    pub free_memory: u64,
    /// Its number, as in `cuda:0`.
    pub ordinal: u32,
    /// Its compute capability without the point: 90 for 9.0.
    pub compute_capability: u32,
}

/// Stops calls that carry it.
pub struct cuporep_cancel_token {
    pub(super) token: crate::pipeline::CancelToken,
}

/// A struct that begins with its size, which tells its version.
///
/// # Safety
/// The type is `repr(C)`, begins with `struct_size: usize`, and all its bytes may be zero.
pub(super) unsafe trait SizedStruct: Copy {
    /// The name in messages.
    const NAME: &'static str;
    /// The sizes of all versions so far; members beyond a version's size are zero.
    const SIZES: &'static [usize];
}

/// Each struct with the first members of its later versions: an older one ends before them.
macro_rules! sized {
    ($($name:ident($($first:ident)*))*) => {$(
        // SAFETY: defined above, with numbers, raw pointers, optional functions and arrays of numbers only.
        unsafe impl SizedStruct for $name {
            const NAME: &'static str = stringify!($name);
            const SIZES: &'static [usize] = &[$(offset_of!($name, $first),)* size_of::<$name>()];
        }
    )*};
}

sized! {
    cuporep_config(device_names gpu_workers)
    cuporep_request(device_names)
    cuporep_report(fallback_reasons)
    cuporep_c1_info()
    cuporep_device(free_memory)
}

/// The size that the caller's struct says it has, if it is one of a version that is known.
///
/// # Safety
/// `pointer` is NULL or points to a `usize`.
unsafe fn known_size<T: SizedStruct>(pointer: *const T) -> Result<usize> {
    let refuse = |detail| Err(Error::Argument { name: T::NAME, detail });
    if pointer.is_null() {
        return refuse("is NULL".into());
    }
    // SAFETY: the caller's promise; its struct may be less aligned than ours.
    let size = unsafe { pointer.cast::<usize>().read_unaligned() };
    if !T::SIZES.contains(&size) {
        let detail = format!(
            "struct_size is {size}, version {} knows {:?}; are header and library of the same version?",
            env!("CARGO_PKG_VERSION"),
            T::SIZES
        );
        return refuse(detail);
    }
    Ok(size)
}

/// All bytes zero.
pub(super) fn zeroed<T: SizedStruct>() -> T {
    // SAFETY: zero is valid for these types, by the trait's promise.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

/// Reads a struct of any known version.
///
/// # Safety
/// `pointer` is NULL or points to as many readable bytes as its first member says.
pub(super) unsafe fn read<T: SizedStruct>(pointer: *const T) -> Result<T> {
    let mut value = zeroed::<T>();
    // SAFETY: the caller's promise for the source; known sizes are at most that of `T`.
    unsafe {
        let size = known_size(pointer)?;
        ptr::copy_nonoverlapping(pointer.cast::<u8>(), (&raw mut value).cast::<u8>(), size);
    }
    Ok(value)
}

/// A caller's struct to write to; a place that nobody reads where it is NULL.
pub(super) struct Output<T> {
    pointer: *mut T,
    size: usize,
}

impl<T: SizedStruct> Output<T> {
    /// Checks the struct's size and sets the rest to zero.
    ///
    /// # Safety
    /// `pointer` is NULL or points to as many writable bytes as its first member says, until this is dropped.
    pub unsafe fn new(pointer: *mut T) -> Result<Self> {
        // SAFETY: the caller's promise.
        let size = if pointer.is_null() { 0 } else { unsafe { known_size(pointer)? } };
        let output = Output { pointer, size };
        output.set(zeroed());
        Ok(output)
    }

    /// Writes all but the size.
    pub fn set(&self, value: T) {
        let Some(rest) = self.size.checked_sub(size_of::<usize>()) else { return };
        // SAFETY: by the promise of `new`; the size is a known one, so at most that of `T`.
        unsafe {
            let source = (&raw const value).cast::<u8>().add(size_of::<usize>());
            ptr::copy_nonoverlapping(source, self.pointer.cast::<u8>().add(size_of::<usize>()), rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Has an older version without its last member.
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Grown {
        struct_size: usize,
        old: u64,
        new: u64,
    }

    // SAFETY: numbers only.
    unsafe impl SizedStruct for Grown {
        const NAME: &'static str = "grown";
        const SIZES: &'static [usize] = &[16, 24];
    }

    #[test]
    fn an_older_version_is_read_with_zeros_and_written_without_the_rest() {
        let mut grown = Grown { struct_size: 16, old: 5, new: 7 };
        // SAFETY: the struct is there in full.
        let read = unsafe { read(&raw const grown) }.unwrap();
        assert_eq!((read.old, read.new), (5, 0));
        // SAFETY: as above.
        let output = unsafe { Output::new(&raw mut grown) }.unwrap();
        output.set(Grown { struct_size: 0, old: 1, new: 2 });
        assert_eq!((grown.struct_size, grown.old, grown.new), (16, 1, 7));
        grown.struct_size = 24;
        // SAFETY: as above.
        let output = unsafe { Output::new(&raw mut grown) }.unwrap();
        assert_eq!((grown.struct_size, grown.old, grown.new), (24, 0, 0));
        output.set(Grown { struct_size: 0, old: 1, new: 2 });
        assert_eq!((grown.struct_size, grown.old, grown.new), (24, 1, 2));
    }

    #[test]
    fn unknown_sizes_and_null_are_refused() {
        for struct_size in [0, 1, 8, 15, 17, 23, 25, 32, usize::MAX] {
            let mut grown = Grown { struct_size, old: 5, new: 7 };
            // SAFETY: only the first member is looked at.
            let errors = unsafe { [read(&raw const grown).map(drop), Output::new(&raw mut grown).map(drop)] };
            for error in errors {
                let error = error.unwrap_err();
                assert_eq!(error.code(), 100);
                assert!(error.to_string().contains(&struct_size.to_string()), "{error}");
            }
            assert_eq!((grown.old, grown.new), (5, 7), "nothing is written");
        }
        // SAFETY: NULL is allowed.
        unsafe {
            assert_eq!(read::<Grown>(ptr::null()).map(drop).unwrap_err().code(), 100);
            Output::<Grown>::new(ptr::null_mut()).unwrap().set(zeroed());
        }
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn the_sizes_of_released_versions_stay() {
        assert_eq!(cuporep_config::SIZES, [64, 72, 80]);
        assert_eq!(cuporep_request::SIZES, [120, 128]);
        assert_eq!(cuporep_report::SIZES, [568, 1592]);
        assert_eq!(cuporep_c1_info::SIZES, [104]);
        assert_eq!(cuporep_device::SIZES, [336, 352]);
    }

    #[test]
    fn the_largest_proof_and_all_stages_fit() {
        let longest = crate::porep::RegisteredProof::all().map(|proof| proof.proof_len()).max();
        assert_eq!(longest, Some(CUPOREP_PROOF_BYTES_MAX));
        assert!((super::super::status::cuporep_stage::Verify as usize) < CUPOREP_STAGES_MAX);
    }
}
