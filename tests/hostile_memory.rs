//! Decoding takes memory of a small multiple of the input's length, whatever the input is. A test binary of its own, as
//! it counts every allocation of the process.

mod common;
#[path = "common/counting.rs"]
mod counting;

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use common::{fixture, SMALL};
use cuporep::porep::C1Output;

/// Peak bytes beyond the input while it is decoded, for each of its bytes.
fn multiple(c1: &[u8]) -> (bool, f64) {
    let before = counting::begin();
    let decoded = C1Output::decode(c1);
    let used = counting::peak() - before;
    (decoded.is_ok(), used as f64 / c1.len() as f64)
}

#[test]
fn no_input_takes_more_than_a_small_multiple_of_its_length() {
    const ENOUGH: usize = 8 << 20;
    let fixture = fixture(SMALL);
    let real = String::from_utf8(fixture.c1.clone()).unwrap();
    let (accepted, real_multiple) = multiple(real.as_bytes());
    assert!(accepted && real_multiple > 0.1, "the counter counts: {real_multiple}");

    let fill = |before: &str, text: &str| [before, &text.repeat(ENOUGH / text.len())].concat();
    let proofs = "{\"vanilla_proofs\":{\"StackedDrg2KiBV1\":[[{\"comm_d_proofs\":{\"data\":{\"Single\":{";
    let node = format!("[{}0],", "0,".repeat(31));
    let inputs = [
        fill("", " "),
        fill("", "{\"a\":"),
        fill("{\"", "\\u0007"),
        fill("{\"registered_proof\":\"", "x"),
        fill("{\"registered_proof\":\"", "\\n") + "\"}",
        fill("{\"comm_r\":\"", "x") + "\"}",
        fill("{\"vanilla_proofs\":{\"x\":", "["),
        fill("{\"vanilla_proofs\":{\"x\":[", "[],"),
        fill("{\"vanilla_proofs\":{\"x\":[[", "{},"),
        fill(&format!("{proofs}\"path\":{{\"path\":["), "{\"hashes\":[],\"index\":0},"),
        fill(&format!("{proofs}\"path\":{{\"path\":[{{\"hashes\":["), &node),
        fill("{\"seed\":[", "0,"),
        fill("{\"SectorNum\":1,\"Phase1Out\":\"", "AAAA") + "\",\"SectorSize\":2048}",
        format!("{{\"Phase1Out\":\"{}\",\"SectorNum\":1,\"SectorSize\":2048}}", STANDARD.encode(fill("{\"x", "\\t"))),
        real.clone() + &" ".repeat(ENOUGH),
        real.clone() + &real,
    ];
    for input in &inputs {
        let (_, multiple) = multiple(input.as_bytes());
        assert!(multiple < 5.0, "{multiple:.1} bytes a byte for {:.60}...", input);
    }
    // The bounds on sequences end what would grow most: many small objects.
    let (_, real_multiple) = self::multiple(inputs[9].as_bytes());
    assert!(real_multiple < 0.1, "{real_multiple}");
}
