//! The prover: owns circuits, parameters and backends. The only place where the stages meet.

mod attempts;
mod backends;
#[cfg(all(test, feature = "emulator"))]
mod emulated_tests;
#[cfg(feature = "cuda")]
mod gpu_plan;
mod measure;
mod parameters;
mod partitions;
mod placement;
mod request;
#[cfg(feature = "cuda")]
mod seeded;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

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
use crate::backend::Backend;
use crate::environment;
use crate::error::{Error, Result};
use crate::groth16::{Counts, Parameters, PreparedVerifyingKey, PROOF_BYTES};
use crate::panics;
use crate::pipeline::{available_memory, return_freed_memory, Control, Queue, Stage};
use crate::porep::{self, C1Output, CheckedC1, Fabricated, Fabrication, ProofKind, RegisteredProof, SectorSize};
use crate::r1cs::{R1cs, ShapeStore, Templates};

use attempts::Made;
use backends::Backends;
use partitions::{prove_on, Witnesses, Work};

#[cfg(feature = "cuda")]
pub use gpu_plan::{plan_gpu, PlanRequest};
pub use measure::{measure_kernels, MEASURED_SIZES};
pub use placement::{devices, why_no_devices, DeviceName, Placement, Policy};
pub use request::{Config, Fallback, FixedRandomness, ParameterReport, ProveRequest, SealProof};
#[cfg(feature = "cuda")]
pub use seeded::InsecureGpu;

/// The version of the circuits, which a kept shape belongs to.
const CIRCUITS: &str = "storage-proofs-porep 19.1.0";

/// More threads than any machine has cores are a mistake.
const MAX_THREADS: usize = 4096;

/// Makes proofs, one at a time; calls that come meanwhile wait in order, and have their input checked
/// before they wait. Keeps circuits and parameters between calls. Share it by reference or `Arc`.
pub struct Prover {
    pool: rayon::ThreadPool,
    backends: Backends,
    parameter_dir: Option<PathBuf>,
    placement: Placement,
    cache_dir: Option<PathBuf>,
    memory: Option<u64>,
    /// Bytes that may be used on a device, where not a backend knows them.
    #[cfg(feature = "cuda")]
    device_memory: Option<u64>,
    shapes: Mutex<HashMap<SectorSize, Arc<Templates>>>,
    parameters: Mutex<HashMap<SectorSize, Arc<OpenParameters>>>,
    queue: Queue,
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
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.unwrap_or(0))
            .thread_name(|index| format!("cuporep-{index}"))
            .start_handler(|_| panics::mark_thread())
            .build()
            .map_err(|error| Error::io("starting", "the threads of the CPU backend", std::io::Error::other(error)))?;
        Ok(Prover {
            pool,
            backends: Backends::new(Arc::new(CpuBackend::default()), accelerators, config.device_memory),
            parameter_dir: config.parameter_dir,
            placement: config.placement,
            cache_dir: config.cache_dir.or_else(environment::cache_dir),
            memory: config.memory.map_or_else(environment::memory, |memory| Ok(Some(memory)))?,
            #[cfg(feature = "cuda")]
            device_memory: config.device_memory,
            shapes: Mutex::default(),
            parameters: Mutex::default(),
            queue: Queue::default(),
        })
    }

    /// Decodes and checks a C1 output: everything that can be wrong with it is found here.
    ///
    /// Without a miner (`None`) the replica id is taken as it is; see [`porep::check`](crate::porep::check()).
    pub fn check(&self, c1: &[u8], sector: u64, miner: impl Into<Option<u64>>, control: &Control) -> Result<CheckedC1> {
        let miner = miner.into();
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
        let checked = self.check(c1, sector, miner, control)?;
        let size = checked.registered_proof().size;
        self.run(|| {
            let shape = || self.shape(size, &self.parameter_dir(), control);
            let templates = control.stage(Stage::Shape, None, shape)?;
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
        self.run(|| porep::fabricate(fabrication, control))
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
        let id = request.control.request_id();
        let miner = request.miner.map_or_else(|| "unknown".to_owned(), |miner| miner.to_string());
        let sector = format_args!("sector {} of miner {miner}", request.sector);
        log::debug!(
            "proof {id:?} of {sector}: begins, {:?}, priority {}",
            request.placement,
            request.control.priority()
        );
        let outcome = self.prove_logged(request, accept);
        match &outcome {
            Ok(proof) => log::info!("proof {id:?} of {sector}: made on {} in {:.1?}", proof.device, begin.elapsed()),
            Err(error) => log::info!("proof {id:?} of {sector}: failed after {:.1?}: {error}", begin.elapsed()),
        }
        outcome
    }

    fn prove_logged(
        &self,
        request: &ProveRequest<'_>,
        accept: impl FnOnce(&CheckedC1) -> Result<()>,
    ) -> Result<SealProof> {
        let control = &request.control;
        let c1 = self.check(request.c1, request.sector, request.miner, control)?;
        accept(&c1)?;
        let size = c1.registered_proof().size;
        let mut attempts = self.attempts(&request.placement, Some(size))?;
        let directory = request.parameter_dir.clone().unwrap_or_else(|| self.parameter_dir());
        let open = || self.run(|| control.stage(Stage::Parameters, None, || self.open(size, &directory, control)));
        self.refuse_fixed_randomness(request, &*open()?)?;

        let _turn = control.stage(Stage::Queue, None, || self.queue.enter(control))?;
        // Looked at again: the files may have been replaced while this call waited.
        let parameters = open()?;
        self.refuse_fixed_randomness(request, &parameters)?;
        let proof = self.run(|| {
            let first = attempts.open()?;
            let r1cs = control.stage(Stage::Shape, None, || self.shape(size, &directory, control))?;
            let witnesses = Witnesses::of(&c1, &*r1cs, control)?;
            let work = Work::of(request, &*r1cs, &parameters);
            let made = attempts.make(first, |opened| prove_on(opened, &work, &witnesses))?;
            Ok(SealProof {
                bytes: made.value,
                registered_proof: c1.registered_proof(),
                device: made.on.backend.name().to_string(),
                fallbacks: made.fallbacks,
                memory: made.on.memory,
                device_memory: made.on.backend.device_memory(),
                insecure_parameters: parameters.file.is_insecure(),
                stages: control.times(),
            })
        });
        return_freed_memory();
        proof
    }

    /// Verifies the proof of a checked C1 output against the public inputs that its ids give.
    ///
    /// # Errors
    /// [`Error::ProofForm`], [`Error::ProofInvalid`], and those of the parameters.
    pub fn verify(&self, c1: &CheckedC1, proof: &[u8], directory: &Path, control: &Control) -> Result<()> {
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
        let Made { value, .. } = self.make_circuit(circuit, inputs, r1cs, parameters, control)?;
        value.try_into().map_err(|_| Error::internal("one witness gave other than one proof"))
    }

    fn make_circuit<C: Circuit<Scalar> + Send>(
        &self,
        circuit: C,
        inputs: &[Scalar],
        r1cs: &R1cs,
        parameters: &Parameters,
        control: &Control,
    ) -> Result<Made<Vec<u8>>> {
        let _turn = control.stage(Stage::Queue, None, || self.queue.enter(control))?;
        self.run(|| {
            let mut attempts = self.attempts(&Placement::default(), None)?;
            let first = attempts.open()?;
            let witness = control.stage(Stage::Witness, None, || r1cs.assign(circuit, control))?;
            let witnesses = Witnesses { witnesses: vec![witness], inputs: vec![inputs.to_vec()] }.check()?;
            let verifying_key = PreparedVerifyingKey::new(parameters.vk());
            let work = Work { r1cs, parameters, verifying_key: &verifying_key, randomness: None, control };
            attempts.make(first, |opened| prove_on(opened, &work, &witnesses))
        })
    }

    /// The directory of the parameters where a request names none.
    pub fn parameter_dir(&self) -> PathBuf {
        self.parameter_dir.clone().unwrap_or_else(environment::parameter_dir)
    }

    /// Opens, checks and loads the parameters of a size and loads or records its circuit, so that the first proof need
    /// not. Waits for its turn as a proof does.
    pub fn preload(&self, size: SectorSize, directory: &Path, control: &Control) -> Result<()> {
        let open = || self.run(|| control.stage(Stage::Parameters, None, || self.open(size, directory, control)));
        open()?;
        let _turn = control.stage(Stage::Queue, None, || self.queue.enter(control))?;
        let parameters = open()?;
        self.run(|| {
            let mut attempts = self.attempts(&Placement::default(), Some(size))?;
            let first = attempts.open()?;
            let r1cs = control.stage(Stage::Shape, None, || self.shape(size, directory, control))?;
            let witnesses = RegisteredProof::new(size, ProofKind::V1_1).partitions();
            attempts.make(first, |opened| opened.backend.load(&*r1cs, &parameters.file, witnesses, control)).map(drop)
        })
    }

    /// Forgets the parameters and the circuit of a size; proofs that are being made keep theirs.
    pub fn evict(&self, size: SectorSize) {
        self.shapes.lock().remove(&size);
        if self.parameters.lock().remove(&size).is_some() {
            // What the backend keeps may be of another size; that is loaded again.
            self.backends.release();
        }
    }

    /// Gives back the memory that is kept between proofs: parameters and circuits.
    pub fn release(&self) {
        self.backends.release();
        self.shapes.lock().clear();
        self.parameters.lock().clear();
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

    /// The bytes of memory that a proof needs on a backend, if they are there.
    fn require_memory(&self, backend: &dyn Backend, size: SectorSize) -> Result<u64> {
        let needed = backend.memory_needed(&parameters::expected(size));
        self.require(&format!("a {size} proof on {}", backend.name()), needed)?;
        Ok(needed)
    }

    /// Refuses work that needs more memory than there is.
    fn require(&self, what: &str, needed: u64) -> Result<()> {
        match self.memory.or_else(available_memory) {
            Some(available) if needed > available => Err(Error::Memory {
                what: what.into(),
                needed,
                available,
                advice: "use a machine with more memory or one with a supported device".into(),
            }),
            _ => Ok(()),
        }
    }

    /// The recorded circuit of a sector size: kept, loaded or recorded.
    fn shape(&self, size: SectorSize, directory: &Path, control: &Control) -> Result<Arc<Templates>> {
        if let Some(templates) = self.shapes.lock().get(&size) {
            return Ok(templates.clone());
        }
        let store = ShapeStore::for_parameters(directory, self.cache_dir.as_deref());
        let key = format!("{} {CIRCUITS}", size.parameters().stem);
        let templates = store.load_or_record(&key, control, || porep::templates(size, control))?;
        let (expected, found) = (parameters::expected(size).counts, Counts::of(&templates));
        if expected != found {
            return Err(Error::internal(format!("the circuit of {size} has counts {found:?}, expected {expected:?}")));
        }
        let templates = Arc::new(templates);
        self.shapes.lock().insert(size, templates.clone());
        Ok(templates)
    }
}
