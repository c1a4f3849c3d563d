//! The command line tool as people and machines use it.

mod common;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use common::{directory, fixture, test_parameters, SMALL};
use cuporep::porep::SectorSize;

const SECTOR: [&str; 4] = ["--sector", "963860", "--miner", "t03454089"];

fn tool(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuporep"));
    command.args(arguments).env_remove("CUPOREP_LOG");
    command
}

fn run(arguments: &[&str]) -> Output {
    tool(arguments).output().unwrap()
}

fn with_sector<'a>(before: &[&'a str], after: &[&'a str]) -> Vec<&'a str> {
    [before, &SECTOR, after].concat()
}

fn small_c1() -> String {
    directory(SMALL).join("c1.json.xz").to_str().unwrap().to_string()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn json(output: &Output) -> serde_json::Value {
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn proves_checks_and_verifies_a_sector() {
    let params = test_parameters(SectorSize::KiB2).to_str().unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let (c1, proof) = (small_c1(), scratch.path().join("proof"));
    let proof = proof.to_str().unwrap();
    let fixed = ["--params", params, "--insecure-randomness", "123456789abcdef0,0fedcba987654321", "--out", proof];
    let made = run(&with_sector(&["prove", "--c1", &c1], &fixed));
    assert!(made.status.success(), "{}", text(&made.stderr));
    assert!(made.stdout.is_empty());
    assert!(text(&made.stderr).contains("INSECURE"), "a warning at every load");
    assert_eq!(std::fs::read(proof).unwrap(), fixture(SMALL).proof);
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 1, "no temporary files stay");

    let verify = with_sector(&["verify", "--json", "--c1", &c1], &["--params", params, "--proof", proof]);
    assert_eq!(json(&run(&verify))["ok"], true);
    std::fs::write(proof, hex::encode(fixture(SMALL).proof)).unwrap();
    assert_eq!(json(&run(&verify))["ok"], true, "digits are accepted too");
    let other = fixture("StackedDrg2KiBV1_1-001").proof;
    std::fs::write(proof, other).unwrap();
    let refused = run(&verify);
    assert_eq!((refused.status.code(), json(&refused)["error"]["code"].as_i64()), (Some(1), Some(111)));
}

#[test]
fn check_reads_files_in_all_packings_and_standard_input() {
    let scratch = tempfile::tempdir().unwrap();
    let c1 = fixture(SMALL).c1;
    let plain = scratch.path().join("c1.json");
    std::fs::write(&plain, &c1).unwrap();
    let packed = scratch.path().join("c1.json.gz");
    let mut encoder = flate2::write::GzEncoder::new(std::fs::File::create(&packed).unwrap(), Default::default());
    encoder.write_all(&c1).unwrap();
    encoder.finish().unwrap();
    for path in [plain.to_str().unwrap(), packed.to_str().unwrap(), &small_c1()] {
        let output = run(&with_sector(&["check", "--c1", path], &[]));
        assert_eq!(text(&output.stdout), "ok: StackedDrg2KiBV1_1, 1 partitions of 2 challenges\n");
        assert!(output.stderr.is_empty() && output.status.success());
    }
    let mut child =
        tool(&with_sector(&["check", "--c1", "-"], &[])).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&c1).unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
}

#[test]
fn a_full_check_finds_every_constraint_satisfied() {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
    let arguments = ["--json", "--cache", cache.to_str().unwrap(), "check", "--full", "--c1", &small_c1()];
    assert_eq!(json(&run(&with_sector(&arguments, &[])))["ok"], true);
}

#[test]
fn errors_have_a_line_for_people_an_object_for_machines_and_an_exit_code_by_class() {
    let c1 = small_c1();
    let wrong = ["check", "--c1", &c1, "--sector", "963861", "--miner", "t03454089"];
    let people = run(&wrong);
    assert_eq!(people.status.code(), Some(1));
    assert!(people.stdout.is_empty());
    assert!(text(&people.stderr).starts_with("cuporep: input error 107: "), "{}", text(&people.stderr));
    assert_eq!(text(&people.stderr).lines().count(), 1);
    let machines = run(&[&wrong[..], &["--json"]].concat());
    assert_eq!(machines.status.code(), Some(1));
    assert_eq!(json(&machines)["error"]["code"], 107);
    assert_eq!(json(&machines)["error"]["class"], "input");

    let missing = run(&with_sector(&["--json", "prove", "--c1", &c1], &["--params", "/nonexistent"]));
    assert_eq!((missing.status.code(), json(&missing)["error"]["code"].as_i64()), (Some(3), Some(200)));
    for path in ["/nonexistent", "/"] {
        let absent = run(&with_sector(&["--json", "check", "--c1", path], &[]));
        assert_eq!((absent.status.code(), json(&absent)["error"]["code"].as_i64()), (Some(1), Some(100)), "{path}");
    }
    let usage = run(&["--json", "prove", "--c1", &c1]);
    assert_eq!((usage.status.code(), json(&usage)["error"]["class"].as_str()), (Some(2), Some("usage")));
    let threads = run(&with_sector(&["--json", "--threads", "100000", "check", "--c1", &c1], &[]));
    assert_eq!((threads.status.code(), json(&threads)["error"]["code"].as_i64()), (Some(1), Some(100)));
}

#[test]
fn damaged_packings_are_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("cut.xz");
    let whole = std::fs::read(directory(SMALL).join("c1.json.xz")).unwrap();
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let output = run(&with_sector(&["--json", "check", "--c1", path.to_str().unwrap()], &[]));
    assert_eq!(json(&output)["error"]["class"], "input");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn an_output_that_cannot_be_written_is_an_error_before_anything_is_proved() {
    let params = test_parameters(SectorSize::KiB2).to_str().unwrap();
    let begin = std::time::Instant::now();
    let output = run(&with_sector(
        &["--json", "prove", "--c1", &small_c1()],
        &["--params", params, "--out", "/nonexistent/proof"],
    ));
    assert_eq!((output.status.code(), json(&output)["error"]["code"].as_i64()), (Some(4), Some(301)));
    assert!(!Path::new("/nonexistent").exists());
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().to_str().unwrap();
    let output = run(&with_sector(&["--json", "prove", "--c1", &small_c1()], &["--params", params, "--out", out]));
    assert_eq!((output.status.code(), json(&output)["error"]["code"].as_i64()), (Some(1), Some(100)));
    assert!(begin.elapsed().as_secs() < 5);
}

#[test]
fn devices_are_listed_and_asked_for_by_name() {
    let listed = json(&run(&["--json", "devices"]));
    let devices = listed["devices"].as_array().unwrap();
    assert_eq!(devices.is_empty(), listed["reason"].is_string(), "{listed}");
    assert!(devices.iter().all(|device| device["uuid"].as_str().unwrap().starts_with("GPU-")), "{listed}");
    let plain = run(&["devices"]);
    assert_eq!(text(&plain.stdout).lines().last(), Some("cpu"));

    let c1 = small_c1();
    let prove = |device| run(&with_sector(&["--json", "prove", "--c1", &c1], &["--device", device]));
    for missing in ["cuda:77", "GPU-ffffffff-none", "cuda:0,cuda:77"] {
        let output = prove(missing);
        assert_eq!((output.status.code(), json(&output)["error"]["code"].as_i64()), (Some(4), Some(302)), "{missing}");
    }
    for malformed in ["gpu0", "cuda:", "cpu,gpu", ""] {
        assert_eq!(prove(malformed).status.code(), Some(2), "{malformed:?}");
    }
}

#[test]
fn insecure_parameters_are_never_made_in_the_default_directory_or_over_others() {
    let default = cuporep::environment::DEFAULT_PARAMETER_DIR;
    let output = run(&["--json", "params", "generate", "--size", "2KiB", "--insecure-seed", "1", "--dir", default]);
    assert_eq!((output.status.code(), json(&output)["error"]["code"].as_i64()), (Some(3), Some(206)));
    let existing = test_parameters(SectorSize::KiB2).to_str().unwrap();
    let output = run(&["--json", "params", "generate", "--size", "2KiB", "--insecure-seed", "1", "--dir", existing]);
    assert_eq!((output.status.code(), json(&output)["error"]["code"].as_i64()), (Some(3), Some(206)));
}

#[test]
fn params_check_says_what_the_parameters_are() {
    let params = test_parameters(SectorSize::KiB2).to_str().unwrap();
    let output = run(&["--json", "params", "check", "--size", "2KiB", "--dir", params, "--digest"]);
    let report = json(&output);
    assert_eq!((&report["ok"], &report["insecure"], &report["official"]), (&true.into(), &true.into(), &false.into()));
    // The digest of the file that seed 1 gives, which is the one bellperson's generator would write.
    assert_eq!(report["digest"], "b08f6c2611e71868c24fc59bb8ee94ab");
}

#[test]
fn an_interrupt_while_input_is_awaited_ends_the_tool_at_once() {
    let mut child = tool(&with_sector(&["check", "--c1", "-"], &[])).stdin(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    for signal in ["-INT", "-TERM"] {
        Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    }
    let begin = std::time::Instant::now();
    assert_eq!(child.wait().unwrap().code(), Some(5));
    assert!(begin.elapsed().as_secs() < 5);
}

#[test]
fn what_is_no_file_is_written_through() {
    let params = test_parameters(SectorSize::KiB2).to_str().unwrap();
    let arguments = ["--json", "prove", "--c1", &small_c1()];
    let output = run(&with_sector(&arguments, &["--params", params, "--out", "/dev/full"]));
    assert_eq!((output.status.code(), json(&output)["error"]["code"].as_i64()), (Some(4), Some(301)));
    use std::os::unix::fs::FileTypeExt;
    assert!(std::fs::metadata("/dev/full").unwrap().file_type().is_char_device(), "still a device");
}

#[test]
fn a_trace_that_cannot_be_written_takes_no_proof_with_it() {
    let params = test_parameters(SectorSize::KiB2).to_str().unwrap();
    let arguments = ["--json", "prove", "--device", "cpu", "--c1", &small_c1()];
    let fixed = ["--params", params, "--insecure-randomness", "123456789abcdef0,0fedcba987654321"];
    let output = run(&with_sector(&arguments, &[&fixed[..], &["--trace", "/dev/full"]].concat()));
    let made: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(output.status.success(), "{made}");
    assert_eq!(made["proof"], hex::encode(fixture(SMALL).proof));
    assert!(made["warnings"][0].as_str().unwrap().contains("/dev/full"), "{made}");
}

#[test]
fn kernels_are_measured_on_a_gpu_that_there_is() {
    for (arguments, exit, code) in [(&["--device", "cuda:77"][..], 4, Some(302)), (&["--largest", "99"], 2, Some(2))] {
        let output = run(&[&["--json", "bench", "kernels"], arguments].concat());
        assert_eq!(
            (output.status.code(), json(&output)["error"]["code"].as_i64()),
            (Some(exit), code),
            "{arguments:?}"
        );
    }
}

#[test]
fn a_trace_shows_the_stages_of_a_proof() {
    let params = test_parameters(SectorSize::KiB2).to_str().unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let trace = scratch.path().join("trace.json");
    let options = ["--params", params, "--device", "cpu", "--proofs", "1", "--trace", trace.to_str().unwrap()];
    let output = run(&with_sector(&["--json", "bench", "stages", "--c1", &small_c1()], &options));
    let stages = json(&output)["stages"].as_array().unwrap().len();
    let trace: serde_json::Value = serde_json::from_slice(&std::fs::read(trace).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let count = |name: &str| events.iter().filter(|event| event["name"] == name && event["ph"] == "X").count();
    assert!(stages > 8, "{stages}");
    assert_eq!(["check", "witness", "sum_h", "verify"].map(count), [1; 4]);
}

#[test]
fn a_fabricated_c1_output_is_accepted_with_the_ids_that_are_printed() {
    let scratch = tempfile::tempdir().unwrap();
    let c1 = scratch.path().join("c1.json");
    let c1 = c1.to_str().unwrap();
    let make = ["bench", "fabricate", "--size", "2KiB", "--seed", "3", "--out"];
    let made = json(&run(&[&["--json"], &make[..], &[c1]].concat()));
    assert_eq!(made["registered_proof"], "StackedDrg2KiBV1_1");
    assert_eq!(made["bytes"], std::fs::metadata(c1).unwrap().len());
    let (sector, miner) = (made["sector"].to_string(), made["miner"].to_string());
    let checked = run(&["check", "--c1", c1, "--sector", &sector, "--miner", &miner]);
    assert_eq!(text(&checked.stdout), "ok: StackedDrg2KiBV1_1, 1 partitions of 2 challenges\n");

    let people = run(&[&make[..], &["-"]].concat());
    assert!(people.stdout == std::fs::read(c1).unwrap(), "the same bytes on standard output");
    let (ids, id) = (format!("--sector {sector} --miner t0{miner}"), made["replica_id"].as_str().unwrap());
    assert!(text(&people.stderr).contains(&ids) && text(&people.stderr).contains(id), "{}", text(&people.stderr));

    std::fs::remove_file(c1).unwrap();
    let kind = ["--kind", "non-interactive", "--sector", "7", "--miner", "f01000"];
    let given = json(&run(&[&["--json"], &make[..], &[c1], &kind].concat()));
    assert_eq!((&given["sector"], &given["miner"]), (&7.into(), &1000.into()));
    let large = ["--json", "bench", "fabricate", "--size", "32GiB", "--kind", "synthetic", "--seed", "3", "--out"];
    for (out, code) in [(scratch.path().join("none"), 104), ("-".into(), 100)] {
        let refused = run(&[&large[..], &[out.to_str().unwrap()]].concat());
        assert_eq!((refused.status.code(), json(&refused)["error"]["code"].as_i64()), (Some(1), Some(code)));
    }
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 1, "nothing of a refused one stays");
}

#[test]
fn a_batch_is_measured_and_drawn() {
    let params = test_parameters(SectorSize::KiB2).to_str().unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let plot = scratch.path().join("batch.svg");
    let batch = |plot: &str| {
        let batch = ["--concurrency", "2", "--proofs", "2", "--release-every", "0.5", "--plot", plot];
        let options = [&["--params", params, "--device", "cpu"][..], &batch].concat();
        run(&with_sector(&["--json", "bench", "batch", "--c1", &small_c1()], &options))
    };
    let output = batch("/nonexistent/batch.svg");
    assert_eq!((output.status.code(), json(&output)["error"]["code"].as_i64()), (Some(4), Some(301)));

    let measured = json(&batch(plot.to_str().unwrap()));
    assert_eq!((&measured["device"], &measured["proofs"]), (&"cpu".into(), &2.into()));
    let points = measured["points"].as_array().unwrap();
    assert_eq!((points.len(), &points[0]["concurrency"]), (1, &2.into()));
    let figure = |name: &str| points[0][name].as_f64().unwrap_or_else(|| panic!("{name}: {measured}"));
    assert!(figure("wall_ms") >= figure("call_max_ms") && figure("call_max_ms") >= figure("call_median_ms"));
    assert!((figure("ms_per_proof") - figure("wall_ms") / 2.0).abs() < 1e-6);
    assert!(figure("queue_max_ms") >= figure("queue_median_ms") && figure("processor_seconds") > 1.0);
    assert!((0.1..=1.1).contains(&figure("host_busy")) && figure("host_peak_mib") > 100.0);
    // A proof on the CPU keeps what it needs.
    let releases = &points[0]["releases"];
    assert!(releases["count"].as_u64().unwrap() > 0 && releases["interrupting"] == 0, "{measured}");
    assert!(releases["max_ms"].as_f64().unwrap() >= releases["median_ms"].as_f64().unwrap(), "{measured}");
    let drawn = std::fs::read_to_string(&plot).unwrap();
    assert!(drawn.starts_with("<svg ") && drawn.ends_with("</svg>\n") && drawn.contains("2 at once"), "{drawn}");
    assert!(drawn.contains("<polyline ") && !drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
}

/// The emulated GPU, for who asks for it only.
#[cfg(feature = "emulator")]
mod emulated {
    use super::*;

    fn run_emulated(arguments: &[&str]) -> Output {
        tool(arguments).env("CUPOREP_TEST_GPU", "emulated").output().unwrap()
    }

    #[test]
    fn it_is_listed_only_where_it_was_asked_for() {
        let devices = json(&run_emulated(&["--json", "devices"]));
        assert_eq!(devices["devices"][0]["name"], "Emulated GPU", "{devices}");
        let devices = tool(&["--json", "devices"]).env_remove("CUPOREP_TEST_GPU").output().unwrap();
        assert!(!text(&devices.stdout).contains("Emulated"), "{}", text(&devices.stdout));
    }

    #[test]
    fn a_device_that_is_not_there_makes_no_parameters() {
        let base = tempfile::tempdir().unwrap();
        let directory = base.path().join("parameters");
        let arguments =
            ["--json", "params", "generate", "--size", "2KiB", "--insecure-seed", "1", "--device", "cuda:9"];
        let output = run_emulated(&[&arguments[..], &["--dir", directory.to_str().unwrap()]].concat());
        assert_eq!((output.status.code(), json(&output)["error"]["code"].as_i64()), (Some(4), Some(302)));
        assert!(!directory.exists());
    }

    #[test]
    fn a_plan_needs_no_gpu_and_says_what_is_where_or_what_is_missing() {
        let plan = |arguments: &[&str]| {
            let fixed = ["--json", "plan", "--size", "32GiB"];
            tool(&[&fixed, arguments].concat()).env("CUDA_VISIBLE_DEVICES", "").output().unwrap()
        };
        let little = json(&plan(&["--vram", "15GiB", "--ram", "64GiB"]));
        let number = |value: &serde_json::Value| value.as_u64().unwrap();
        assert!(number(&little["device_bytes"]) <= 15 << 30, "{little}");
        assert_eq!((&little["chunk"], &little["partitions"]), (&(1 << 24).into(), &10.into()));
        let bases = little["bases"].as_array().unwrap();
        assert_eq!(bases.len(), 5);
        assert!(number(&bases[0]["resident"]) < number(&bases[0]["count"]) && bases[1]["resident"] == 0, "{little}");
        let much = json(&plan(&["--vram", "80 GiB", "--ram", "64GiB", "--partitions", "1"]));
        assert!(much["chunk"].is_null() && number(&much["moved_bytes"]) < number(&little["moved_bytes"]), "{much}");
        for (arguments, code) in [
            (["--vram", "8GiB", "--ram", "64GiB"], 300),
            (["--vram", "15GiB", "--ram", "100MiB"], 300),
            (["--ram", "64GiB", "--partitions", "10"], 302),
        ] {
            let output = plan(&arguments);
            assert_eq!(
                (output.status.code(), &json(&output)["error"]["code"]),
                (Some(4), &code.into()),
                "{arguments:?}"
            );
        }
        assert_eq!(plan(&["--vram", "15GB"]).status.code(), Some(2));
        let lines = tool(&["plan", "--size", "2KiB", "--vram", "7GiB", "--ram", "8GiB"]).output().unwrap();
        assert!(text(&lines.stdout).contains("bases of h"), "{}", text(&lines.stdout));
    }

    #[test]
    fn its_kernels_are_measured() {
        let arguments = ["bench", "kernels", "--device", "cuda:0", "--largest", "6"];
        let measured = json(&run_emulated(&[&["--json"], &arguments[..]].concat()));
        let figures = measured["figures"].as_array().unwrap();
        assert!(figures.iter().all(|figure| figure["ms"].as_f64().unwrap() >= 0.0), "{measured}");
        assert!(figures.iter().all(|figure| figure["floor_ms"].as_f64().unwrap() > 0.0), "{measured}");
        let has = |part: &str| figures.iter().any(|figure| figure["name"].as_str().unwrap().contains(part));
        assert!(has("forward transform, 2^6") && has("G1 multiplication, 2^6") && has("G2 joint sums"), "{measured}");
        let rows = run_emulated(&arguments);
        assert_eq!(text(&rows.stdout).lines().count(), figures.len() + 1, "a line each and a head");
    }
}
