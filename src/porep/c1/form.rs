//! Recognises what the bytes are when they are not a C1 output's JSON, so that the message can name it.

use base64::engine::general_purpose::STANDARD;
use base64::Engine;

/// White space that JSON allows.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// The bytes without white space at their ends.
pub(super) fn trim(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().position(|&byte| !is_space(byte)).unwrap_or(bytes.len());
    let end = bytes.iter().rposition(|&byte| !is_space(byte)).map_or(start, |last| last + 1);
    &bytes[start..end]
}

/// Whether this trimmed object begins with a field of the envelope.
pub(super) fn is_envelope(object: &[u8]) -> bool {
    let fields = trim(object.get(1..).unwrap_or_default());
    [&b"\"SectorNum\""[..], b"\"Phase1Out\"", b"\"SectorSize\""].iter().any(|name| fields.starts_with(name))
}

/// What trimmed bytes are that cannot be a JSON object, or `None` if they may be one.
pub(super) fn foreign(bytes: &[u8], untrimmed: usize) -> Option<String> {
    let name = match bytes {
        [] if untrimmed == 0 => "the input is empty",
        [] => "the input is white space only",
        [b'{', .., 0] => "NUL bytes follow the JSON (a buffer or C string passed with too great a length)",
        [b'{', ..] => return None,
        [b'[', ..] => "it is a JSON array",
        [b'"', text @ .., b'"'] if looks_base64(text) => "it is base64 alone, quoted; decode it first",
        [b'"', ..] => "it is a JSON string",
        [0xef, 0xbb, 0xbf, ..] => "it begins with a byte order mark",
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => "it is compressed by xz; decompress it first",
        [0x1f, 0x8b, ..] => "it is compressed by gzip; decompress it first",
        [b'<', ..] => "it is HTML or XML",
        _ if bytes.iter().all(|&byte| byte == 0) => "it is NUL bytes only",
        _ if looks_bincode(bytes) => "it is binary and looks like bincode",
        _ if looks_base64(bytes) => "it is base64 alone; decode it first",
        _ => return Some(format!("it begins with the bytes {}", hex::encode(&bytes[..bytes.len().min(8)]))),
    };
    Some(name.to_owned())
}

/// What follows a whole document, or `None` if it is nothing special.
pub(super) fn after_document(rest: &[u8]) -> Option<&'static str> {
    match rest {
        [b'{' | b'[', ..] => Some("a second document follows the first"),
        [0, ..] => Some("NUL bytes follow the JSON (a buffer or C string passed with too great a length)"),
        _ => None,
    }
}

/// Bincode writes the registered proof as a little-endian u32, then the tag of the vanilla proofs in the same way.
fn looks_bincode(bytes: &[u8]) -> bool {
    matches!(bytes, [proof, 0, 0, 0, tag, 0, 0, 0, ..] if *proof < 20 && *tag < 5)
}

/// Judged by the beginning: base64's letters, perhaps in lines, of which the first ones give an object.
fn looks_base64(bytes: &[u8]) -> bool {
    const LOOK: usize = 4096;
    let beginning = &bytes[..bytes.len().min(LOOK)];
    let alphabet = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=\r\n".contains(byte);
    // Whole groups of four letters, of which only the last may be padded.
    let groups = &beginning[..beginning.len().min(16) / 4 * 4];
    beginning.iter().all(alphabet) && STANDARD.decode(groups).is_ok_and(|text| trim(&text).starts_with(b"{"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_may_be_a_c1_output() {
        assert_eq!(foreign(b"{}", 2), None);
        assert_eq!(foreign(b"{\"", 2), None);
    }

    #[test]
    fn every_encoding_of_a_brace_is_recognised_as_base64() {
        for document in ["{}", "{\"a\"", "{ \"comm_r\": [", "{\n\t\"comm_r\"", " {\"comm_r\"", "{\r\n}"] {
            let text = STANDARD.encode(document);
            assert!(looks_base64(text.as_bytes()), "{text}");
            assert!(foreign(text.as_bytes(), text.len()).unwrap().contains("base64 alone"), "{text}");
        }
        assert!(!looks_base64(b"eyJ{"));
        assert!(!looks_base64(b"hello"));
        assert!(!looks_base64(b""));
        assert!(!looks_base64(b"eyJ"));
    }

    #[test]
    fn white_space_at_both_ends_is_trimmed_and_no_other_byte() {
        assert_eq!(trim(b" \t\r\n{ } \n"), b"{ }");
        assert_eq!(trim(b"\x0b{}\x0c"), b"\x0b{}\x0c");
        assert_eq!(trim(b"  "), b"");
        assert_eq!(trim(b""), b"");
    }
}
