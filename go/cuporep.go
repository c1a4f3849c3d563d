package cuporep

import "context"

// SealCommitPhase2 makes the proof that goes on chain, as filecoin-ffi's function of this name; abi.SectorNumber and
// abi.ActorID fit. For a non-interactive proof that is an aggregate, which this version refuses with CodeProofType: it
// never returns circuit proofs in its place.
func SealCommitPhase2[S, M ~uint64](phase1Output []byte, sectorNum S, minerID M) ([]byte, error) {
	request := Request{C1: phase1Output, Sector: uint64(sectorNum), Miner: uint64(minerID)}
	proof, _, err := ProvePoRep(context.Background(), request)
	return proof, err
}

// SealCommitPhase2CircuitProofs makes the proofs of all partitions, 192 bytes each, for every kind of registered proof,
// as filecoin-ffi's function of this name. It is not told the miner, so it takes the replica id as phase1Output has it:
// whether that belongs to the sector shows when the proofs are verified or aggregated, not before.
func SealCommitPhase2CircuitProofs[S ~uint64](phase1Output []byte, sectorNum S) ([]byte, error) {
	request := Request{C1: phase1Output, Sector: uint64(sectorNum), MinerUnknown: true, CircuitProofs: true}
	proof, _, err := ProvePoRep(context.Background(), request)
	return proof, err
}

// ProvePoRep is Prover.ProvePoRep of the process's prover. The report is nil if that cannot be made.
func ProvePoRep(ctx context.Context, request Request) ([]byte, *Report, error) {
	prover, err := Default()
	if err != nil {
		return nil, nil, err
	}
	return prover.ProvePoRep(ctx, request)
}

// Check is Prover.Check of the process's prover.
func Check(ctx context.Context, request Request) (*C1Info, error) {
	prover, err := Default()
	if err != nil {
		return nil, err
	}
	return prover.Check(ctx, request)
}

// Verify is Prover.Verify of the process's prover.
func Verify(ctx context.Context, request Request, proof []byte) error {
	prover, err := Default()
	if err != nil {
		return err
	}
	return prover.Verify(ctx, request, proof)
}

// Preload is Prover.Preload of the process's prover.
func Preload(ctx context.Context, sectorSize uint64) error {
	prover, err := Default()
	if err != nil {
		return err
	}
	return prover.Preload(ctx, sectorSize)
}

// Evict is Prover.Evict of the process's prover.
func Evict(sectorSize uint64) error {
	prover, err := Default()
	if err != nil {
		return err
	}
	return prover.Evict(sectorSize)
}

// Release is Prover.Release of the process's prover.
func Release() error {
	prover, err := Default()
	if err != nil {
		return err
	}
	return prover.Release()
}

// Metrics is Prover.Metrics of the process's prover.
func Metrics() (string, error) {
	prover, err := Default()
	if err != nil {
		return "", err
	}
	return prover.Metrics()
}

// Devices lists the devices that can make proofs. Without any, proofs are made on the CPU.
func Devices() ([]Device, error) { return nativeDevices() }

// Version of the library, such as "0.1.0"; empty where none is linked.
func Version() string { return nativeVersion() }

// Features that the library was built with, separated by commas: "cpu"; empty where none is linked.
func Features() string { return nativeFeatures() }

// ProofLen is the length of the circuit proofs of a registered proof, by its number on chain, such as 8 for
// StackedDrg32GiBV1_1.
func ProofLen(registeredProof uint64) (int, error) { return nativeProofLen(registeredProof) }

// SetLog sends the library's log lines of this level and the graver ones to a function, or to none if it is nil, which
// is so at first. There is one for the whole process. When SetLog returns, the previous one is not called any more.
//
// The function is called from any thread, also several at once, and must not call this package. After a panic in it, it
// is not called again.
func SetLog(level LogLevel, function func(level LogLevel, target, message string)) error {
	return nativeSetLog(level, function)
}
