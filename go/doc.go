// Package cuporep makes Filecoin's Groth16 seal proofs (PoRep, seal commit phase 2, "C2") from the output of phase 1.
//
// SealCommitPhase2 and SealCommitPhase2CircuitProofs have the shape and the meaning of filecoin-ffi's functions.
// ProvePoRep is the same with a context, progress and a report. These and the other functions of the package use one
// prover for the whole process, which keeps parameters between calls; NewProver makes others.
//
// Every error of the package is an *Error. Metrics is for Prometheus; the module in the folder prometheus has a collector.
//
// # Building
//
// The package links the static archive libcuporep.a, which `make go` in the repository's root builds and puts beside
// these files. Build tags:
//
//   - none: links that archive (Linux, cgo).
//   - cuporep_system: links -lcuporep from where CGO_LDFLAGS=-L... says, such as the lib folder of `make dist`.
//   - cuporep_stub: links nothing; every function fails with CodeNotLinked. So it is without cgo and where there is
//     no Linux.
//
// # Threads and memory
//
// Everything may be called from any goroutine, at the same time. A proof waits until its memory and a place on a device
// are free; the oldest is first, and a level of priority counts as ten seconds of age. A call occupies one operating
// system thread until it returns. No Go memory is referenced after a call has returned.
package cuporep
