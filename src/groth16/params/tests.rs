//! Parameter files, good and bad. The circuit is so small that every point is a sample.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use blstrs::G1Affine;
use group::prime::PrimeCurveAffine;

use super::*;
use crate::environment::PARAMETER_DIR_VARIABLE;
use crate::groth16::testing::{Chain, Fixture};

fn fixture() -> Fixture {
    Fixture::new(Chain::small(), 1)
}

/// Opens after `change` of the bytes of one file.
fn open_changed(fixture: &Fixture, extension: &str, change: impl FnOnce(&mut Vec<u8>)) -> Result<Parameters> {
    let path = fixture.path(extension);
    let original = fs::read(&path).unwrap();
    let mut bytes = original.clone();
    change(&mut bytes);
    fs::write(&path, bytes).unwrap();
    let result = fixture.open();
    fs::write(&path, original).unwrap();
    result
}

fn content_error(result: Result<Parameters>) -> String {
    let error = result.map(drop).unwrap_err();
    assert!(matches!(error, Error::ParamsContent { .. }), "{error}");
    error.to_string()
}

fn layout(fixture: &Fixture) -> Layout {
    Layout::new(&fixture.expected.counts).unwrap()
}

#[test]
fn reading_in_ranges_gives_the_points_of_bellpersons_reader() {
    let fixture = fixture();
    let params = fixture.open().unwrap();
    let file = fs::File::open(fixture.path("params")).unwrap();
    let theirs = bellperson::groth16::Parameters::<blstrs::Bls12>::read(file, true).unwrap();
    let control = Control::new();
    let mut points = Vec::new();
    for (section, expected) in G1Section::ALL.into_iter().zip([&theirs.h, &theirs.l, &theirs.a, &theirs.b_g1]) {
        let count = params.counts().len(section);
        assert_eq!(count, expected.len());
        for range in [0..count, 1..count, 0..0, count..count, 3..7, count - 1..count] {
            params.read_g1(section, range.clone(), &mut points, &control).unwrap();
            assert_eq!(points, expected[range]);
        }
    }
    let mut points = Vec::new();
    params.read_g2(0..theirs.b_g2.len(), &mut points, &control).unwrap();
    assert_eq!(points, *theirs.b_g2);
    params.check_all(&control, &mut |_, _| {}).unwrap();
}

#[test]
fn a_section_of_many_pieces_is_read_in_order() {
    let fixture = Fixture::new(Chain { links: 12_000, start: 5 }, 1);
    let params = fixture.open().unwrap();
    let file = fs::File::open(fixture.path("params")).unwrap();
    let theirs = bellperson::groth16::Parameters::<blstrs::Bls12>::read(file, false).unwrap();
    let mut points = Vec::new();
    params.read_g1(G1Section::L, 5..24_000, &mut points, &Control::new()).unwrap();
    assert!(points == theirs.l[5..24_000]);
}

#[test]
fn ranges_outside_a_section_are_refused() {
    let fixture = fixture();
    let params = fixture.open().unwrap();
    let count = params.counts().len(G1Section::A);
    let mut points = vec![G1Affine::generator()];
    #[allow(clippy::reversed_empty_ranges)]
    for range in [0..count + 1, count + 1..count + 1, 5..4, 0..usize::MAX] {
        let result = params.read_g1(G1Section::A, range, &mut points, &Control::new());
        assert!(matches!(result, Err(Error::Internal { .. })));
    }
}

#[test]
fn test_parameters_are_insecure_and_not_official() {
    let mut fixture = fixture();
    let params = fixture.open().unwrap();
    assert!(params.is_insecure() && !params.is_official());
    let vk = digest_of_bytes(&fs::read(fixture.path("vk")).unwrap());
    fs::remove_file(fixture.path("insecure")).unwrap();
    let digests = Digests { params: "0".repeat(32), vk };
    fixture.expected.known = vec![Known { label: "2KiB".into(), size: 1, digests }];
    let params = fixture.open().unwrap();
    assert!(!params.is_insecure() && params.is_official());
}

#[test]
fn missing_files_name_the_path_and_the_variable() {
    for extension in ["params", "vk"] {
        let fixture = fixture();
        fs::remove_file(fixture.path(extension)).unwrap();
        let error = fixture.open().unwrap_err();
        assert!(matches!(error, Error::ParamsMissing { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(fixture.path(extension).to_str().unwrap()) && text.contains(PARAMETER_DIR_VARIABLE));
    }
    let fixture = fixture();
    let missing = Parameters::open(Path::new("/nonexistent/directory"), &fixture.expected, &Control::new());
    assert!(matches!(missing, Err(Error::ParamsMissing { .. })));
}

#[test]
fn what_cannot_be_read_is_told_apart_from_what_is_missing() {
    let fixture = fixture();
    // A directory that is a file.
    let below_file = Parameters::open(&fixture.path("vk"), &fixture.expected, &Control::new());
    assert!(matches!(below_file, Err(Error::ParamsRead { .. })));
    for extension in ["params", "vk"] {
        let fixture = self::fixture();
        let path = fixture.path(extension);
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        let error = fixture.open().unwrap_err();
        assert!(matches!(error, Error::ParamsRead { .. }) && error.to_string().contains("directory"), "{error}");
    }
}

#[test]
fn a_named_pipe_is_refused_without_waiting_for_a_writer() {
    let fixture = fixture();
    let path = fixture.path("params");
    fs::remove_file(&path).unwrap();
    let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: the name is a NUL-terminated string that lives through the call.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    assert!(matches!(fixture.open(), Err(Error::ParamsRead { .. })));
}

#[test]
fn a_cut_file_is_refused_with_both_sizes() {
    let fixture = fixture();
    let layout = layout(&fixture);
    let vk_len = layout.vk_len;
    for length in [1, 100, vk_len - 1, vk_len, vk_len + 4, layout.g1[1].offset as usize, layout.size as usize - 1] {
        let error = open_changed(&fixture, "params", |bytes| bytes.truncate(length)).unwrap_err();
        let Error::ParamsSize { expected, actual, .. } = &error else { panic!("{error}") };
        assert_eq!((*expected, *actual), (layout.size, length as u64));
        assert!(error.to_string().contains("cut"), "{error}");
    }
    for length in [1, vk_len - 1] {
        let error = open_changed(&fixture, "vk", |bytes| bytes.truncate(length)).unwrap_err();
        assert!(matches!(error, Error::ParamsSize { .. }), "{error}");
    }
    let longer = open_changed(&fixture, "params", |bytes| bytes.push(0));
    assert!(matches!(longer, Err(Error::ParamsSize { .. })));
}

#[test]
fn the_size_error_says_what_the_file_looks_like() {
    let mut fixture = fixture();
    let digests = Digests { params: String::new(), vk: String::new() };
    fixture.expected.known = vec![Known { label: "8MiB".into(), size: 7777, digests }];
    for (content, hint) in [
        (&b""[..], "empty"),
        (b"\n<!DOCTYPE html><html>404</html>", "HTML page"),
        (b"<html><head>", "HTML page"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS"),
        (b"too many requests\n", "text"),
        (&[0xff; 7777], "size of the 8MiB parameters"),
    ] {
        for extension in ["params", "vk"] {
            let result = open_changed(&fixture, extension, |bytes| *bytes = content.to_vec());
            let error = result.map(drop).unwrap_err();
            assert!(matches!(error, Error::ParamsSize { .. }));
            if extension == "params" || content.len() != 7777 {
                assert!(error.to_string().contains(hint), "{error}");
            }
        }
    }
}

#[test]
fn a_flipped_byte_anywhere_in_the_file_is_refused() {
    let fixture = fixture();
    let layout = layout(&fixture);
    let mut places: Vec<usize> = (0..layout.vk_len).step_by(37).collect();
    for section in layout.sections() {
        places.extend(section.offset as usize - 4..section.offset as usize);
        places.extend([section.offset as usize, section.offset as usize + 95]);
    }
    places.extend((layout.vk_len..layout.size as usize).step_by(1013));
    places.push(layout.size as usize - 1);
    for place in places {
        content_error(open_changed(&fixture, "params", |bytes| bytes[place] ^= 1));
    }
}

#[test]
fn the_error_for_a_flipped_byte_says_where_it_is() {
    let fixture = fixture();
    let layout = layout(&fixture);
    let at = |offset: u64| open_changed(&fixture, "params", |bytes| bytes[offset as usize] ^= 1);
    assert!(content_error(at(10)).contains("alpha_g1 of the verifying key"));
    assert!(content_error(at(layout.g1[1].offset - 1)).contains("section l has count"));
    assert!(content_error(at(layout.g1[2].offset + 96 * 3 + 95)).contains("point 3 of section a"));
    assert!(content_error(at(layout.b_g2.offset + 191)).contains("point 0 of section b_g2"));
}

#[test]
fn another_circuits_key_of_the_same_size_is_refused() {
    let (fixture, other) = (fixture(), Fixture::new(Chain::small(), 2));
    let theirs = fs::read(other.path("vk")).unwrap();
    let text = content_error(open_changed(&fixture, "vk", |bytes| *bytes = theirs));
    assert!(text.contains("differs from the verifying key"), "{text}");
}

#[test]
fn bad_points_are_refused_by_the_samples_and_named() {
    let fixture = fixture();
    let offset = layout(&fixture).g1[0].offset as usize + 96 * 5;
    let with_point =
        |point: [u8; 96]| open_changed(&fixture, "params", |bytes| bytes[offset..offset + 96].copy_from_slice(&point));
    let mut off_curve = G1Affine::generator().to_uncompressed();
    off_curve[95] ^= 1;
    let mut order_three = [0; 96];
    order_three[95] = 2;
    let mut large = G1Affine::generator().to_uncompressed();
    large[..48].fill(0x1f);
    for (point, name) in [
        (G1Affine::identity().to_uncompressed(), "infinity"),
        ([0; 96], "infinity"),
        (off_curve, "off the curve"),
        (order_three, "subgroup"),
        (large, "modulus"),
    ] {
        let text = content_error(with_point(point));
        assert!(text.contains(name) && text.contains("point 5 of section h"), "{text}");
    }
}

#[test]
fn the_fast_reader_refuses_infinity_and_large_coordinates_and_leaves_nothing() {
    let fixture = fixture();
    let params = fixture.open().unwrap();
    let offset = layout(&fixture).g1[1].offset as usize + 96 * 2;
    let mut bytes = fs::read(fixture.path("params")).unwrap();
    for point in [G1Affine::identity().to_uncompressed(), [0; 96], [0x1f; 96]] {
        bytes[offset..offset + 96].copy_from_slice(&point);
        fs::write(fixture.path("params"), &bytes).unwrap();
        let mut points = Vec::new();
        let error = params.read_g1(G1Section::L, 1..5, &mut points, &Control::new()).unwrap_err();
        assert!(matches!(error, Error::ParamsContent { .. }), "{error}");
        assert!(error.to_string().contains("point 2 of section l"));
        assert!(points.is_empty());
        assert!(params.check_all(&Control::new(), &mut |_, _| {}).is_err());
    }
}

#[test]
fn check_all_finds_a_point_off_the_curve() {
    let fixture = fixture();
    let params = fixture.open().unwrap();
    let mut bytes = fs::read(fixture.path("params")).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(fixture.path("params"), &bytes).unwrap();
    let error = params.check_all(&Control::new(), &mut |_, _| {}).unwrap_err();
    assert!(matches!(error, Error::ParamsContent { .. }) && error.to_string().contains("b_g2"), "{error}");
}

fn age(path: &Path, by: Duration) {
    let file = fs::File::options().append(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - by).unwrap();
}

#[test]
fn replaced_rewritten_and_removed_files_are_noticed() {
    for extension in ["params", "vk"] {
        let changes: [&dyn Fn(&Path); 4] = [
            &|path| {
                let copy = path.with_extension("copy");
                fs::copy(path, &copy).unwrap();
                fs::rename(&copy, path).unwrap();
            },
            &|path| age(path, Duration::from_secs(1)),
            &|path| fs::write(path, b"short").unwrap(),
            &|path| fs::remove_file(path).unwrap(),
        ];
        for change in changes {
            let fixture = fixture();
            let params = fixture.open().unwrap();
            assert!(params.unchanged().unwrap());
            params.ensure_unchanged().unwrap();
            change(&fixture.path(extension));
            assert!(!params.unchanged().unwrap());
            assert!(matches!(params.ensure_unchanged(), Err(Error::ParamsChanged { .. })));
        }
    }
}

#[test]
fn a_file_cut_while_open_is_reported_as_changed() {
    let fixture = fixture();
    let params = fixture.open().unwrap();
    let file = fs::File::options().write(true).open(fixture.path("params")).unwrap();
    file.set_len(layout(&fixture).g1[0].offset + 100).unwrap();
    let mut points = Vec::new();
    let result = params.read_g1(G1Section::H, 0..3, &mut points, &Control::new());
    assert!(matches!(result, Err(Error::ParamsChanged { .. })));
    params.read_g1(G1Section::H, 0..1, &mut points, &Control::new()).unwrap();
    let digests = params.digests(None, &Control::new(), &mut |_, _| {});
    assert!(matches!(digests, Err(Error::ParamsChanged { .. })));
}

#[test]
fn a_removed_file_can_be_read_to_the_end() {
    let fixture = fixture();
    let params = fixture.open().unwrap();
    fs::remove_file(fixture.path("params")).unwrap();
    let mut points = Vec::new();
    params.read_g1(G1Section::H, 0..3, &mut points, &Control::new()).unwrap();
    assert_eq!(points.len(), 3);
}

#[test]
fn digests_are_those_of_the_whole_files() {
    let fixture = fixture();
    let params = fixture.open().unwrap();
    let mut seen = Vec::new();
    let digests = params.digests(None, &Control::new(), &mut |done, total| seen.push((done, total))).unwrap();
    assert_eq!(digests.params, digest_of_bytes(&fs::read(fixture.path("params")).unwrap()));
    assert_eq!(digests.vk, digest_of_bytes(&fs::read(fixture.path("vk")).unwrap()));
    let size = layout(&fixture).size;
    assert_eq!(seen, [(size, size)]);
}

#[test]
fn the_published_form_of_a_digest_is_half_of_the_first_32_bytes_in_hex() {
    // b2sum of nothing.
    assert_eq!(digest_of_bytes(b""), "786a02f742015903c6c6fd852552d272");
}

#[test]
fn a_file_longer_than_a_piece_is_digested_whole() {
    let fixture = Fixture::new(Chain { links: 12_000, start: 5 }, 1);
    let params = fixture.open().unwrap();
    let bytes = fs::read(fixture.path("params")).unwrap();
    assert!(bytes.len() > 8 << 20);
    let digests = params.digests(None, &Control::new(), &mut |_, _| {}).unwrap();
    assert_eq!(digests.params, digest_of_bytes(&bytes));
}

#[test]
fn a_wrong_official_digest_is_an_error_that_names_the_file_and_both() {
    let mut fixture = fixture();
    let right = fixture.open().unwrap().digests(None, &Control::new(), &mut |_, _| {}).unwrap();
    let wrong = "0".repeat(32);
    for (official, extension) in [
        (Digests { params: wrong.clone(), ..right.clone() }, "params"),
        (Digests { vk: wrong.clone(), ..right.clone() }, "vk"),
    ] {
        fixture.expected.official = Some(official);
        let result = fixture.open().unwrap().check_digests(None, &Control::new(), &mut |_, _| {});
        let Err(Error::ParamsDigest { path, expected, .. }) = result else { panic!("{result:?}") };
        assert_eq!((path, &expected), (fixture.path(extension), &wrong));
    }
    fixture.expected.official = Some(right.clone());
    let checked = fixture.open().unwrap().check_digests(None, &Control::new(), &mut |_, _| {}).unwrap();
    assert_eq!(checked, right);
}

/// The digest through a cache, and whether the file was read for it.
fn cached(fixture: &Fixture, cache: &Path) -> (String, bool) {
    let mut read = false;
    let digests = fixture.open().unwrap().digests(Some(cache), &Control::new(), &mut |_, _| read = true).unwrap();
    (digests.params, read)
}

#[test]
fn a_cached_digest_serves_until_the_file_changes() {
    let (fixture, base) = (fixture(), tempfile::tempdir().unwrap());
    let cache = base.path().join("made/on/demand");
    age(&fixture.path("params"), Duration::from_secs(3600));
    let (digest, read) = cached(&fixture, &cache);
    assert!(read);
    assert_eq!(cached(&fixture, &cache), (digest.clone(), false));
    age(&fixture.path("params"), Duration::from_secs(1800));
    assert_eq!(cached(&fixture, &cache), (digest.clone(), true));
    assert_eq!(cached(&fixture, &cache), (digest, false));
}

#[test]
fn garbage_in_the_cache_is_replaced() {
    let (fixture, cache) = (fixture(), tempfile::tempdir().unwrap());
    age(&fixture.path("params"), Duration::from_secs(3600));
    let (digest, _) = cached(&fixture, cache.path());
    let entry = cache.path().read_dir().unwrap().next().unwrap().unwrap().path();
    let good = fs::read(&entry).unwrap();
    let mut cases = vec![Vec::new(), vec![0xff; 4096], good[..good.len() - 1].to_vec(), good[1..].to_vec()];
    let mut not_hex = good.clone();
    not_hex[good.len() - 2] = b'g';
    cases.push(not_hex);
    for garbage in cases {
        fs::write(&entry, garbage).unwrap();
        assert_eq!(cached(&fixture, cache.path()), (digest.clone(), true));
        assert_eq!(fs::read(&entry).unwrap(), good);
    }
    fs::remove_file(&entry).unwrap();
    fs::create_dir(&entry).unwrap();
    assert_eq!(cached(&fixture, cache.path()), (digest, true));
}

#[test]
fn a_file_that_changed_just_now_is_not_cached() {
    let (fixture, cache) = (fixture(), tempfile::tempdir().unwrap());
    assert!(cached(&fixture, cache.path()).1);
    assert!(cached(&fixture, cache.path()).1);
}

#[test]
fn a_cache_that_cannot_be_written_costs_only_time() {
    let fixture = fixture();
    age(&fixture.path("params"), Duration::from_secs(3600));
    let below_a_file = fixture.path("vk");
    let (digest, read) = cached(&fixture, &below_a_file);
    assert!(read);
    assert_eq!(cached(&fixture, &below_a_file), (digest, true));
}

#[test]
fn cancel_stops_opening_reading_and_digesting() {
    let fixture = fixture();
    let params = fixture.open().unwrap();
    let token = crate::pipeline::CancelToken::new();
    token.cancel();
    let control = Control::new().with_cancel(token);
    let cancelled = |result: Result<()>| assert!(matches!(result, Err(Error::Cancelled { .. })));
    cancelled(Parameters::open(fixture.directory.path(), &fixture.expected, &control).map(drop));
    cancelled(params.read_g1(G1Section::H, 0..3, &mut Vec::new(), &control));
    cancelled(params.digests(None, &control, &mut |_, _| {}).map(drop));
    cancelled(params.check_all(&control, &mut |_, _| {}));
}
