//! What is checked when parameters are opened, and what only on demand.

use std::collections::BTreeSet;

use rand::rngs::OsRng;
use rand::RngCore;
use rayon::prelude::*;

use super::file::InputFile;
use super::layout::{Extent, Layout, COUNT_BYTES};
use super::read::{bad_point, check_point, read_points};
use super::Known;
use crate::error::{Error, Result};
use crate::groth16::points::FilePoint;
use crate::groth16::VerifyingKey;
use crate::pipeline::Control;
use blstrs::{G1Affine, G2Affine};

/// Evenly spaced points of a section that are checked at opening, the first and the last among them.
const EVEN_SAMPLES: usize = 48;
/// Points at random places besides.
const RANDOM_SAMPLES: usize = 48;
/// A section of at most this many points is checked whole.
const WHOLE: usize = 512;

/// Bytes of a file's begin that hints look at.
const HEAD_BYTES: usize = 512;

/// Fails unless the file has the size; the error says what the file looks like instead.
pub(super) fn size(file: &InputFile, expected: u64, known: &[Known], of: impl Fn(&Known) -> u64) -> Result<()> {
    let actual = file.identity().size;
    if actual == expected {
        return Ok(());
    }
    let head = file.head(HEAD_BYTES)?;
    let lower = head.to_ascii_lowercase();
    let text = lower.trim_ascii_start();
    let other = known.iter().find(|known| of(known) == actual);
    let hint = if head.is_empty() {
        "; it is empty".into()
    } else if text.starts_with(b"<!doctype") || text.starts_with(b"<html") || text.starts_with(b"<?xml") {
        "; it looks like an HTML page, so the download answered with an error".into()
    } else if head.starts_with(b"version https://git-lfs") {
        "; it is a Git LFS pointer".into()
    } else if head.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace()) {
        "; it is a text".into()
    } else if let Some(other) = other {
        format!("; this is the size of the {} parameters", other.label)
    } else if actual < expected {
        "; it was cut, or belongs to another circuit".into()
    } else {
        String::new()
    };
    Err(Error::ParamsSize { path: file.path().to_path_buf(), expected, actual, hint })
}

/// The key in the header, fully checked and equal to the `.vk` file, with its bytes.
pub(super) fn verifying_key(
    params: &InputFile,
    vk_file: &InputFile,
    layout: &Layout,
    inputs: usize,
) -> Result<(VerifyingKey, Vec<u8>)> {
    let header = params.head(layout.vk_len)?;
    let vk = VerifyingKey::from_bytes(&header, inputs).map_err(|detail| params.content(detail))?;
    let beside = vk_file.head(layout.vk_len)?;
    if let Some(at) = header.iter().zip(&beside).position(|(a, b)| a != b) {
        let detail = format!("it differs from the verifying key in {} from byte {at} on", params.path().display());
        return Err(vk_file.content(detail));
    }
    Ok((vk, header))
}

/// Each section's count must be the circuit's.
pub(super) fn counts(file: &InputFile, layout: &Layout) -> Result<()> {
    for section in layout.sections() {
        let (mut bytes, at) = ([0; COUNT_BYTES as usize], section.offset - COUNT_BYTES);
        file.read(&mut bytes, at)?;
        let count = u32::from_be_bytes(bytes) as usize;
        if count != section.count {
            let detail =
                format!("section {} has count {count}, at byte {at}, expected {}", section.name, section.count);
            return Err(file.content(detail));
        }
    }
    Ok(())
}

/// Sampled points of every section: coordinates, curve, subgroup, not infinity.
pub(super) fn samples(file: &InputFile, layout: &Layout, control: &Control) -> Result<()> {
    layout.g1.iter().try_for_each(|section| sample_section::<G1Affine>(file, section, control))?;
    sample_section::<G2Affine>(file, &layout.b_g2, control)
}

fn sample_section<P: FilePoint>(file: &InputFile, section: &Extent, control: &Control) -> Result<()> {
    sampled_places(section.count).into_par_iter().try_for_each(|index| {
        control.check("checking parameters")?;
        check_point::<P>(file, section, index)
    })
}

fn sampled_places(count: usize) -> Vec<usize> {
    if count <= WHOLE {
        return (0..count).collect();
    }
    let even = (0..EVEN_SAMPLES).map(|i| i * (count - 1) / (EVEN_SAMPLES - 1));
    let random = (0..RANDOM_SAMPLES).map(|_| (OsRng.next_u64() % count as u64) as usize);
    even.chain(random).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Points between two progress reports of [`all`].
const BATCH: usize = 1 << 16;

/// Every point of every section; `progress` gets the points done and their total.
pub(super) fn all(
    file: &InputFile,
    layout: &Layout,
    control: &Control,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<()> {
    let total = layout.sections().map(|section| section.count as u64).sum();
    let mut done = 0;
    let mut advance = |count: usize| {
        done += count as u64;
        progress(done, total);
    };
    for section in &layout.g1 {
        whole_section::<G1Affine>(file, section, control, &mut advance)?;
    }
    whole_section::<G2Affine>(file, &layout.b_g2, control, &mut advance)
}

fn whole_section<P: FilePoint>(
    file: &InputFile,
    section: &Extent,
    control: &Control,
    advance: &mut dyn FnMut(usize),
) -> Result<()> {
    let mut points: Vec<P> = Vec::new();
    for start in (0..section.count).step_by(BATCH) {
        let end = section.count.min(start + BATCH);
        read_points(file, section, start..end, &mut points, control)?;
        points.par_iter().enumerate().with_max_len(256).try_for_each(|(i, point)| {
            if i % 256 == 0 {
                control.check("checking parameters")?;
            }
            point.check().map_err(|fault| bad_point::<P>(file, section, start + i, fault))
        })?;
        advance(end - start);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_sections_are_sampled_whole_and_large_ones_at_both_ends() {
        assert_eq!(sampled_places(WHOLE), (0..WHOLE).collect::<Vec<_>>());
        let places = sampled_places(1_000_000);
        assert!(places.len() > EVEN_SAMPLES && places.len() <= EVEN_SAMPLES + RANDOM_SAMPLES);
        assert_eq!((places.first(), places.last()), (Some(&0), Some(&999_999)));
    }
}
