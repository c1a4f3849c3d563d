//! Proving parameters in bellperson's file format: opening, checking, reading.
//!
//! Files come from downloads and stay for years under other programs' hands, so nothing in them is trusted:
//! the size, the verifying key, the counts and samples of all sections are checked at every opening, the
//! digest and every single point on demand. Knows no circuit but its counts.

mod check;
mod digest;
mod file;
mod layout;
mod read;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::path::{Path, PathBuf};

use blstrs::{G1Affine, G2Affine};

use super::VerifyingKey;
use crate::error::{Error, Result};
use crate::pipeline::Control;

pub use digest::of_bytes as digest_of_bytes;
pub use file::Identity;
pub(crate) use layout::Section;
pub use layout::{Counts, G1Section};
pub(super) use layout::{Layout, COUNT_BYTES};

use file::InputFile;

/// Published parameters of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// What they are for, e.g. `8MiB`.
    pub label: String,
    /// Size of the `.params` file in bytes.
    pub size: u64,
    /// Digests of the published files.
    pub digests: Digests,
}

/// The digests of a `.params` and its `.vk` file: the first 16 bytes of BLAKE2b-512 in lower-case hex.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digests {
    /// Of the `.params` file.
    pub params: String,
    /// Of the `.vk` file.
    pub vk: String,
}

/// What parameters must be.
#[derive(Debug, Clone)]
pub struct Expected {
    /// The files' name without `.params`, `.vk`, `.meta`, `.insecure`.
    pub stem: String,
    /// The circuit's counts.
    pub counts: Counts,
    /// The digests of the published files for this circuit, if there are such.
    pub official: Option<Digests>,
    /// All published parameters: for hints in errors, and to tell whether a verifying key is a published one.
    pub known: Vec<Known>,
}

/// An open parameter file whose header, counts and samples have been checked.
#[derive(Debug)]
pub struct Parameters {
    params: InputFile,
    vk_file: InputFile,
    layout: Layout,
    counts: Counts,
    vk: VerifyingKey,
    digests: Option<Digests>,
    vk_digest: String,
    official: bool,
    insecure: bool,
}

impl Parameters {
    /// Opens `stem.params` and `stem.vk` in a directory and checks everything but the digest and the points
    /// that are not sampled. Takes some tens of milliseconds.
    ///
    /// # Errors
    /// [`Error::ParamsMissing`], [`Error::ParamsRead`], [`Error::ParamsSize`], [`Error::ParamsContent`];
    /// [`Error::ParamsChanged`] if the file is cut meanwhile; [`Error::Argument`] for impossible counts.
    pub fn open(directory: &Path, expected: &Expected, control: &Control) -> Result<Self> {
        let layout = Layout::new(&expected.counts)?;
        // Errors name the whole path, and a later change of the working directory means nothing.
        let directory = &std::path::absolute(directory)
            .map_err(|source| Error::ParamsRead { path: directory.to_path_buf(), source })?;
        let path = |extension| sibling(directory, &expected.stem, extension);
        let params = InputFile::open(path("params"))?;
        check::size(&params, layout.size, &expected.known, |known| known.size)?;
        let vk_file = InputFile::open(path("vk"))?;
        // The keys of several published circuits have one size, so a size tells nothing about the kind.
        check::size(&vk_file, layout.vk_len as u64, &[], |_| 0)?;
        let (vk, vk_bytes) = check::verifying_key(&params, &vk_file, &layout, expected.counts.inputs)?;
        check::counts(&params, &layout)?;
        check::samples(&params, &layout, control)?;

        let vk_digest = digest::of_bytes(&vk_bytes);
        let mut published = expected.official.iter().chain(expected.known.iter().map(|known| &known.digests));
        let official = published.any(|digests| digests.vk == vk_digest);
        let insecure = path("insecure").symlink_metadata().is_ok();
        if insecure {
            let path = params.path().display();
            log::warn!("parameters {path} are INSECURE: their secrets are known, anyone can forge proofs");
        }
        Ok(Parameters {
            params,
            vk_file,
            layout,
            counts: expected.counts,
            vk,
            digests: expected.official.clone(),
            vk_digest,
            official,
            insecure,
        })
    }

    /// The verifying key.
    pub fn vk(&self) -> &VerifyingKey {
        &self.vk
    }

    /// The circuit's counts.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Where the `.params` file is.
    pub fn path(&self) -> &Path {
        self.params.path()
    }

    /// Whether the verifying key is one of the published ones.
    pub fn is_official(&self) -> bool {
        self.official
    }

    /// Whether an `.insecure` file lies beside: test parameters, with which anyone can forge proofs.
    pub fn is_insecure(&self) -> bool {
        self.insecure
    }

    /// What tells this state of the `.params` file from others.
    pub fn identity(&self) -> Identity {
        self.params.identity()
    }

    /// Whether both files are still those that were opened, not replaced, rewritten or removed. Ask before using
    /// points that were read earlier, and after reading. Fails if the files cannot be looked at.
    pub fn unchanged(&self) -> Result<bool> {
        Ok(self.params.unchanged()? && self.vk_file.unchanged()?)
    }

    /// [`Error::ParamsChanged`] unless [`Parameters::unchanged`].
    pub fn ensure_unchanged(&self) -> Result<()> {
        match self.unchanged()? {
            true => Ok(()),
            false => Err(self.params.changed("it, or the .vk file beside it, was replaced, rewritten or removed")),
        }
    }

    /// Replaces `out` by the points `range` of a section in G1; `out` keeps its allocation if that suffices.
    ///
    /// The coordinates are canonical and no point is infinity; the curve and the subgroup are only checked for
    /// the samples of [`Parameters::open`]. Runs on all threads of the current pool. On an error `out` is empty.
    ///
    /// # Errors
    /// [`Error::ParamsContent`], [`Error::ParamsRead`]; [`Error::ParamsChanged`] if the file has become
    /// shorter; [`Error::Memory`]; [`Error::Internal`] for a range outside the section.
    pub fn read_g1(
        &self,
        section: G1Section,
        range: Range<usize>,
        out: &mut Vec<G1Affine>,
        control: &Control,
    ) -> Result<()> {
        read::read_points(&self.params, &self.layout.g1[section as usize], range, out, control)
    }

    /// As [`Parameters::read_g1`], of the section b in G2.
    pub fn read_g2(&self, range: Range<usize>, out: &mut Vec<G2Affine>, control: &Control) -> Result<()> {
        read::read_points(&self.params, &self.layout.b_g2, range, out, control)
    }

    /// Fills `out`, which has room for whole points, with the bytes of a section's points from `first` on. Nothing is
    /// checked of them. Runs on all threads of the current pool.
    ///
    /// # Errors
    /// As [`Parameters::read_g1`], except for the content.
    #[cfg(feature = "cuda")]
    pub(crate) fn read_bytes(&self, section: Section, first: usize, out: &mut [u8], control: &Control) -> Result<()> {
        let extent = self.layout.extent(section);
        read::read_bytes(&self.params, extent, section.point_bytes(), first, out, control)
    }

    /// Reads and checks one point: for the error that is due where somebody found it bad.
    #[cfg(feature = "cuda")]
    pub(crate) fn check_point(&self, section: Section, index: usize) -> Result<()> {
        let check = match section {
            Section::G1(_) => read::check_point::<G1Affine>,
            Section::B2 => read::check_point::<G2Affine>,
        };
        check(&self.params, self.layout.extent(section), index)
    }

    /// Checks samples of all sections again, others than at the opening.
    pub fn check_samples(&self, control: &Control) -> Result<()> {
        check::samples(&self.params, &self.layout, control)?;
        self.ensure_unchanged()
    }

    /// Checks every point of every section: minutes of work even for small circuits. `progress` gets the points
    /// done and their total.
    pub fn check_all(&self, control: &Control, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
        check::all(&self.params, &self.layout, control, progress)?;
        self.ensure_unchanged()
    }

    /// The digests of both files. That of the `.params` file is taken from `cache`, a directory, if it holds one for this very state of the file,
    /// and kept there otherwise. `progress` gets the bytes done and their total.
    pub fn digests(
        &self,
        cache: Option<&Path>,
        control: &Control,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Digests> {
        let params = digest::of_file(&self.params, cache, control, progress)?;
        Ok(Digests { params, vk: self.vk_digest.clone() })
    }

    /// [`Parameters::digests`], compared with the official ones where there are such:
    /// [`Error::ParamsDigest`] if one differs.
    pub fn check_digests(
        &self,
        cache: Option<&Path>,
        control: &Control,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Digests> {
        let actual = self.digests(cache, control, progress)?;
        if let Some(expected) = &self.digests {
            let pairs = [(&self.vk_file, &expected.vk, &actual.vk), (&self.params, &expected.params, &actual.params)];
            for (file, expected, actual) in pairs {
                if expected != actual {
                    let (expected, actual) = (expected.clone(), actual.clone());
                    return Err(Error::ParamsDigest { path: file.path().to_path_buf(), expected, actual });
                }
            }
        }
        Ok(actual)
    }
}

/// `directory/stem.extension`; the stem may hold dots.
pub(super) fn sibling(directory: &Path, stem: &str, extension: &str) -> PathBuf {
    directory.join(format!("{stem}.{extension}"))
}
