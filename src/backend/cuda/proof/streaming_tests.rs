//! Proofs on devices that hold fewer bases than there are.

use std::fs::File;

use super::super::gpu::emulated;
use super::super::testing;
use super::*;
use crate::backend::cpu::CpuBackend;
use crate::backend::cuda::setup;
use crate::backend::Backend;
use crate::groth16::setup::Multipliers;
use crate::groth16::testing::{Chain, Fixture, Hash};
use crate::pipeline::CancelToken;
use crate::r1cs::PartitionWitness;

/// A circuit with parameters, witnesses and their sums.
struct Case {
    fixture: Fixture,
    parameters: Parameters,
    witnesses: Vec<PartitionWitness>,
    expected: Vec<ProofParts>,
}

impl Case {
    fn new(links: usize, witnesses: u64) -> Self {
        let fixture = Fixture::new(Chain { links, start: 5 }, 1);
        let assign = |start| fixture.r1cs.assign(Chain { links, start }, &Control::new()).unwrap();
        let witnesses = (0..witnesses).map(|index| assign(9 + 1000 * index)).collect();
        Self::of(fixture, witnesses)
    }

    fn of(fixture: Fixture, witnesses: Vec<PartitionWitness>) -> Self {
        let parameters = fixture.open().unwrap();
        let mut case = Case { fixture, parameters, witnesses, expected: Vec::new() };
        case.expected = CpuBackend::default().prove(&case.job(&Control::new())).unwrap();
        case
    }

    fn job<'a>(&'a self, control: &'a Control) -> Job<'a> {
        Job {
            r1cs: &self.fixture.r1cs,
            parameters: &self.parameters,
            witnesses: (&self.witnesses[..]).into(),
            first_partition: 0,
            control,
        }
    }

    fn plan(&self, gpu: &Gpu, device: u64, largest_chunk: usize) -> Result<MemoryPlan> {
        let demand = Demand::of(&HostTables::of(&self.fixture.r1cs)?, self.parameters.counts())?;
        let means = Means { limits: gpu.into(), device, host: u64::MAX, largest_chunk, only: None };
        MemoryPlan::new(demand, self.witnesses.len(), &means, None)
    }

    /// The least bytes.
    fn least(&self, gpu: &Gpu, largest_chunk: usize) -> u64 {
        match self.plan(gpu, 1, largest_chunk) {
            Err(Error::Memory { needed, available: 1, .. }) => needed,
            other => panic!("{:?}", other.map(|plan| plan.residency)),
        }
    }

    fn h(&self) -> usize {
        self.parameters.counts().len(G1Section::H)
    }

    fn prove(&self, resident: &mut Resident, gpu: &Gpu, memory: Option<u64>) -> Result<()> {
        let found = resident.prove(gpu, &self.job(&Control::new()), memory)?;
        assert!(found == self.expected, "with {memory:?} bytes");
        Ok(())
    }
}

/// One that keeps these bases, and streams the others in chunks of so many points.
fn keeping(residency: Residency, largest_chunk: usize) -> Resident {
    Resident { largest_chunk, only: Some(residency), ..Resident::default() }
}

fn streaming() -> Resident {
    keeping(Residency::NONE, 64)
}

#[test]
fn sums_are_the_same_whatever_stays_on_the_device() {
    let gpu = testing::gpu();
    let case = Case::new(100, 3);
    let all = Residency::all(case.h());
    let kinds = [
        (Residency::NONE, 64),
        (Residency::NONE, 128),
        (Residency { h: 32, ..Residency::NONE }, 64),
        (Residency { h: 224, ..Residency::NONE }, 64),
        (Residency { h: case.h(), ..Residency::NONE }, 64),
        (Residency { l: false, b_g2: false, ..all }, 64),
        (Residency { a: false, b_g1: false, ..all }, 1 << 20),
        (all, 64),
    ];
    for (residency, chunk) in kinds {
        let mut resident = keeping(residency, chunk);
        // The second proof moves what is streamed once more.
        for _ in 0..2 {
            case.prove(&mut resident, &gpu, None).unwrap();
        }
        let plan = &resident.work.as_ref().unwrap().plan;
        assert_eq!((plan.residency, plan.is_streaming()), (residency, residency != all));
        assert_eq!(gpu.allocated(), plan.device_bytes(), "{residency:?}");
        drop(resident);
        assert_eq!(gpu.allocated(), 0);
    }
}

#[test]
fn a_limit_decides_what_stays_and_is_kept() {
    let gpu = testing::gpu();
    let case = Case::new(2000, 1);
    // Chunks so short that the sums of buckets that are kept take much less than h.
    let (h, chunk) = (case.h(), 128);
    let least = case.least(&gpu, chunk);
    let mut known: Vec<Residency> = Vec::new();
    for memory in (least..).step_by(40_000) {
        let residency = case.plan(&gpu, memory, chunk).unwrap().residency;
        let kind = |residency: &Residency| {
            let Residency { h: some, l, a, b_g1, b_g2 } = *residency;
            (some > 0, some == h, l || a || b_g1 || b_g2)
        };
        if residency == Residency::all(h) || known.iter().all(|known| kind(known) != kind(&residency)) {
            let mut resident = Resident { largest_chunk: chunk, ..Resident::default() };
            case.prove(&mut resident, &gpu, Some(memory)).unwrap();
            let plan = &resident.work.as_ref().unwrap().plan;
            assert_eq!(plan.residency, residency);
            let (planned, allocated) = (plan.device_bytes(), gpu.allocated());
            assert!(allocated <= memory, "{allocated} bytes with at most {memory}");
            assert!(planned.abs_diff(allocated) * 20 <= planned, "{allocated} bytes are allocated, planned {planned}");
            known.push(residency);
        }
        if residency == Residency::all(h) {
            break;
        }
    }
    assert_eq!(known[0].h, 0, "{known:?}");
    assert!(known.iter().any(|residency| residency.h > 0 && residency.h < h), "{known:?}");
    assert!(known.iter().any(|residency| residency.h == h && *residency != Residency::all(h)), "{known:?}");
}

#[test]
fn sums_of_a_hash_are_the_same_when_all_is_streamed() {
    let fixture = Fixture::new(Hash, 1);
    let witness = fixture.r1cs.assign(Hash, &Control::new()).unwrap();
    let hash = Case::of(fixture, vec![witness]);
    hash.prove(&mut keeping(Residency::NONE, 1 << 13), &testing::gpu(), None).unwrap();
}

#[test]
fn more_witnesses_than_are_proved_together_get_the_same_sums_when_all_is_streamed() {
    Case::new(40, 12).prove(&mut streaming(), &testing::gpu(), None).unwrap();
}

#[test]
fn too_little_memory_is_refused_with_the_numbers_and_nothing_is_allocated() {
    let gpu = testing::gpu();
    let case = Case::new(300, 2);
    let least = case.least(&gpu, LARGEST_CHUNK);
    let mut resident = Resident::default();
    let error = case.prove(&mut resident, &gpu, Some(least - 1)).unwrap_err();
    let Error::Memory { needed, available, .. } = &error else { panic!("{error}") };
    assert_eq!((*needed, *available, gpu.allocated()), (least, least - 1, 0));
    case.prove(&mut resident, &gpu, Some(least)).unwrap();
    assert!(gpu.allocated() <= least);
}

#[test]
fn a_file_that_is_cut_or_changed_is_an_error_and_the_next_proof_works() {
    let gpu = testing::gpu();
    let mut case = Case::new(100, 2);
    let mut resident = streaming();
    case.prove(&mut resident, &gpu, None).unwrap();
    let path = case.parameters.path().to_path_buf();
    let bytes = std::fs::read(&path).unwrap();
    // Bases of h are there, those of another query are not.
    for part in [2, 10] {
        File::options().write(true).open(&path).unwrap().set_len((bytes.len() - bytes.len() / part) as u64).unwrap();
        let error = case.prove(&mut resident, &gpu, None).unwrap_err();
        assert!(matches!(error, Error::ParamsChanged { .. }), "{error}");
        std::fs::write(&path, &bytes).unwrap();
        case.parameters = case.fixture.open().unwrap();
        case.prove(&mut resident, &gpu, None).unwrap();
    }
    // Other bytes of the same length, after it was opened.
    File::options().write(true).open(&path).unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let error = case.prove(&mut resident, &gpu, None).unwrap_err();
    assert!(matches!(error, Error::ParamsChanged { .. }), "{error}");
}

#[test]
fn a_cancel_between_chunks_leaves_the_device_usable() {
    let gpu = testing::gpu();
    let case = Case::new(100, 2);
    let mut resident = streaming();
    for stage in [Stage::Shape, Stage::Transform, Stage::SumH, Stage::SumL, Stage::SumB2] {
        let token = CancelToken::new();
        let cancel = token.clone();
        let control = Control::new().with_cancel(token).with_progress(move |event| {
            if event.stage == stage {
                cancel.cancel();
            }
        });
        let error = resident.prove(&gpu, &case.job(&control), None).unwrap_err();
        assert!(matches!(error, Error::Cancelled { .. }), "{stage}: {error}");
        case.prove(&mut resident, &gpu, None).unwrap();
    }
}

#[test]
fn a_context_that_is_lost_while_bases_come_is_an_error_and_another_one_works() {
    const ILLEGAL_ADDRESS: i32 = 700;
    let Some(_machine) = testing::machine() else { return };
    let case = Case::new(100, 2);
    for nth in [0, 3, 12] {
        let gpu = Gpu::open(0).unwrap();
        let mut resident = streaming();
        case.prove(&mut resident, &gpu, None).unwrap();
        emulated::fault("cuMemcpyHtoDAsync_v2", nth, ILLEGAL_ADDRESS, true);
        let error = case.prove(&mut resident, &gpu, None).unwrap_err();
        assert!(matches!(error, Error::DeviceLost { .. }), "{error}");
        assert_eq!(emulated::census().faults, 0, "the fault happened");
        drop(resident);
    }
    case.prove(&mut streaming(), &Gpu::open(0).unwrap(), None).unwrap();
}

#[test]
fn what_is_there_stays_while_it_fits() {
    let gpu = testing::gpu();
    let case = Case::new(100, 3);
    let mut resident = Resident::default();
    case.prove(&mut resident, &gpu, None).unwrap();
    // Fewer witnesses need less memory, and what is there is not read again.
    let control = Control::new();
    let job = Job { witnesses: (&case.witnesses[..1]).into(), ..case.job(&control) };
    File::options().write(true).open(case.parameters.path()).unwrap().set_len(0).unwrap();
    assert!(resident.prove(&gpu, &job, None).unwrap() == case.expected[..1]);
    assert_eq!(resident.bases.as_ref().unwrap().residency, Residency::all(case.h()));
}

#[test]
fn bases_that_were_made_are_streamed_from_the_host_where_they_do_not_fit() {
    let gpu = testing::gpu();
    let case = Case::new(100, 2);
    let (r1cs, control) = (&case.fixture.r1cs, Control::new());
    let job = Loaded { r1cs, witnesses: case.witnesses[..].into(), first_partition: 0, control: &control };
    for residency in
        [Residency { h: 96, a: true, ..Residency::NONE }, Residency { l: false, ..Residency::all(case.h()) }]
    {
        let mut resident = keeping(residency, 64);
        let sections = Multipliers::new(r1cs, 1, &control).unwrap().into_sections();
        resident.install(|| setup::make(&gpu, &Counts::of(r1cs), sections, &control)).unwrap();
        for _ in 0..2 {
            assert!(resident.prove_loaded(&gpu, &job, None).unwrap() == case.expected);
        }
        assert_eq!(resident.bases.as_ref().unwrap().residency, residency);
    }
}
