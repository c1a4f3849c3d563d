//! Decodes and checks arbitrary bytes as a C1 output: any outcome but a panic is right.
//!
//! ```text
//! cargo +nightly fuzz run --fuzz-dir . c1 /tmp/c1 corpus/c1 -- -max_total_time=600 -max_len=110000 -dict=c1.dict
//! ```

#![no_main]

use cuporep::pipeline::Control;
use cuporep::porep::{check, C1Output};
use libfuzzer_sys::fuzz_target;

// The ids of the seed in the corpus, so that unaltered parts of it pass.
const SECTOR: u64 = 963860;
const MINER: u64 = 3454089;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(c1) = C1Output::decode(bytes) {
        let _ = check(c1, SECTOR, MINER, &Control::new());
    }
});
