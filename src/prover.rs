//! The prover: owns circuits, parameters and backends. The only place where the stages meet.

mod attempts;
mod calls;
#[cfg(all(test, feature = "emulator"))]
mod emulated_tests;
#[cfg(feature = "cuda")]
mod gpu_plan;
mod lanes;
#[cfg(test)]
mod many_tests;
mod measure;
#[cfg(test)]
mod metrics_tests;
mod parameters;
mod partitions;
mod placement;
mod request;
#[cfg(feature = "cuda")]
mod seeded;
mod status;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod threads;

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use bellperson::Circuit;
use blstrs::Scalar;
use parking_lot::Mutex;

use crate::backend::accelerator::{accelerators, Accelerators};
use crate::backend::cpu::CpuBackend;
use crate::backend::Load;
use crate::environment;
use crate::error::{Error, Result};
use crate::groth16::{Counts, Parameters, PreparedVerifyingKey, PROOF_BYTES};
use crate::metrics::{Metrics, What};
use crate::panics;
use crate::pipeline::{return_freed_memory, Admission, Control, Grant, Queue, Stage, Want, Wish};
use crate::porep::{self, C1Output, CheckedC1, Fabricated, Fabrication, ProofKind, RegisteredProof, SectorSize};
use crate::r1cs::{R1cs, ShapeStore, Templates};

use attempts::{Choice, Made, Task, NO_MEMORY};
use calls::Calls;
use lanes::Lanes;
use partitions::{Coming, Work};
use placement::Candidate;
use threads::side_by_side;

#[cfg(feature = "cuda")]
pub use gpu_plan::{plan_gpu, PlanRequest};
pub use measure::{measure_kernels, MEASURED_SIZES};
pub(crate) use request::SEPARATOR;

pub use placement::{devices, why_no_devices, DeviceName, Placement, Policy};
pub use request::{Config, Fallback, FixedRandomness, ParameterReport, ProveRequest, SealProof};
#[cfg(feature = "cuda")]
pub use seeded::InsecureGpu;
pub use status::{DeviceStatus, Status};

/// The version of the circuits, which a kept shape belongs to.
const CIRCUITS: &str = "storage-proofs-porep 19.1.0";

/// More threads than any machine has cores are a mistake.
const MAX_THREADS: usize = 4096;

/// Proofs in work on a device at once: while one computes there, the other one's witnesses are made, or its bytes are
/// verified.
const WORKERS: usize = 2;

/// More proofs than these at once keep no device busier, and take memory.
const MAX_WORKERS: usize = 64;

/// Makes proofs, as many at once as memory and devices allow; calls that come meanwhile have their input checked, then
/// wait in order. Keeps circuits and parameters between calls. Share it by reference or `Arc`.
///
/// A call waits until its bytes of host memory are free and fewer than [`Config::gpu_workers`] proofs are in work on
/// the devices that it needs. While it waits it holds its decoded input, no witness and no thread but its caller's. The
/// oldest call is first, and a level of priority counts as ten seconds of age. Where there is a proof for each device,
/// in work or waiting, each goes whole to one of them; where there are fewer, the partitions of a proof are spread over
/// the idle devices that it may use. A device computes for one proof at a time.
pub struct Prover {
    pool: Arc<rayon::ThreadPool>,
    lanes: Lanes,
    parameter_dir: Option<PathBuf>,
    placement: Placement,
    cache_dir: Option<PathBuf>,
    /// Bytes that may be used on a device, where not a backend knows them.
    #[cfg(feature = "cuda")]
    device_memory: Option<u64>,
    shapes: Mutex<HashMap<SectorSize, Arc<Templates>>>,
    parameters: Mutex<HashMap<SectorSize, Arc<OpenParameters>>>,
    /// Whoever loads or records a circuit.
    recording: Queue,
    admission: Admission,
    calls: Calls,
    metrics: Arc<Metrics>,
}

/// Parameters, and their verifying key made ready.
struct OpenParameters {
    directory: PathBuf,
    file: Parameters,
    verifying_key: PreparedVerifyingKey,
}

impl fmt::Debug for Prover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prover").field("placement", &self.placement).finish_non_exhaustive()
    }
}

/// What the log lines of a proof begin with.
fn subject(request: &ProveRequest<'_>) -> String {
    let miner = request.miner.map_or_else(|| "unknown".to_owned(), |miner| miner.to_string());
    format!("proof id={:?} sector={} miner={miner}", request.control.request_id(), request.sector)
}

impl Prover {
    /// A prover. It starts its threads; GPUs are opened when they are first needed.
    ///
    /// # Errors
    /// [`Error::Argument`] for an environment variable that is not a number and for too many threads, [`Error::Io`] if
    /// the threads cannot be started.
    pub fn new(config: Config) -> Result<Self> {
        Prover::with_accelerators(config, accelerators())
    }

    fn with_accelerators(config: Config, accelerators: Arc<dyn Accelerators>) -> Result<Self> {
        environment::warn_about_unknown();
        let threads = config.threads.map_or_else(environment::threads, |threads| Ok(Some(threads)))?;
        if threads.is_some_and(|threads| threads > MAX_THREADS) {
            let detail = format!("more than {MAX_THREADS} threads help nothing");
            return Err(Error::Argument { name: "threads", detail });
        }
        let workers = config.gpu_workers.map_or_else(environment::gpu_workers, |workers| Ok(Some(workers)))?;
        let workers = workers.unwrap_or(WORKERS);
        if !(1..=MAX_WORKERS).contains(&workers) {
            let detail = format!("{workers}; from 1 to {MAX_WORKERS} proofs may be in work on a device");
            return Err(Error::Argument { name: "gpu_workers", detail });
        }
        let memory = config.memory.map_or_else(environment::memory, |memory| Ok(Some(memory)))?;
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.unwrap_or(0))
            .thread_name(|index| format!("cuporep-{index}"))
            .start_handler(|_| panics::mark_thread())
            .build()
            .map_err(|error| Error::io("starting", "the threads of the CPU backend", std::io::Error::other(error)))?;
        Ok(Prover {
            pool: Arc::new(pool),
            lanes: Lanes::new(Arc::new(CpuBackend::default()), accelerators, config.device_memory),
            parameter_dir: config.parameter_dir,
            placement: config.placement,
            cache_dir: config.cache_dir.or_else(environment::cache_dir),
            #[cfg(feature = "cuda")]
            device_memory: config.device_memory,
            shapes: Mutex::default(),
            parameters: Mutex::default(),
            recording: Queue::default(),
            admission: Admission::new(workers, memory),
            calls: Calls::default(),
            metrics: Arc::new(Metrics::new()?),
        })
    }

    /// Decodes and checks a C1 output: everything that can be wrong with it is found here.
    ///
    /// Without a miner (`None`) the replica id is taken as it is; see [`porep::check`](crate::porep::check()).
    pub fn check(&self, c1: &[u8], sector: u64, miner: impl Into<Option<u64>>, control: &Control) -> Result<CheckedC1> {
        let (_call, control) = self.begin(control)?;
        self.check_c1(c1, sector, miner.into(), &control)
    }

    fn check_c1(&self, c1: &[u8], sector: u64, miner: Option<u64>, control: &Control) -> Result<CheckedC1> {
        self.run(|| {
            let c1 = control.stage(Stage::Decode, None, || C1Output::decode(c1))?;
            control.stage(Stage::Check, None, || porep::check(c1, sector, miner, control))
        })
    }

    /// [`Prover::check`], then makes the witness of every partition and checks that it satisfies every constraint.
    ///
    /// # Errors
    /// [`Error::Unsatisfied`] names the gadget of the first constraint that does not hold; no checked C1 output
    /// should give one.
    pub fn check_full(&self, c1: &[u8], sector: u64, miner: u64, control: &Control) -> Result<CheckedC1> {
        let (_call, control) = self.begin(control)?;
        let control = &control;
        let checked = self.check_c1(c1, sector, Some(miner), control)?;
        let size = checked.registered_proof().size;
        let templates = panics::guard(|| self.shape(size, &self.parameter_dir(), control))?;
        self.run(|| {
            for partition in 0..checked.registered_proof().partitions() {
                let make = || porep::witness(&checked, partition, templates.full_positions(), control);
                let witness = control.stage(Stage::Witness, Some(partition), make)?;
                let find = || templates.first_unsatisfied(&witness, control);
                if let Some(row) = control.stage(Stage::Evaluate, Some(partition), find)? {
                    let gadget = porep::gadget_of_row(size, row, control)?;
                    let detail = format!("partition {partition}: constraint {row}, {gadget}, does not hold");
                    return Err(Error::Unsatisfied { detail });
                }
            }
            Ok(())
        })?;
        Ok(checked)
    }

    /// [`porep::fabricate`](crate::porep::fabricate()) on the prover's threads.
    ///
    /// # Errors
    /// Those of that function.
    pub fn fabricate(&self, fabrication: &Fabrication, control: &Control) -> Result<Fabricated> {
        let (_call, control) = self.begin(control)?;
        self.run(|| porep::fabricate(fabrication, &control))
    }

    /// Makes a proof: checks the C1 output and the parameters, waits for its turn, proves every partition and
    /// verifies the bytes of each before it returns them.
    ///
    /// # Errors
    /// Input errors (1xx) and most parameter errors (2xx) come before anything long is done. No error leaves
    /// anything behind; the next call works.
    pub fn prove(&self, request: &ProveRequest<'_>) -> Result<SealProof> {
        self.prove_if(request, |_| Ok(()))
    }

    /// As [`Prover::prove`], and asks `accept` when the C1 output is known to be good, before anything long.
    pub(crate) fn prove_if(
        &self,
        request: &ProveRequest<'_>,
        accept: impl FnOnce(&CheckedC1) -> Result<()>,
    ) -> Result<SealProof> {
        let begin = Instant::now();
        let subject = subject(request);
        log::debug!("{subject} begins, {:?}, priority {}", request.placement, request.control.priority());
        let control = request.control.clone().with_subject(subject.as_str());
        let request = ProveRequest { control, ..request.clone() };
        let mut what = None;
        let outcome = self.prove_logged(&request, |c1| {
            what = Some(What::from(c1.registered_proof()));
            accept(c1)
        });
        let elapsed = begin.elapsed();
        let ms = elapsed.as_secs_f64() * 1e3;
        match &outcome {
            Ok(proof) => log::info!("{subject} made device={:?} ms={ms:.1}", proof.device),
            Err(error) => {
                log::info!("{subject} failed class={} code={} ms={ms:.1}: {error}", error.class(), error.code());
            }
        }
        self.metrics.proof_ended(what, outcome.as_ref().map(|proof| proof.device.as_str()), elapsed);
        outcome
    }

    fn prove_logged(
        &self,
        request: &ProveRequest<'_>,
        accept: impl FnOnce(&CheckedC1) -> Result<()>,
    ) -> Result<SealProof> {
        let (_call, control) = self.begin(&request.control)?;
        let began = Instant::now();
        // A panic of a progress callback on this thread is an error as well.
        let proof = panics::guard(|| self.prove_checked(request, began, &control, accept));
        return_freed_memory();
        proof
    }

    fn prove_checked(
        &self,
        request: &ProveRequest<'_>,
        began: Instant,
        control: &Control,
        accept: impl FnOnce(&CheckedC1) -> Result<()>,
    ) -> Result<SealProof> {
        let c1 = self.check_c1(request.c1, request.sector, request.miner, control)?;
        accept(&c1)?;
        let registered_proof = c1.registered_proof();
        let size = registered_proof.size;
        let what = format!("a {size} proof");
        let choice = self.choose(&request.placement)?;
        let directory = request.parameter_dir.clone().unwrap_or_else(|| self.parameter_dir());
        let open = || self.run(|| control.stage(Stage::Parameters, None, || self.open(size, &directory, control)));
        self.refuse_fixed_randomness(request, &*open()?)?;
        // Before a circuit is recorded: that alone may take long.
        let counts = parameters::expected(size).counts;
        let threads = self.pool.current_num_threads();
        let load = Load { counts, full: 0, witnesses: registered_proof.partitions(), threads };
        self.require_room(&what, &choice, &load)?;
        let r1cs = self.shape(size, &directory, control)?;
        let load = Load { full: r1cs.full_positions().len(), ..load };

        let mut again = true;
        loop {
            let parameters = open()?;
            self.refuse_fixed_randomness(request, &parameters)?;
            let witnesses = |control: &Control, coming: &Coming| {
                // The files may have been replaced while this call waited.
                parameters.file.ensure_unchanged()?;
                coming.make(&c1, &*r1cs, control)
            };
            let task = Task {
                what: what.clone(),
                began,
                placement: &request.placement,
                work: Work::of(request, &*r1cs, &parameters, control),
                load,
                input_bytes: c1.c1().bytes(),
                uses: vec![(circuit_key(size), circuit_bytes(size))],
                witnesses: &witnesses,
            };
            let made = match self.make(&task) {
                Err(Error::ParamsChanged { .. }) if std::mem::take(&mut again) => continue,
                made => made?,
            };
            return Ok(SealProof {
                bytes: made.bytes,
                registered_proof,
                device: made.device,
                fallbacks: made.fallbacks,
                memory: made.memory,
                device_memory: made.device_memory,
                insecure_parameters: parameters.file.is_insecure(),
                stages: control.times(),
            });
        }
    }

    /// Verifies the proof of a checked C1 output against the public inputs that its ids give.
    ///
    /// # Errors
    /// [`Error::ProofForm`], [`Error::ProofInvalid`], and those of the parameters.
    pub fn verify(&self, c1: &CheckedC1, proof: &[u8], directory: &Path, control: &Control) -> Result<()> {
        let (_call, control) = self.begin(control)?;
        let control = &control;
        self.run(|| {
            let parameters = self.open(c1.registered_proof().size, directory, control)?;
            let inputs = (0..c1.registered_proof().partitions())
                .map(|partition| porep::public_inputs(c1, partition))
                .collect::<Result<Vec<_>>>()?;
            control.stage(Stage::Verify, None, || parameters.verifying_key.verify_all(proof, &inputs))
        })
    }

    /// Proves any circuit with parameters of its own: the general form of [`Prover::prove`], without Filecoin.
    ///
    /// `r1cs` is the circuit's recorded shape, `inputs` the public inputs without ONE, taken from where the
    /// verifier takes them.
    pub fn prove_circuit<C: Circuit<Scalar> + Send>(
        &self,
        circuit: C,
        inputs: &[Scalar],
        r1cs: &R1cs,
        parameters: &Parameters,
        control: &Control,
    ) -> Result<[u8; PROOF_BYTES]> {
        let Made { bytes, .. } = self.make_circuit(circuit, inputs, r1cs, parameters, control)?;
        bytes.try_into().map_err(|_| Error::internal("one witness gave other than one proof"))
    }

    fn make_circuit<C: Circuit<Scalar> + Send>(
        &self,
        circuit: C,
        inputs: &[Scalar],
        r1cs: &R1cs,
        parameters: &Parameters,
        control: &Control,
    ) -> Result<Made> {
        let (_call, control) = self.begin(control)?;
        let subject = format!("circuit id={:?}", control.request_id());
        let control = control.with_subject(subject);
        let began = Instant::now();
        let outcome = panics::guard(|| {
            // A circuit gives its values once; they are kept if the proof has to wait again.
            let (circuit, made) = (Mutex::new(Some(circuit)), Mutex::new(None));
            let witnesses = |control: &Control, coming: &Coming| {
                if let Some(circuit) = circuit.lock().take() {
                    let assign = || control.compute(|| r1cs.assign(circuit, control));
                    *made.lock() = Some(Arc::new(control.stage(Stage::Witness, None, assign)?));
                }
                let witness = made.lock().clone().ok_or_else(|| Error::internal("a circuit without values"))?;
                coming.put(0, witness, inputs.to_vec())
            };
            let verifying_key = PreparedVerifyingKey::new(parameters.vk());
            let load = Load {
                counts: Counts::of(r1cs),
                full: r1cs.full_positions().len(),
                witnesses: 1,
                threads: self.pool.current_num_threads(),
            };
            let work = Work { r1cs, parameters, verifying_key: &verifying_key, randomness: None, control: &control };
            self.make(&Task {
                what: "a proof".into(),
                began,
                placement: &Placement::default(),
                work,
                load,
                input_bytes: 0,
                uses: Vec::new(),
                witnesses: &witnesses,
            })
        });
        let made = outcome.as_ref().map(|made| made.device.as_str());
        self.metrics.proof_ended(Some(What::CIRCUIT), made, began.elapsed());
        outcome
    }

    /// The directory of the parameters where a request names none.
    pub fn parameter_dir(&self) -> PathBuf {
        self.parameter_dir.clone().unwrap_or_else(environment::parameter_dir)
    }

    /// Opens, checks and loads the parameters of a size, on all GPUs or the CPU as the prover's placement has it, and loads
    /// or records its circuit, so that the first proof need not. Waits as a proof does.
    pub fn preload(&self, size: SectorSize, directory: &Path, control: &Control) -> Result<()> {
        let (_call, control) = self.begin(control)?;
        let began = Instant::now();
        panics::guard(|| self.load(size, directory, began, &control))
    }

    fn load(&self, size: SectorSize, directory: &Path, began: Instant, control: &Control) -> Result<()> {
        let open = || self.run(|| control.stage(Stage::Parameters, None, || self.open(size, directory, control)));
        let what = format!("loading {size} parameters");
        let Choice { groups, .. } = self.choose(&Placement::default())?;
        open()?;
        let r1cs = self.shape(size, directory, control)?;
        let (full, witnesses) = (r1cs.full_positions().len(), RegisteredProof::new(size, ProofKind::V1_1).partitions());
        let counts = parameters::expected(size).counts;
        let mut outcome = Err(Error::internal("no device to load parameters for"));
        for lanes in groups {
            let load = Load { counts, full, witnesses: lanes.len(), threads: self.pool.current_num_threads() };
            let wish = self.wish(&what, began, 0, &[(circuit_key(size), circuit_bytes(size))], &lanes, &load);
            let wish = Wish { want: Want::All, ..wish };
            let entered = control.stage(Stage::Queue, None, || self.enter(wish, control));
            outcome = entered.and_then(|_grant| {
                let parameters = open()?;
                let load = |lane: &Arc<lanes::Lane>| {
                    let load = || {
                        self.lanes.with(lane, began, control, |backend, control| {
                            // For whole proofs: parts of proofs find all that they need then.
                            backend.load(&*r1cs, &parameters.file, witnesses, control)
                        })
                    };
                    match load() {
                        Err(Error::DeviceLost { .. }) => load(),
                        outcome => outcome,
                    }
                };
                let all = || side_by_side(lanes.iter().map(|lane| || load(lane)).collect());
                let loaded = self.on_thread(all)?;
                self.note_kept(&lanes);
                // One that can is enough: the others are passed over when proofs are made.
                loaded.into_iter().reduce(|before, next| before.or(next)).unwrap_or(Ok(()))
            });
            if !outcome.as_ref().is_err_and(Error::is_of_device) {
                break;
            }
        }
        outcome
    }

    /// Forgets the parameters and the circuit of a size; proofs that are being made keep theirs.
    pub fn evict(&self, size: SectorSize) {
        self.forget_circuit(size);
        if self.parameters.lock().remove(&size).is_some() {
            // What a device keeps may be of another size; that is loaded again.
            self.lanes.forget();
        }
    }

    /// Gives back what is kept between proofs, parameters and circuits, and all memory of GPUs, also in the middle of a
    /// proof: within 500 ms it is free when this returns.
    ///
    /// A proof that is interrupted waits for a second, then takes the device again when its turn comes and makes anew
    /// what was interrupted, within its call; so do calls that waited already. Calls that begin later may take the
    /// device at once. A proof on the CPU keeps what it needs until it ends.
    pub fn release(&self) {
        self.parameters.lock().clear();
        SectorSize::ALL.into_iter().for_each(|size| self.forget_circuit(size));
        self.lanes.release();
        let kept = self.admission.numbers();
        for key in kept.places.keys() {
            if let Some(lane) = self.lanes.find(key) {
                self.note_kept(&[lane]);
            }
        }
    }

    fn forget_circuit(&self, size: SectorSize) {
        if self.shapes.lock().remove(&size).is_some() {
            self.admission.keep(&circuit_key(size), 0);
        }
    }

    /// Gives back something that is kept and not in use.
    fn reclaim(&self, key: &str) {
        if let Some(lane) = self.lanes.find(key) {
            lane.forget();
            self.admission.keep(lane.key(), 0);
        } else if let Some(size) = SectorSize::ALL.into_iter().find(|&size| &*circuit_key(size) == key) {
            self.forget_circuit(size);
        }
    }

    /// Begins a call: what it is to be controlled by.
    fn begin(&self, control: &Control) -> Result<(calls::Call<'_>, Control)> {
        let call = self.calls.begin()?;
        Ok((
            call,
            self.calls.watch(control.clone()).with_threads(self.pool.clone()).with_observer(self.metrics.clone()),
        ))
    }

    /// Waits until a call may begin.
    fn enter(&self, wish: Wish, control: &Control) -> Result<Grant<'_>> {
        self.admission.enter(wish, control, &|key| self.reclaim(key))
    }

    /// Waits until work with so many bytes may begin that needs no device.
    fn enter_with(&self, what: &str, bytes: u64, control: &Control) -> Result<Grant<'_>> {
        control.stage(Stage::Queue, None, || self.enter(wish_of_bytes(what, bytes), control))
    }

    /// Refuses such work if it can never fit.
    fn require_bytes(&self, what: &str, bytes: u64) -> Result<()> {
        self.admission.possible(&wish_of_bytes(what, bytes))
    }

    /// What this prover has done and how it is, in Prometheus' text format (version 0.0.4), to be served to a scraper as
    /// `text/plain; version=0.0.4`. Cheap, and waits for no proof.
    ///
    /// | name | type | labels | what it is |
    /// |---|---|---|---|
    /// | `cuporep_proofs_total` | counter | `kind`, `size`, `backend`, `result` | proofs that ended. `kind`: `V1`, `V1_1`, `synthetic`, `non-interactive`, or `circuit`; `size`: as in `32GiB`, or `none` for a circuit; both `unknown` where the input was refused. `backend`: `cpu`, `cuda`, `cuda+cpu`, or `none` for a failure. `result`: `ok`, or the error's [class](crate::Class::name) |
    /// | `cuporep_proof_duration_seconds` | histogram | | from call to verified bytes, of proofs that were made |
    /// | `cuporep_stage_duration_seconds` | histogram | `stage` | [stages](crate::pipeline::Stage::name) that ended, each partition by itself |
    /// | `cuporep_verify_failures_total` | counter | `device` | partitions' proofs that did not verify and were withheld |
    /// | `cuporep_fallbacks_total` | counter | `from`, `to`, `reason` | attempts that failed on a device; `to` made the proof (`several` devices, or `none` did), `reason` is the error's [number](crate::Error::code) |
    /// | `cuporep_queue_depth` | gauge | | calls that wait |
    /// | `cuporep_queue_wait_seconds` | histogram | | waits of calls that got their turn |
    /// | `cuporep_inflight_partitions` | gauge | `device` | partitions in work |
    /// | `cuporep_device_up` | gauge | `uuid` | 0 while a GPU is passed over since it failed |
    /// | `cuporep_device_memory_bytes` | gauge | `uuid`, `use` | `held`: allocated by this prover; of this, by the plan, `tables` of the circuit, `bases` that stay between proofs, and witnesses, vectors and scratch of `proofs` |
    /// | `cuporep_host_memory_bytes` | gauge | `use` | `reserved` now, `peak`: the most ever, `limit`: what may be |
    /// | `cuporep_params_load_seconds` | histogram | | reading and decoding of parameters that were not loaded |
    /// | `cuporep_build_info` | gauge | `version`, `features` | 1 |
    ///
    /// Devices are called by their UUIDs, the CPU `cpu`. Labels take a few fixed values or name devices, never free text;
    /// one that was never counted has no line.
    pub fn metrics(&self) -> Result<String> {
        self.metrics.text(&self.status())
    }

    /// Runs `work` on the prover's own threads; a panic in it becomes an error.
    pub(crate) fn run<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        panics::guard(|| self.pool.install(work))
    }

    fn refuse_fixed_randomness(&self, request: &ProveRequest<'_>, parameters: &OpenParameters) -> Result<()> {
        if request.fixed_randomness.is_some() && parameters.file.is_official() {
            let path = parameters.file.path().display();
            let detail = format!("fixed randomness with the official parameters {path} would reveal the witness");
            return Err(Error::ParamsRefused { detail });
        }
        Ok(())
    }

    /// The recorded circuit of a sector size: kept, loaded or recorded, by one call at a time.
    fn shape(&self, size: SectorSize, directory: &Path, control: &Control) -> Result<Arc<Templates>> {
        control.stage(Stage::Shape, None, || {
            let kept = || self.shapes.lock().get(&size).cloned();
            if let Some(kept) = kept() {
                return Ok(kept);
            }
            let _turn = self.recording.enter(control)?;
            if let Some(kept) = kept() {
                return Ok(kept);
            }
            let _grant = self.enter_with(&format!("the circuit of {size}"), circuit_bytes(size), control)?;
            let templates = Arc::new(control.compute(|| self.load_shape(size, directory, control))?);
            self.shapes.lock().insert(size, templates.clone());
            self.admission.keep(&circuit_key(size), circuit_bytes(size));
            Ok(templates)
        })
    }

    fn load_shape(&self, size: SectorSize, directory: &Path, control: &Control) -> Result<Templates> {
        let store = ShapeStore::for_parameters(directory, self.cache_dir.as_deref());
        let key = format!("{} {CIRCUITS}", size.parameters().stem);
        let templates = store.load_or_record(&key, control, || porep::templates(size, control))?;
        let (expected, found) = (parameters::expected(size).counts, Counts::of(&templates));
        if expected != found {
            return Err(Error::internal(format!("the circuit of {size} has counts {found:?}, expected {expected:?}")));
        }
        Ok(templates)
    }
}

fn wish_of_bytes(what: &str, bytes: u64) -> Wish {
    let (what, since) = (what.to_owned(), Instant::now());
    Wish { what, advice: NO_MEMORY, since, own: bytes, uses: Vec::new(), places: Vec::new(), want: Want::All }
}

/// What the admission calls the circuit of a size.
fn circuit_key(size: SectorSize) -> Arc<str> {
    format!("the circuit of {size}").into()
}

/// Bytes of a circuit's templates, with its densities and the positions of full-width variables.
fn circuit_bytes(size: SectorSize) -> u64 {
    (size.parameters().counts.aux / 2 + (32 << 20)) as u64
}
