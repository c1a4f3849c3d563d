//! The kernels that the build embedded.

use std::ffi::CString;

/// All kernels of one .cu file.
pub(super) struct Module {
    pub name: &'static str,
    image: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/kernels.rs"));

/// What the build holds machine code for.
pub(super) fn architectures() -> &'static str {
    ARCHITECTURES
}

/// Whether the build holds images for real devices.
pub(super) fn has_images() -> bool {
    HAS_IMAGES
}

pub(super) fn all() -> &'static [Module] {
    MODULES
}

impl Module {
    /// What cuModuleLoadData wants, on memory that is aligned for it: the emulator takes names.
    pub fn image(&self, emulated: bool) -> Vec<u64> {
        let name = CString::new(self.name).expect("a file's name has no NUL");
        let bytes = if emulated { name.as_bytes_with_nul() } else { self.image };
        let mut words = vec![0u64; bytes.len().div_ceil(8)];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks(8)) {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_ne_bytes(padded);
        }
        words
    }
}
