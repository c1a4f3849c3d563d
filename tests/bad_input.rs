//! Bad C1 outputs: each is refused with a class, a code and a message that says where; none panics or takes long.

mod common;

use std::time::{Duration, Instant};

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use common::{fixture, Fixture, SMALL};
use cuporep::pipeline::Control;
use cuporep::porep::{check, C1Output, CheckedC1, MAX_C1_BYTES};
use cuporep::{Class, Error};
use serde_json::{json, Value};

fn run(fixture: &Fixture, c1: &[u8]) -> Result<CheckedC1, Error> {
    check(C1Output::decode(c1)?, fixture.sector, fixture.miner, &Control::new())
}

/// Asserts that these bytes are refused with this code and these words.
#[track_caller]
fn refused(fixture: &Fixture, c1: &[u8], code: i32, words: &[&str]) {
    let error = run(fixture, c1).expect_err("must be refused");
    assert_eq!(error.class(), Class::Input, "{error}");
    assert_eq!(error.code(), code, "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "{word:?} is not in: {error}");
    }
    assert!(error.to_string().len() < 2000, "the message is short");
}

fn document(fixture: &Fixture) -> Value {
    serde_json::from_slice(&fixture.c1).unwrap()
}

/// The small case with one field changed, refused.
#[track_caller]
fn altered(pointer: &str, change: impl FnOnce(&mut Value), code: i32, words: &[&str]) {
    let fixture = fixture(SMALL);
    let mut c1 = document(&fixture);
    let before = c1.clone();
    change(c1.pointer_mut(pointer).unwrap_or_else(|| panic!("no {pointer}")));
    assert_ne!(c1, before);
    refused(&fixture, &serde_json::to_vec(&c1).unwrap(), code, words);
}

const SHAPE: i32 = 105;
const ELEMENT: i32 = 106;
const IDENTITY: i32 = 107;
const CHALLENGE: i32 = 108;
const VANILLA: i32 = 109;
const FORM: i32 = 101;
const SYNTAX: i32 = 102;
const TYPE: i32 = 104;

/// The vanilla proof of partition 0, challenge 1.
const PROOF: &str = "/vanilla_proofs/StackedDrg2KiBV1/0/1";

/// Another value of the same kind, canonical where it is a byte of a field element.
fn flip(value: &mut Value) {
    *value = (value.as_u64().unwrap() ^ 1).into();
}

// --- forms -----------------------------------------------------------------------------------------------------------

#[test]
fn all_forms_that_nodes_send_are_accepted() {
    let fixture = fixture(SMALL);
    // A map of serde_json sorts the keys, as a node's own re-encoding may.
    let sorted = serde_json::to_vec(&document(&fixture)).unwrap();
    assert_ne!(sorted, fixture.c1);
    run(&fixture, &sorted).unwrap();
    let spaced = [b" \r\n\t", &fixture.c1[..], b"\n \r\n\t"].concat();
    run(&fixture, &spaced).unwrap();
    run(&fixture, &serde_json::to_vec_pretty(&document(&fixture)).unwrap()).unwrap();
    let enveloped = json!({
        "SectorNum": fixture.sector, "Phase1Out": STANDARD.encode(&spaced), "SectorSize": 2048,
    });
    let checked = run(&fixture, &[&serde_json::to_vec(&enveloped).unwrap()[..], b"\n"].concat()).unwrap();
    assert_eq!(checked.c1().envelope().unwrap().sector_number, fixture.sector);
    // Labeling and encoding proofs carry the marker too where a node encodes it.
    let mut marked = document(&fixture);
    marked.pointer_mut(&format!("{PROOF}/encoding_proof")).unwrap()["_h"] = Value::Null;
    marked.pointer_mut(&format!("{PROOF}/labeling_proofs/0")).unwrap()["_h"] = Value::Null;
    run(&fixture, &serde_json::to_vec(&marked).unwrap()).unwrap();
}

#[test]
fn foreign_forms_are_refused_by_name() {
    let fixture = fixture(SMALL);
    let c1 = &fixture.c1;
    let base64 = STANDARD.encode(c1);
    refused(&fixture, b"", FORM, &["empty", "0 bytes"]);
    refused(&fixture, b" \n\t", FORM, &["white space only"]);
    refused(&fixture, base64.as_bytes(), FORM, &["base64 alone"]);
    refused(&fixture, format!("\"{base64}\"").as_bytes(), FORM, &["base64 alone"]);
    refused(&fixture, &[c1, &[0][..]].concat(), FORM, &["NUL bytes follow"]);
    refused(&fixture, &[c1, &[0; 100][..], b"\n"].concat(), FORM, &["NUL bytes follow"]);
    refused(&fixture, &[c1, &b"\n\0x"[..]].concat(), FORM, &["NUL bytes follow"]);
    refused(&fixture, &[0; 100], FORM, &["NUL bytes only"]);
    refused(&fixture, &[&c1[..], c1].concat(), FORM, &["a second document", &c1.len().to_string()]);
    refused(&fixture, &[c1, &b"\n[]"[..]].concat(), FORM, &["a second document"]);
    refused(&fixture, &[c1, &b"x"[..]].concat(), SYNTAX, &["1 more bytes", &c1.len().to_string()]);
    refused(&fixture, &[c1, &b"}"[..]].concat(), SYNTAX, &["1 more bytes"]);
    refused(&fixture, &[&[5, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0][..], &[7; 64]].concat(), FORM, &["bincode"]);
    refused(&fixture, b"\xfd7zXZ\0\0", FORM, &["xz"]);
    refused(&fixture, b"\x1f\x8b\x08\0", FORM, &["gzip"]);
    refused(&fixture, b"<html></html>", FORM, &["HTML"]);
    refused(&fixture, b"\xef\xbb\xbf{}", FORM, &["byte order mark"]);
    refused(&fixture, b"[]", FORM, &["array"]);
    refused(&fixture, b"\"x\"", FORM, &["string"]);
    refused(&fixture, b"null", FORM, &["6e756c6c"]);
    refused(&fixture, b"{}", SYNTAX, &["missing field"]);
}

#[test]
fn a_cut_at_every_kilobyte_is_refused_with_the_place() {
    let fixture = fixture(SMALL);
    for length in (1..fixture.c1.len()).step_by(1024).chain([fixture.c1.len() - 1]) {
        let words = ["breaks off at byte", &format!("{length} bytes"), "sha256"];
        refused(&fixture, &fixture.c1[..length], SYNTAX, &words);
    }
}

#[test]
fn envelopes_must_be_whole_and_agree() {
    let fixture = fixture(SMALL);
    let inner = STANDARD.encode(&fixture.c1);
    let envelope = |sector: Value, inner: &str, size: Value| {
        serde_json::to_vec(&json!({ "SectorNum": sector, "Phase1Out": inner, "SectorSize": size })).unwrap()
    };
    let sector = fixture.sector;
    let other = envelope(json!(sector + 1), &inner, json!(2048));
    refused(&fixture, &other, IDENTITY, &["the envelope says sector", &(sector + 1).to_string()]);
    refused(&fixture, &envelope(json!(sector), &inner, json!(8 << 20)), SHAPE, &["SectorSize", "8388608", "2048"]);
    refused(&fixture, &envelope(json!(-1), &inner, json!(2048)), SYNTAX, &["-1"]);
    refused(&fixture, &envelope(json!(1.5), &inner, json!(2048)), SYNTAX, &["1.5"]);
    refused(&fixture, &envelope(json!(sector), "", json!(2048)), FORM, &["Phase1Out", "empty"]);
    refused(&fixture, &envelope(json!(sector), "e30", json!(2048)), SYNTAX, &["not base64"]);
    refused(&fixture, &envelope(json!(sector), &inner[..1000], json!(2048)), SYNTAX, &["Phase1Out", "breaks off"]);
    let nested = STANDARD.encode(envelope(json!(sector), &inner, json!(2048)));
    refused(&fixture, &envelope(json!(sector), &nested, json!(2048)), FORM, &["another envelope"]);
    refused(&fixture, br#"{"SectorNum":1,"SectorSize":2048}"#, SYNTAX, &["missing field `Phase1Out`"]);
    refused(&fixture, br#"{"SectorNum":1,"SectorNum":1}"#, SYNTAX, &["duplicate field"]);
    // The argument is wrong and the envelope right: both numbers are named.
    let right = C1Output::decode(&envelope(json!(sector), &inner, json!(2048))).unwrap();
    let error = check(right, sector + 1, fixture.miner, &Control::new()).unwrap_err();
    assert_eq!(error.code(), IDENTITY);
    assert!(error.to_string().contains(&format!("the envelope says sector {sector}, which fits")), "{error}");
}

#[test]
fn hostile_documents_are_refused_fast_with_short_messages() {
    let fixture = fixture(SMALL);
    let begin = Instant::now();
    let refused_large = |bytes: Vec<u8>, code: i32, word: &str| {
        let error = C1Output::decode(&bytes).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().contains(word), "{error}");
        assert!(error.to_string().len() < 2000);
    };
    refused_large(vec![b' '; 1 << 30], 103, &MAX_C1_BYTES.to_string());
    refused_large(vec![b' '; 64 << 20], FORM, "white space only");
    let repeated =
        |before: &str, text: &str, count: usize| [before.as_bytes(), &text.repeat(count).into_bytes()].concat();
    refused_large(repeated("", "{\"a\":", 1 << 20), SYNTAX, "unknown field");
    refused_large(repeated("{\"comm_r\":", "[", 1 << 20), SYNTAX, "at byte");
    refused_large(repeated("{\"vanilla_proofs\":{\"x\":", "[", 1 << 20), SYNTAX, "at byte");
    refused_large(repeated("{\"vanilla_proofs\":{\"x\":[", "[],", 1 << 22), SYNTAX, "at most 126");
    refused_large(repeated("{\"seed\":[", "0,", 1 << 22), SYNTAX, "invalid length 33");
    refused_large(repeated("{\"registered_proof\":\"", "x", 1 << 22), SYNTAX, "breaks off");
    refused_large(repeated("{\"", "x", 1 << 22), SYNTAX, "breaks off");
    let long_name = format!("{{\"{}\":1}}", "\\u0007y".repeat(1 << 20));
    refused_large(long_name.into_bytes(), SYNTAX, "unknown field");
    let mut many = document(&fixture);
    let proof = many.pointer(PROOF).unwrap().clone();
    many.pointer_mut("/vanilla_proofs/StackedDrg2KiBV1/0").unwrap().as_array_mut().unwrap().extend(vec![proof; 20]);
    refused_large(serde_json::to_vec(&many).unwrap(), SYNTAX, "at most 18");
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
}

// --- fields ----------------------------------------------------------------------------------------------------------

#[test]
fn missing_unknown_and_duplicate_fields_are_refused_by_name() {
    for (pointer, field) in [
        ("", "registered_proof"),
        ("", "vanilla_proofs"),
        ("", "comm_r"),
        ("", "comm_d"),
        ("", "replica_id"),
        ("", "seed"),
        ("", "ticket"),
        (PROOF, "comm_d_proofs"),
        (PROOF, "comm_r_last_proof"),
        (PROOF, "replica_column_proofs"),
        (PROOF, "labeling_proofs"),
        (PROOF, "encoding_proof"),
    ] {
        let remove = |value: &mut Value| drop(value.as_object_mut().unwrap().remove(field));
        altered(pointer, remove, SYNTAX, &[&format!("missing field `{field}`"), "at byte"]);
        let null = |value: &mut Value| value[field] = Value::Null;
        altered(pointer, null, SYNTAX, &["null"]);
    }
    for pointer in ["".to_owned(), PROOF.to_owned(), format!("{PROOF}/comm_d_proofs/data/Single")] {
        altered(&pointer, |value| value["extra"] = json!(1), SYNTAX, &["unknown field `extra`"]);
    }
    let fixture = fixture(SMALL);
    let twice = [b"{\"seed\":[],", &fixture.c1[1..]].concat();
    refused(&fixture, &twice, SYNTAX, &["invalid length 0"]);
    let seed = serde_json::to_string(&fixture.seed).unwrap();
    let twice = [format!("{{\"seed\":{seed},").as_bytes(), &fixture.c1[1..]].concat();
    refused(&fixture, &twice, SYNTAX, &["duplicate field `seed`"]);
}

#[test]
fn values_of_the_wrong_kind_are_refused() {
    for (value, word) in [
        (json!(256), "256"),
        (json!(-1), "-1"),
        (json!(1.0), "1.0"),
        (json!("1"), "string"),
        (json!(null), "null"),
        (json!([1]), "sequence"),
    ] {
        for pointer in ["/comm_r/3".to_owned(), format!("{PROOF}/labeling_proofs/0/parents/5/31")] {
            altered(&pointer, |byte| *byte = value.clone(), SYNTAX, &[word, "at byte"]);
        }
    }
    for pointer in ["/comm_d".to_owned(), format!("{PROOF}/comm_r_last_proof/data/Single/leaf")] {
        altered(&pointer, |bytes| drop(bytes.as_array_mut().unwrap().pop()), SYNTAX, &["invalid length 31"]);
        altered(&pointer, |bytes| bytes.as_array_mut().unwrap().push(json!(0)), SYNTAX, &["invalid length 33"]);
        altered(&pointer, |bytes| *bytes = json!([]), SYNTAX, &["invalid length 0"]);
        altered(&pointer, |bytes| *bytes = json!("AAAA"), SYNTAX, &["string"]);
    }
    let index = format!("{PROOF}/replica_column_proofs/c_x/column/index");
    altered(&index, |value| *value = json!(1u64 << 32), SYNTAX, &["4294967296"]);
    altered(&index, |value| *value = json!(-4), SYNTAX, &["-4"]);
}

#[test]
fn another_registered_proof_than_the_sectors_is_refused() {
    let name = |name: &'static str| move |value: &mut Value| *value = json!(name);
    let pointer = "/registered_proof";
    altered(pointer, name("StackedDrg2KiBV1"), IDENTITY, &["fits StackedDrg2KiBV1_1", "swapped"]);
    altered(pointer, name("StackedDrg2KiBV1_1_Feat_SyntheticPoRep"), IDENTITY, &["fits StackedDrg2KiBV1_1"]);
    altered(pointer, name("StackedDrg2KiBV1_2_Feat_NonInteractivePoRep"), SHAPE, &["1 partitions, expected 13"]);
    altered(pointer, name("StackedDrg32GiBV1_1"), SHAPE, &["StackedDrg2KiBV1", "StackedDrg32GiBV1"]);
    altered(pointer, name("StackedDrg2KiBV2"), TYPE, &["StackedDrg2KiBV2", "StackedDrg2KiBV1_1", "cuporep"]);
    altered(pointer, name(""), TYPE, &["supported"]);
    let retag = |tag: &'static str| {
        move |value: &mut Value| {
            let proofs = value.as_object_mut().unwrap().remove("StackedDrg2KiBV1").unwrap();
            value[tag] = proofs;
        }
    };
    for tag in ["StackedDrg8MiBV1", "StackedDrg32GiBV1", "StackedDrg2KiBV1_1", "x"] {
        altered("/vanilla_proofs", retag(tag), SHAPE, &["vanilla_proofs", tag, "StackedDrg2KiBV1"]);
    }
    altered("/vanilla_proofs", |value| value["StackedDrg8MiBV1"] = json!([]), SYNTAX, &["more than one proof type"]);
    altered("/vanilla_proofs", |value| *value = json!({}), SYNTAX, &["invalid length 0"]);
    // Both tags of another size on a 2 KiB body: its trees are those of 2 KiB.
    let both = |size: &str, tag: &'static str, words: &[&str]| {
        let fixture = fixture(SMALL);
        let mut c1 = document(&fixture);
        c1["registered_proof"] = json!(format!("StackedDrg{size}V1_1"));
        retag(tag)(&mut c1["vanilla_proofs"]);
        refused(&fixture, &serde_json::to_vec(&c1).unwrap(), SHAPE, words);
    };
    both("8MiB", "StackedDrg8MiBV1", &["comm_d_proofs.path", "6 levels, expected 18"]);
    both("32GiB", "StackedDrg32GiBV1", &["1 partitions, expected 10"]);
}

#[test]
fn another_miner_or_sector_is_refused_with_both_ids() {
    let fixture = fixture(SMALL);
    let decode = || C1Output::decode(&fixture.c1).unwrap();
    for (sector, miner) in [
        (fixture.sector + 1, fixture.miner),
        (fixture.sector, fixture.miner + 1),
        (fixture.miner, fixture.sector),
        (0, 0),
        (u64::MAX, u64::MAX),
    ] {
        let error = check(decode(), sector, miner, &Control::new()).unwrap_err();
        assert_eq!((error.class(), error.code()), (Class::Input, IDENTITY), "{error}");
        let words = [format!("sector {sector}"), format!("miner {miner}"), hex::encode(fixture.replica_id)];
        assert!(words.iter().all(|word| error.to_string().contains(word)), "{error}");
    }
}

#[test]
fn without_a_miner_all_but_the_derivation_of_the_replica_id_is_checked() {
    let fixture = fixture(SMALL);
    let run = |c1: &[u8], sector| check(C1Output::decode(c1)?, sector, None, &Control::new());
    let checked = run(&fixture.c1, fixture.sector).unwrap();
    assert_eq!((checked.sector(), checked.miner()), (fixture.sector, None));
    assert!(run(&fixture.c1, fixture.sector + 1).is_ok(), "the replica id alone does not tell the sector");

    for (pointer, code) in
        [("/comm_r/0", VANILLA), ("/comm_d/0", VANILLA), ("/replica_id/0", CHALLENGE), ("/seed/0", CHALLENGE)]
    {
        let mut c1 = document(&fixture);
        flip(c1.pointer_mut(pointer).unwrap());
        let error = run(&serde_json::to_vec(&c1).unwrap(), fixture.sector).unwrap_err();
        assert_eq!(error.code(), code, "{pointer}: {error}");
    }

    let enveloped = serde_json::to_vec(&json!({
        "SectorNum": fixture.sector, "Phase1Out": STANDARD.encode(&fixture.c1), "SectorSize": 2048
    }));
    let enveloped = enveloped.unwrap();
    assert!(run(&enveloped, fixture.sector).is_ok());
    let error = run(&enveloped, fixture.sector + 1).unwrap_err();
    assert_eq!(error.code(), IDENTITY, "{error}");
    let words = [format!("sector {}", fixture.sector), format!("sector {}", fixture.sector + 1)];
    assert!(words.iter().all(|word| error.to_string().contains(word)), "{error}");
    assert!(!error.to_string().contains("miner"), "{error}");
}

#[test]
fn a_flipped_digit_in_any_top_field_is_refused() {
    altered("/comm_r/0", flip, VANILLA, &["comm_r", "give"]);
    altered("/comm_d/0", flip, IDENTITY, &["replica id"]);
    altered("/replica_id/0", flip, IDENTITY, &["replica id"]);
    altered("/ticket/0", flip, IDENTITY, &["replica id"]);
    altered("/seed/0", flip, CHALLENGE, &["partition 0, challenge 0", "is opened, expected"]);
    let fixture = fixture("StackedDrg2KiBV1_1_Feat_SyntheticPoRep-000");
    let mut c1 = document(&fixture);
    flip(&mut c1["comm_r"][0]);
    refused(&fixture, &serde_json::to_vec(&c1).unwrap(), CHALLENGE, &["is opened, expected"]);
}

#[test]
fn a_flipped_digit_in_any_part_of_a_vanilla_proof_is_refused_with_its_place() {
    let here = "partition 0, challenge 1, ";
    let c_x = "/replica_column_proofs/c_x";
    for (pointer, code, place) in [
        ("/comm_d_proofs/data/Single/root/0".to_owned(), VANILLA, "comm_d_proofs.root"),
        ("/comm_d_proofs/data/Single/leaf/0".to_owned(), VANILLA, "comm_d_proofs"),
        ("/comm_d_proofs/data/Single/path/path/5/hashes/0/0".to_owned(), VANILLA, "comm_d_proofs"),
        ("/comm_d_proofs/data/Single/path/path/5/index".to_owned(), CHALLENGE, "comm_d_proofs.path"),
        ("/comm_r_last_proof/data/Single/root/0".to_owned(), VANILLA, "comm_r_last_proof.root"),
        ("/comm_r_last_proof/data/Single/leaf/0".to_owned(), VANILLA, "comm_r_last_proof.leaf"),
        ("/comm_r_last_proof/data/Single/path/path/1/hashes/6/0".to_owned(), VANILLA, "comm_r_last_proof"),
        ("/comm_r_last_proof/data/Single/path/path/1/index".to_owned(), CHALLENGE, "comm_r_last_proof.path"),
        (format!("{c_x}/column/index"), CHALLENGE, "c_x.column.index"),
        (format!("{c_x}/column/rows/0/0"), VANILLA, "c_x.column.rows[0]"),
        (format!("{c_x}/column/rows/1/0"), VANILLA, "c_x.column.rows[1]"),
        (format!("{c_x}/inclusion_proof/data/Single/root/0"), VANILLA, "c_x.inclusion_proof.root"),
        (format!("{c_x}/inclusion_proof/data/Single/leaf/0"), VANILLA, "c_x.inclusion_proof.leaf"),
        (format!("{c_x}/inclusion_proof/data/Single/path/path/0/hashes/0/0"), VANILLA, "c_x.inclusion_proof"),
        (format!("{c_x}/inclusion_proof/data/Single/path/path/0/index"), CHALLENGE, "c_x.inclusion_proof.path"),
        ("/labeling_proofs/0/parents/36/0".to_owned(), VANILLA, "labeling_proofs[0].parents[36]"),
        ("/labeling_proofs/1/parents/20/0".to_owned(), VANILLA, "labeling_proofs[1].parents[20]"),
        ("/labeling_proofs/1/layer_index".to_owned(), VANILLA, "labeling_proofs[1].layer_index"),
        ("/labeling_proofs/1/node".to_owned(), CHALLENGE, "labeling_proofs[1].node"),
        ("/encoding_proof/parents/13/0".to_owned(), VANILLA, "encoding_proof.parents[13]"),
        ("/encoding_proof/layer_index".to_owned(), VANILLA, "encoding_proof.layer_index"),
        ("/encoding_proof/node".to_owned(), CHALLENGE, "encoding_proof.node"),
    ] {
        altered(&format!("{PROOF}{pointer}"), flip, code, &[here, place]);
    }
    for (pointer, place) in [("drg_parents/5", "drg_parents[5]"), ("exp_parents/7", "exp_parents[7]")] {
        let column = format!("{PROOF}/replica_column_proofs/{pointer}");
        let part = |part: &str| format!("{place}.{part}");
        altered(&format!("{column}/column/index"), flip, CHALLENGE, &[here, &part("column.index")]);
        altered(
            &format!("{column}/inclusion_proof/data/Single/leaf/0"),
            flip,
            VANILLA,
            &[here, &part("inclusion_proof.leaf")],
        );
        altered(
            &format!("{column}/inclusion_proof/data/Single/root/0"),
            flip,
            VANILLA,
            &[here, &part("inclusion_proof.root")],
        );
        let hashes = format!("{column}/inclusion_proof/data/Single/path/path/1/hashes/3/9");
        altered(&hashes, flip, VANILLA, &[here, &part("inclusion_proof")]);
        let index = format!("{column}/inclusion_proof/data/Single/path/path/1/index");
        altered(&index, flip, CHALLENGE, &[here, &part("inclusion_proof.path")]);
        // The copies in labeling proofs are compared with the columns.
        altered(&format!("{column}/column/rows/0/0"), flip, VANILLA, &[here, "labeling_proofs", place]);
    }
    // No label is made from the last row of a parent in the previous layer: its column hash finds it.
    let unused = format!("{PROOF}/replica_column_proofs/exp_parents/7/column/rows/1/0");
    altered(&unused, flip, VANILLA, &[here, "exp_parents[7].inclusion_proof.leaf"]);
}

#[test]
fn zero_where_forbidden_is_refused() {
    for name in ["comm_r", "comm_d", "seed"] {
        altered(&format!("/{name}"), |value| *value = vec![0; 32].into(), ELEMENT, &[name, "zero"]);
    }
    altered("/replica_id", |value| *value = vec![0; 32].into(), IDENTITY, &["replica id"]);
    altered("/ticket", |value| *value = vec![0; 32].into(), IDENTITY, &["replica id"]);
}

/// Pointers to all arrays in the document.
fn arrays(value: &Value, pointer: &str, found: &mut Vec<String>) {
    match value {
        Value::Array(elements) => {
            found.push(pointer.to_owned());
            elements.iter().enumerate().for_each(|(i, element)| arrays(element, &format!("{pointer}/{i}"), found));
        }
        Value::Object(fields) => {
            fields.iter().for_each(|(name, field)| arrays(field, &format!("{pointer}/{name}"), found));
        }
        _ => {}
    }
}

#[test]
fn elements_above_the_modulus_are_refused_everywhere() {
    let fixture = fixture(SMALL);
    let whole = document(&fixture);
    let mut pointers = Vec::new();
    arrays(&whole, "", &mut pointers);
    let mut elements = 0;
    for pointer in pointers {
        let length = whole.pointer(&pointer).unwrap().as_array().unwrap().len();
        let is_element = length == 32 && whole.pointer(&format!("{pointer}/0")).unwrap().is_u64();
        if !is_element || ["/seed", "/ticket"].contains(&&pointer[..]) {
            continue;
        }
        let mut c1 = whole.clone();
        *c1.pointer_mut(&pointer).unwrap() = vec![0xff; 32].into();
        // Every element of the first challenge's proof, and every sixteenth of the second's.
        elements += 1;
        if pointer.starts_with(PROOF) && elements % 16 != 0 {
            continue;
        }
        refused(&fixture, &serde_json::to_vec(&c1).unwrap(), ELEMENT, &["modulus"]);
    }
    assert!(elements > 700, "{elements}");
}

#[test]
fn empty_and_overlong_sequences_are_refused_everywhere() {
    let fixture = fixture(SMALL);
    let whole = document(&fixture);
    let mut pointers = Vec::new();
    arrays(&whole, "", &mut pointers);
    let mut sequences = 0;
    for pointer in pointers {
        let elements = whole.pointer(&pointer).unwrap().as_array().unwrap();
        if elements[0].is_u64() {
            continue;
        }
        sequences += 1;
        let first = elements[0].clone();
        for change in [vec![], elements[1..].to_vec(), [&elements[..], &[first]].concat()] {
            let mut c1 = whole.clone();
            *c1.pointer_mut(&pointer).unwrap() = change.into();
            let error = run(&fixture, &serde_json::to_vec(&c1).unwrap()).expect_err(&pointer);
            // One too many may be more than any registered proof has.
            assert!([SHAPE, SYNTAX].contains(&error.code()), "{pointer}: {error}");
            assert!(error.code() == SHAPE || error.to_string().contains("at most"), "{pointer}: {error}");
        }
    }
    assert!(sequences > 100, "{sequences}");
}

#[test]
fn missing_and_extra_partitions_and_challenges_are_refused_with_the_counts() {
    let proofs = "/vanilla_proofs/StackedDrg2KiBV1";
    altered(proofs, |value| *value = json!([]), SHAPE, &["0 partitions, expected 1"]);
    altered(proofs, |value| *value = json!([[]]), SHAPE, &["partition 0", "0 challenges, expected 2"]);
    let double = |value: &mut Value| {
        let elements = value.as_array_mut().unwrap();
        elements.extend(elements.clone());
    };
    altered(proofs, double, SHAPE, &["2 partitions, expected 1"]);
    altered(&format!("{proofs}/0"), double, SHAPE, &["partition 0", "4 challenges, expected 2"]);
    // The right count with the same partition or challenge twice.
    altered(&format!("{proofs}/0"), |value| value[1] = value[0].clone(), CHALLENGE, &["partition 0, challenge 1"]);
}

#[test]
fn trees_of_another_form_are_refused() {
    let data = format!("{PROOF}/comm_r_last_proof/data");
    let to_sub = |value: &mut Value| {
        let single = value["Single"].take();
        *value = json!({ "Sub": {
            "base_proof": single["path"], "sub_proof": { "path": [] }, "root": single["root"], "leaf": single["leaf"],
        }});
    };
    altered(&data, to_sub, SHAPE, &["comm_r_last_proof.data", "Single"]);
    altered(&data, |value| *value = json!({}), SYNTAX, &["at byte"]);
    altered(&data, |value| value["Sub"] = Value::Null, SYNTAX, &["at byte"]);
    altered(&data, |value| *value = json!({ "Double": null }), SYNTAX, &["unknown variant `Double`"]);
    let index = format!("{data}/Single/path/path/0/index");
    altered(&index, |value| *value = json!(8), SHAPE, &["comm_r_last_proof.path[0].index", "no index among 8"]);
    altered(&index, |value| *value = json!(u64::MAX), SHAPE, &["no index among 8"]);
    let index = format!("{PROOF}/comm_d_proofs/data/Single/path/path/0/index");
    altered(&index, |value| *value = json!(2), SHAPE, &["comm_d_proofs.path[0].index", "no index among 2"]);
}
