//go:build !cgo || !linux || cuporep_stub

package cuporep

import (
	"context"
	"errors"
	"testing"
)

func TestWithoutTheLibraryEverythingFailsWithOneTypedError(t *testing.T) {
	ctx := context.Background()
	_, _, prove := ProvePoRep(ctx, Request{})
	_, phase2 := SealCommitPhase2[uint64, uint64](nil, 1, 1000)
	_, circuitProofs := SealCommitPhase2CircuitProofs[uint64](nil, 1)
	_, check := Check(ctx, Request{})
	_, devices := Devices()
	_, length := ProofLen(8)
	_, made := NewProver(Config{})
	_, process := Default()
	_, metrics := Metrics()
	for name, err := range map[string]error{
		"ProvePoRep": prove, "SealCommitPhase2": phase2, "SealCommitPhase2CircuitProofs": circuitProofs,
		"Check": check, "Verify": Verify(ctx, Request{}, nil), "Preload": Preload(ctx, 2048), "Evict": Evict(2048),
		"Release": Release(), "Devices": devices, "ProofLen": length, "NewProver": made, "Default": process, "Metrics": metrics,
		"SetLog": SetLog(LogOff, nil),
	} {
		var found *Error
		if !errors.As(err, &found) || found.Code != CodeNotLinked || !errors.Is(err, ErrResource) ||
			!errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if Version() != "" || Features() != "" {
		t.Errorf("%q %q", Version(), Features())
	}
}
