//! From bytes to [`C1Output`]: names the form, parses, unwraps the envelope. Checks the form only.

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use rayon::prelude::*;
use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::wire::{C1Wire, EnvelopeWire, TaggedProofs};
use super::{form, C1Output, Envelope, VanillaProof, MAX_C1_BYTES};
use crate::error::{Error, Result};
use crate::porep::sector::RegisteredProof;

/// Why bytes are refused; the input's length and hash are added at the end, when something is wrong.
enum Refusal {
    Form(String),
    Syntax(String),
    Proof(Error),
}

impl C1Output {
    /// Decodes a C1 output in any form that nodes pass on: its JSON, with fields in any order; the same in the envelope
    /// `{"SectorNum","Phase1Out","SectorSize"}`; white space around either.
    ///
    /// Takes memory of a small multiple of the input's length at most, whatever the input is. Long inputs are decoded on
    /// the current rayon pool.
    ///
    /// # Errors
    /// [`Error::C1TooLarge`], [`Error::C1Form`], [`Error::C1Syntax`] and, for an unknown registered proof,
    /// [`Error::ProofType`].
    pub fn decode(bytes: &[u8]) -> Result<C1Output> {
        if bytes.len() > MAX_C1_BYTES {
            return Err(Error::C1TooLarge { length: bytes.len(), maximum: MAX_C1_BYTES });
        }
        decode_any(bytes).map_err(|refusal| {
            let (length, sha256) = (bytes.len(), || hex::encode(Sha256::digest(bytes)));
            match refusal {
                Refusal::Form(form) => Error::C1Form { form, length, sha256: sha256() },
                Refusal::Syntax(detail) => Error::C1Syntax { detail, length, sha256: sha256() },
                Refusal::Proof(error) => error,
            }
        })
    }
}

fn decode_any(bytes: &[u8]) -> Result<C1Output, Refusal> {
    let object = form::trim(bytes);
    if let Some(name) = form::foreign(object, bytes.len()) {
        return Err(Refusal::Form(name));
    }
    if !form::is_envelope(object) {
        return decode_output(bytes);
    }
    let wire: EnvelopeWire<'_> = parse(bytes)?;
    let inner = STANDARD
        .decode(wire.phase1_output.as_ref())
        .map_err(|error| Refusal::Syntax(format!("Phase1Out of the envelope is not base64: {error}")))?;
    let inside = |what: String| format!("inside the envelope's Phase1Out, {what}");
    let object = form::trim(&inner);
    if let Some(name) = form::foreign(object, inner.len()) {
        return Err(Refusal::Form(inside(name)));
    }
    if form::is_envelope(object) {
        return Err(Refusal::Form(inside("there is another envelope".to_owned())));
    }
    let mut output = decode_output(&inner).map_err(|refusal| match refusal {
        Refusal::Form(form) => Refusal::Form(inside(form)),
        Refusal::Syntax(detail) => Refusal::Syntax(inside(detail)),
        Refusal::Proof(error) => Refusal::Proof(error),
    })?;
    output.envelope = Some(Envelope { sector_number: wire.sector_number, sector_size: wire.sector_size });
    Ok(output)
}

fn decode_output(bytes: &[u8]) -> Result<C1Output, Refusal> {
    // What is wrong with an input and where is found by going through it from its beginning.
    let wire = match decode_apart(bytes) {
        Some(wire) => wire,
        None => parse(bytes)?,
    };
    Ok(C1Output {
        registered_proof: RegisteredProof::from_name(&wire.registered_proof).map_err(Refusal::Proof)?,
        inner_tag: wire.vanilla_proofs.tag,
        vanilla_proofs: wire.vanilla_proofs.proofs,
        comm_r: wire.comm_r,
        comm_d: wire.comm_d,
        replica_id: wire.replica_id,
        seed: wire.seed,
        ticket: wire.ticket,
        envelope: None,
    })
}

/// Decodes the vanilla proofs of a long input side by side; `None` for a short one, and if anything is wrong.
fn decode_apart(bytes: &[u8]) -> Option<C1Wire<VanillaProof>> {
    /// Bytes from which on it is faster.
    const LONG: usize = 1 << 20;
    if bytes.len() < LONG {
        return None;
    }
    let C1Wire { registered_proof, vanilla_proofs, comm_r, comm_d, replica_id, seed, ticket } =
        parse::<C1Wire<&RawValue>>(bytes).ok()?;
    let decode =
        |proofs: Vec<&RawValue>| proofs.into_par_iter().map(|raw| serde_json::from_str(raw.get()).ok()).collect();
    let TaggedProofs { tag, proofs } = vanilla_proofs;
    let proofs = proofs.into_par_iter().map(decode).collect::<Option<_>>()?;
    let vanilla_proofs = TaggedProofs { tag, proofs };
    Some(C1Wire { registered_proof, vanilla_proofs, comm_r, comm_d, replica_id, seed, ticket })
}

/// Parses one document that is all of `bytes` but white space.
fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Refusal> {
    let mut stream = serde_json::Deserializer::from_slice(bytes).into_iter::<T>();
    let value = match stream.next() {
        Some(Ok(value)) => value,
        Some(Err(error)) => return Err(Refusal::Syntax(describe(&error, bytes))),
        None => return Err(Refusal::Syntax("there is no document".to_owned())),
    };
    let end = stream.byte_offset();
    let rest = form::trim(&bytes[end..]);
    if rest.is_empty() {
        return Ok(value);
    }
    match form::after_document(rest) {
        Some(name) => Err(Refusal::Form(format!("{name} at byte {end}"))),
        None => Err(Refusal::Syntax(format!("{} more bytes follow the document at byte {end}", rest.len()))),
    }
}

/// The parser's message, without what hostile input could blow up in it, and the place as a byte offset.
fn describe(error: &serde_json::Error, bytes: &[u8]) -> String {
    const LONGEST: usize = 160;
    let message = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let message = message.strip_suffix(&place).unwrap_or(&message);
    let mut short = String::new();
    for c in message.chars().take(LONGEST) {
        if c.is_control() {
            short.extend(c.escape_default());
        } else {
            short.push(c);
        }
    }
    let more = if message.chars().nth(LONGEST).is_some() { "..." } else { "" };
    let offset = offset_of(error.line(), error.column(), bytes);
    if error.is_eof() {
        format!("it breaks off at byte {offset} ({short}{more})")
    } else {
        format!("{short}{more} at byte {offset}")
    }
}

/// The byte offset of a line and column, both from 1 (column 0 is the line break before).
fn offset_of(line: usize, column: usize, bytes: &[u8]) -> usize {
    let start = if line <= 1 {
        0
    } else {
        bytes.iter().enumerate().filter(|(_, &byte)| byte == b'\n').nth(line - 2).map_or(bytes.len(), |(at, _)| at + 1)
    };
    (start + column).min(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        C1Output::decode(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn offsets_count_the_lines_before() {
        for (text, offset) in [("{x", 2), ("{\n\n x", 5), ("{\"seed\":\n[1,\n2,x", 16), ("{\n", 2)] {
            let at = format!("at byte {offset}");
            assert!(message(text).contains(&at), "{at} is not in: {}", message(text));
        }
    }

    #[test]
    fn long_inputs_are_decoded_as_short_ones() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/StackedDrg2KiBV1_1-000/c1.json.xz");
        let mut short = Vec::new();
        lzma_rs::xz_decompress(&mut std::fs::read(path).unwrap().as_slice(), &mut short).unwrap();
        let short = String::from_utf8(short).unwrap();
        let padding = " ".repeat(1 << 20);
        let long = |short: &str| short.replacen('{', &format!("{{{padding}"), 1);
        assert!(decode_apart(short.as_bytes()).is_none());
        assert!(decode_apart(long(&short).as_bytes()).is_some());
        let debug = |text: &str| format!("{:?}", C1Output::decode(text.as_bytes()).unwrap());
        assert!(debug(&short) == debug(&long(&short)));
        for (from, to) in [("\"index\":", "\"indes\":"), ("\"comm_r\":[", "\"comm_r\":[256,"), ("]]}", "]}")] {
            let broken = short.replacen(from, to, 1);
            assert_ne!(broken, short);
            // The place is as far away as the padding.
            let (short, long) = (message(&broken), message(&long(&broken)));
            let place = |text: &str| -> usize {
                let digits = text.split("at byte ").nth(1).expect(text).split(|c: char| !c.is_ascii_digit());
                digits.into_iter().next().unwrap().parse().unwrap()
            };
            assert_eq!(place(&short) + padding.len(), place(&long), "{short} / {long}");
        }
    }

    #[test]
    fn messages_have_no_control_characters() {
        let text = message("{\"a\\u0007\\u001b[2J\\n\":1}");
        assert!(text.contains("unknown field") && !text.chars().any(char::is_control), "{text}");
    }
}
