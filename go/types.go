package cuporep

import (
	"strconv"
	"time"
)

// Config says how a prover is set up. The zero value takes everything from the environment, else from defaults.
type Config struct {
	// ParameterDir holds the proving parameters. Default: FIL_PROOFS_PARAMETER_CACHE, else
	// /var/tmp/filecoin-proof-parameters.
	ParameterDir string
	// CacheDir is for recorded circuits and file digests. Default: CUPOREP_CACHE_DIR, else cuporep-cache beside the
	// parameters, else the user's cache directory.
	CacheDir string
	// Devices to use, as Devices counts them. Default: all.
	Devices []uint32
	// DeviceNames of devices to use instead: "cuda:0", or a UUID, or so much of its beginning that only one has it.
	DeviceNames []string
	// Policy of the prover's requests that have none. Default: PolicyCPU if BELLMAN_NO_GPU is set to anything but 0,
	// else PolicyPreferGPU.
	Policy Policy
	// Threads of the CPU backend. Default: CUPOREP_THREADS, else one per core.
	Threads uint32
	// HostBytes of memory that all proofs together may take, with what stays loaded between them. Default:
	// CUPOREP_MEMORY, else what the system has available.
	HostBytes uint64
	// DeviceBytes of memory that may be used on each device. Default: what is free there.
	DeviceBytes uint64
	// GPUWorkers: proofs that are in work on each device at once, from 1 to 64. One computes there; the others' witnesses
	// are made and their bytes verified meanwhile. Default: CUPOREP_GPU_WORKERS, else 2.
	GPUWorkers uint64
}

// Policy says which kinds of devices may make a proof.
type Policy int32

const (
	// PolicyDefault: as the prover has it.
	PolicyDefault Policy = 0
	// PolicyGPUOnly: GPUs; where there is none that works, an error.
	PolicyGPUOnly Policy = 1
	// PolicyPreferGPU: GPUs where there are any that work, else the CPU.
	PolicyPreferGPU Policy = 2
	// PolicyCPU: the CPU.
	PolicyCPU Policy = 3
)

// Request is one piece of work. C1, Sector and Miner are needed, all else may be zero.
type Request struct {
	// C1 is the output of seal commit phase 1: JSON, also in the envelope of lotus-bench. It must not be changed
	// during the call.
	C1 []byte
	// Sector number.
	Sector uint64
	// Miner's actor id: 1000 for f01000.
	Miner uint64

	// CircuitProofs asks for the proofs of the partitions, 192 bytes each, for every kind of registered proof. Without
	// it the proof is what goes on chain. The two differ for non-interactive proofs only: there an aggregate goes on
	// chain, which this version refuses with CodeProofType before anything long is done.
	CircuitProofs bool
	// MinerUnknown takes the replica id as C1 has it, without a check that it belongs to the sector and the miner;
	// everything else is checked against it. Verify refuses it.
	MinerUnknown bool

	// Devices to use. Default: those of the prover.
	Devices []uint32
	// DeviceNames of devices to use instead, as in Config.
	DeviceNames []string
	// Policy of this request. Default: that of the prover.
	Policy Policy
	// Priority among waiting proofs, from -100 to 100: each level counts as ten seconds of waiting.
	Priority int32
	// ID names the call in logs and events.
	ID string
	// Progress is told the begin and the end of each stage, never twice at once, and only while the call runs. It
	// should return soon and must not call this package. After a panic in it, it is not called again and the work goes
	// on (Report.ProgressFailed). It runs on a goroutine that is not the caller's: runtime.Goexit, which FailNow of a
	// test calls, must not be called in it.
	Progress func(Event)
}

// Report says how a proof was made. On failure it has the times of the stages that ended, and the rest is zero.
type Report struct {
	// RegisteredProof is the number on chain (abi.RegisteredSealProof).
	RegisteredProof uint64
	// Partitions of 192 bytes each.
	Partitions int
	// InsecureParameters: made with test parameters; the proof is worth nothing.
	InsecureParameters bool
	// Fallbacks counts attempts that failed on a device before one made the proof.
	Fallbacks int
	// FallbackReasons says why, one a line.
	FallbackReasons string
	// ProgressFailed: the progress function panicked and was not called again.
	ProgressFailed bool
	// HostBytes and DeviceBytes of memory that were set aside.
	HostBytes, DeviceBytes uint64
	// Total time of the call.
	Total time.Duration
	// Stages has the time of each stage that ended, summed over partitions, which may run at the same time.
	Stages map[Stage]time.Duration
	// Device that made the proof, such as "cpu"; several are separated by commas.
	Device string
}

// Stage of a proof.
type Stage int32

// The stages, in their order.
const (
	StageQueue      Stage = iota // waiting for other proofs of the same prover
	StageDecode                  // decoding the C1 bytes
	StageCheck                   // checking the C1 output
	StageShape                   // loading or recording the circuit's shape
	StageParameters              // opening, checking and loading parameters
	StageWitness                 // making the witness
	StageEvaluate                // a = A w and b = B w
	StageTransform               // transforms of the quotient
	StageSumH                    // the sum over h
	StageSumL                    // the sum over l
	StageSumA                    // the sum over a
	StageSumB1                   // the sum over b in G1
	StageSumB2                   // the sum over b in G2
	StageVerify                  // assembling and verifying the proof
)

var stageNames = [...]string{
	"queue", "decode", "check", "shape", "parameters", "witness", "evaluate", "transform", "sum_h", "sum_l", "sum_a",
	"sum_b_g1", "sum_b_g2", "verify",
}

func (s Stage) String() string {
	if s >= 0 && int(s) < len(stageNames) {
		return stageNames[s]
	}
	return "stage " + strconv.Itoa(int(s))
}

// Event is the begin or the end of a stage.
type Event struct {
	// RequestID is the ID of the request.
	RequestID string
	Stage     Stage
	// Partition that the stage works on, or -1.
	Partition int
	// Ended: the stage has ended and took Elapsed; else it begins.
	Ended   bool
	Elapsed time.Duration
}

// C1Info is what is in a C1 output that passed all checks.
type C1Info struct {
	// RegisteredProof is the number on chain (abi.RegisteredSealProof).
	RegisteredProof uint64
	// SectorSize in bytes.
	SectorSize uint64
	Partitions int
	// ProofLen: bytes of the proofs of all partitions.
	ProofLen int
	// CommR and CommD: the commitments to the replica and to the data.
	CommR, CommD [32]byte
}

// Device that can make proofs.
type Device struct {
	// Name that its maker gave it.
	Name string
	// UUID tells it apart from all others.
	UUID string
	// Memory in bytes.
	Memory uint64
	// FreeMemory in bytes; 0 where it cannot be asked.
	FreeMemory uint64
	// Ordinal as in "cuda:0".
	Ordinal uint32
	// ComputeCapability without the point: 90 for 9.0.
	ComputeCapability uint32
}

// LogLevel says how much a log line matters.
type LogLevel int32

const (
	LogOff   LogLevel = 0 // nothing
	LogError LogLevel = 1 // something failed
	LogWarn  LogLevel = 2 // something is not as it should be
	LogInfo  LogLevel = 3 // each proof, with its result
	LogDebug LogLevel = 4 // for finding faults
	LogTrace LogLevel = 5 // everything
)
