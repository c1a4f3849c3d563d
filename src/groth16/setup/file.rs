//! A `.params` file that is being written: the points of its sections come in any order, from many threads.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::error::{Error, Result};
use crate::groth16::params::{Counts, Layout, Section, COUNT_BYTES};

/// An open `.params` file in which everything but the points is written.
pub(crate) struct SectionFile<'a> {
    file: &'a File,
    path: &'a Path,
    layout: Layout,
}

impl<'a> SectionFile<'a> {
    /// Writes the verifying key and the sections' counts.
    pub(super) fn begin(file: &'a File, path: &'a Path, counts: &Counts, vk: &[u8]) -> Result<Self> {
        let sections = SectionFile { file, path, layout: Layout::new(counts)? };
        sections.write_at(vk, 0)?;
        for section in sections.layout.sections() {
            sections.write_at(&(section.count as u32).to_be_bytes(), section.offset - COUNT_BYTES)?;
        }
        Ok(sections)
    }

    /// Writes encoded points of a section, from point `first` on.
    pub fn write(&self, section: Section, first: usize, points: &[u8]) -> Result<()> {
        let (extent, size) = (self.layout.extent(section), section.point_bytes());
        extent.check(&(first..first + points.len() / size))?;
        self.write_at(points, extent.offset + (first * size) as u64)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.file.write_all_at(bytes, offset).map_err(|source| Error::io("writing", self.path, source))
    }
}
