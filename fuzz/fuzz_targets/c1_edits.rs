//! Edits a real C1 output, then decodes and checks it: reaches the checks behind the decoder, which random bytes
//! hardly pass. Any outcome but a panic is right.
//!
//! An input is a list of edits of four bytes: kind, place (high, low), and a byte to write.
//!
//! ```text
//! cargo +nightly fuzz run --fuzz-dir . c1_edits /tmp/edits corpus/c1_edits -- -max_total_time=600 -max_len=64
//! ```

#![no_main]

use std::sync::LazyLock;

use cuporep::pipeline::Control;
use cuporep::porep::{check, C1Output};
use libfuzzer_sys::fuzz_target;

const SECTOR: u64 = 963860;
const MINER: u64 = 3454089;

static REAL: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let packed = include_bytes!("../../tests/fixtures/StackedDrg2KiBV1_1-000/c1.json.xz");
    let mut c1 = Vec::new();
    lzma_rs::xz_decompress(&mut &packed[..], &mut c1).expect("the fixture is whole");
    c1
});

fuzz_target!(|edits: &[u8]| {
    let mut c1 = REAL.clone();
    for edit in edits.chunks_exact(4) {
        // Two places for each number of 16 bits, as the document has more than 65,536 bytes.
        let place = 2 * usize::from(u16::from_be_bytes([edit[1], edit[2]])) + usize::from(edit[0] >> 7);
        let place = place % c1.len().max(1);
        match edit[0] % 8 {
            // A digit for a digit keeps the form.
            0..=3 => {
                if let Some(at) = c1[place..].iter().position(u8::is_ascii_digit) {
                    c1[place + at] = b'0' + edit[3] % 10;
                }
            }
            // An element less, or one more.
            4 => {
                if let Some(at) = c1[place..].iter().position(|byte| *byte == b',') {
                    let end = c1[place + at + 1..].iter().position(|byte| b",]".contains(byte));
                    c1.drain(place + at..=place + at + end.unwrap_or(0));
                }
            }
            5 => {
                if let Some(at) = c1[place..].iter().position(|byte| *byte == b'[') {
                    c1.splice(place + at + 1..place + at + 1, [b'0' + edit[3] % 10, b',']);
                }
            }
            6 => {
                if let Some(byte) = c1.get_mut(place) {
                    *byte = edit[3];
                }
            }
            _ => c1.truncate(place),
        }
    }
    if let Ok(c1) = C1Output::decode(&c1) {
        let _ = check(c1, SECTOR, MINER, &Control::new());
    }
});
