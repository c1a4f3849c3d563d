//go:build cgo && linux && !cuporep_stub

package cuporep

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

func TestProofsOfA2KiBSectorByThreeCallersAtOnce(t *testing.T) {
	testParameters(t)
	if err := Preload(background, 2048); err != nil {
		t.Fatal(err)
	}
	request := fixture(t, interactive)
	var group sync.WaitGroup
	start := func(call func() ([]byte, error)) {
		group.Add(1)
		go func() {
			defer group.Done()
			proof, err := call()
			if err != nil {
				t.Error(err)
				return
			}
			if len(proof) != 192 {
				t.Errorf("%d bytes", len(proof))
			}
			if err := Verify(background, request, proof); err != nil {
				t.Error(err)
			}
			proof[100] ^= 1
			err = Verify(background, request, proof)
			if !errors.Is(err, ErrInput) {
				t.Errorf("an altered proof: %v", err)
			}
			if err := Verify(background, request, nil); !errors.Is(err, ErrInput) {
				t.Errorf("no proof: %v", err)
			}
		}()
	}
	start(func() ([]byte, error) {
		return SealCommitPhase2(request.C1, sectorNumber(request.Sector), actorID(request.Miner))
	})
	start(func() ([]byte, error) {
		return SealCommitPhase2CircuitProofs(request.C1, sectorNumber(request.Sector))
	})
	start(func() ([]byte, error) {
		begun, ended := make(map[Stage]int), make(map[Stage]int)
		watched := request
		watched.Progress = func(event Event) {
			if event.Ended {
				ended[event.Stage]++
			} else {
				begun[event.Stage]++
			}
		}
		ctx, cancel := context.WithTimeout(background, time.Hour)
		defer cancel()
		proof, report, err := ProvePoRep(ctx, watched)
		if err != nil {
			return nil, err
		}
		for stage := StageQueue; stage <= StageVerify; stage++ {
			if begun[stage] == 0 || begun[stage] != ended[stage] {
				t.Errorf("%v: begun %d times, ended %d times", stage, begun[stage], ended[stage])
			}
			if stage != StageQueue && report.Stages[stage] <= 0 {
				t.Errorf("%v took %v", stage, report.Stages[stage])
			}
		}
		if report.RegisteredProof != 5 || report.Partitions != 1 || !report.InsecureParameters ||
			report.ProgressFailed || report.Device == "" || report.Total <= 0 || report.HostBytes == 0 {
			t.Errorf("%+v", report)
		}
		t.Logf("made on %s in %v", report.Device, report.Total)
		return proof, nil
	})
	group.Wait()
	if err := Evict(2048); err != nil {
		t.Error(err)
	}
}

func TestAProofIsCancelledInTheMiddle(t *testing.T) {
	testParameters(t)
	for _, at := range []Stage{StageParameters, StageWitness, StageTransform, StageSumH} {
		t.Run(at.String(), func(t *testing.T) {
			ctx, cancel := context.WithCancel(background)
			defer cancel()
			request := fixture(t, interactive)
			var cancelled time.Time
			request.Progress = func(event Event) {
				if event.Stage == at && !event.Ended && cancelled.IsZero() {
					cancelled = time.Now()
					cancel()
				}
			}
			proof, report, err := ProvePoRep(ctx, request)
			took := time.Since(cancelled)
			wants(t, err, CodeCancelled)
			if !errors.Is(err, context.Canceled) || proof != nil || report.Stages[StageVerify] != 0 {
				t.Errorf("%d bytes, %+v, %v", len(proof), report, err)
			}
			t.Logf("ended %v after it was cancelled: %v", took, err)
			// The promise is 500 ms; the rest is for machines with other work.
			if took > 5*time.Second {
				t.Errorf("ended only %v after it was cancelled", took)
			}
		})
	}
}

func TestADeadlineEndsAProof(t *testing.T) {
	testParameters(t)
	if err := Preload(background, 2048); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(background, time.Second)
	defer cancel()
	_, _, err := ProvePoRep(ctx, fixture(t, interactive))
	if wants(t, err, CodeDeadline); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
