//go:build cgo && linux && !cuporep_stub

package cuporep

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

var background = context.Background()

func TestBadInputsHaveClassCodeAndMessage(t *testing.T) {
	right := fixture(t, interactive)
	replaced := func(old, new string) []byte {
		changed := bytes.Replace(right.C1, []byte(old), []byte(new), 1)
		if bytes.Equal(changed, right.C1) {
			t.Fatalf("%q is not in the fixture", old)
		}
		return changed
	}
	for _, test := range []struct {
		name    string
		change  func(*Request)
		code    Code
		message string
	}{
		{"nil", func(r *Request) { r.C1 = nil }, CodeC1Form, "0 bytes"},
		{"empty", func(r *Request) { r.C1 = []byte{} }, CodeC1Form, "0 bytes"},
		{"other JSON", func(r *Request) { r.C1 = []byte("[]") }, CodeC1Form, ""},
		{"base64 alone", func(r *Request) { r.C1 = []byte(base64.StdEncoding.EncodeToString(r.C1)) }, CodeC1Form, "base64"},
		{"cut", func(r *Request) { r.C1 = r.C1[:len(r.C1)/2] }, CodeC1Syntax, "sha256"},
		{"unknown proof", func(r *Request) { r.C1 = replaced("StackedDrg2KiBV1_1", "StackedDrg3KiBV1_1") }, CodeProofType, "3KiB"},
		{"another size", func(r *Request) { r.C1 = replaced("StackedDrg2KiBV1_1", "StackedDrg8MiBV1_1") }, CodeC1Shape, ""},
		{"another sector", func(r *Request) { r.Sector++ }, CodeC1Identity, "replica id"},
		{"another miner", func(r *Request) { r.Miner++ }, CodeC1Identity, "replica id"},
		{"seed", func(r *Request) { r.C1 = replaced(`"seed":[`, `"seed":[1`) }, 0, ""},
		{"NUL in the id", func(r *Request) { r.ID = "a\x00b" }, CodeArgument, "NUL"},
		{"unknown policy", func(r *Request) { r.Policy = 99 }, CodeArgument, "policy"},
	} {
		t.Run(test.name, func(t *testing.T) {
			request := right
			test.change(&request)
			_, err := Check(background, request)
			_, report, proveErr := ProvePoRep(background, request)
			if err == nil || proveErr == nil || err.Error() != proveErr.Error() {
				t.Fatalf("Check says %v, ProvePoRep %v", err, proveErr)
			}
			if report == nil || report.Device != "" || report.Partitions != 0 {
				t.Errorf("report of a failure: %+v", report)
			}
			if !errors.Is(err, ErrInput) || errors.Is(err, ErrInternal) {
				t.Errorf("class: %v", err)
			}
			if test.code != 0 {
				found := wants(t, err, test.code)
				if !strings.Contains(found.Message, test.message) {
					t.Errorf("%q is not in %q", test.message, found.Message)
				}
			}
		})
	}
	if _, err := Check(nil, right); !errors.Is(err, ErrInput) { //nolint:staticcheck // what is tested
		t.Errorf("nil context: %v", err)
	}
}

func TestCheckDescribesWhatItAccepts(t *testing.T) {
	request := fixture(t, nonInteractive)
	info, err := Check(background, request)
	if err != nil {
		t.Fatal(err)
	}
	if info.RegisteredProof != 15 || info.SectorSize != 2048 || info.Partitions != 13 || info.ProofLen != 13*192 ||
		info.CommR == [32]byte{} || info.CommD == [32]byte{} {
		t.Errorf("%+v", info)
	}
	length, err := ProofLen(info.RegisteredProof)
	if err != nil || length != info.ProofLen {
		t.Errorf("%d, %v", length, err)
	}
	_, err = ProofLen(20)
	wants(t, err, CodeProofType)

	request.Miner, request.MinerUnknown = 0, true
	if _, err := Check(background, request); err != nil {
		t.Errorf("without a miner: %v", err)
	}
	wants(t, Verify(background, request, make([]byte, info.ProofLen)), CodeArgument)
}

func TestNonInteractivePhase2IsRefusedBeforeAnythingLong(t *testing.T) {
	// Without parameters: they would be missed first if it were any later.
	prover, err := NewProver(Config{ParameterDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer prover.Close()
	request := fixture(t, nonInteractive)
	proof, _, err := prover.ProvePoRep(background, request)
	if found := wants(t, err, CodeProofType); proof != nil || !strings.Contains(found.Message, "aggregate") {
		t.Errorf("%d bytes, %v", len(proof), err)
	}
	request.CircuitProofs = true
	_, _, err = prover.ProvePoRep(background, request)
	wants(t, err, CodeParamsMissing)

	proof, err = SealCommitPhase2(request.C1, sectorNumber(request.Sector), actorID(request.Miner))
	if wants(t, err, CodeProofType); proof != nil {
		t.Errorf("%d bytes", len(proof))
	}
}

func TestFailuresOfParametersMemoryAndDevices(t *testing.T) {
	request := fixture(t, interactive)
	prove := func(config Config) error {
		prover, err := NewProver(config)
		if err != nil {
			return err
		}
		defer prover.Close()
		_, _, err = prover.ProvePoRep(background, request)
		return err
	}
	empty := t.TempDir()
	err := prove(Config{ParameterDir: empty})
	found := wants(t, err, CodeParamsMissing)
	if !errors.Is(err, ErrParameters) || !strings.Contains(found.Message, empty) ||
		!strings.Contains(found.Message, "FIL_PROOFS_PARAMETER_CACHE") {
		t.Error(err)
	}
	err = prove(Config{ParameterDir: testParameters(t), HostBytes: 1})
	if wants(t, err, CodeMemory); !errors.Is(err, ErrResource) {
		t.Error(err)
	}
	err = prove(Config{Policy: PolicyGPUOnly, Devices: []uint32{77}})
	if wants(t, err, CodeDevice); !errors.Is(err, ErrResource) || !strings.HasPrefix(err.Error(), "CUPOREP_DEVICE: ") {
		t.Error(err)
	}
	wants(t, prove(Config{Policy: 99}), CodeArgument)
	wants(t, prove(Config{ParameterDir: "a\x00b"}), CodeArgument)
	wants(t, Preload(background, 2047), CodeArgument)
	wants(t, Evict(2047), CodeArgument)
}

func TestMetricsCountProofs(t *testing.T) {
	prover, err := NewProver(Config{ParameterDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer prover.Close()
	_, _, err = prover.ProvePoRep(background, fixture(t, interactive))
	wants(t, err, CodeParamsMissing)
	text, err := prover.Metrics()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"# TYPE cuporep_stage_duration_seconds histogram",
		`cuporep_proofs_total{backend="none",kind="V1_1",result="parameters",size="2KiB"} 1`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("%q is not in\n%s", line, text)
		}
	}
	if _, err := Metrics(); err != nil {
		t.Error(err)
	}
}

func TestAClosedProverRefusesCallsAndOneInUseIsFreedAfterThem(t *testing.T) {
	prover, err := NewProver(Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	request := fixture(t, interactive)
	request.Progress = func(Event) { prover.Close() }
	if _, err := prover.Check(background, request); err != nil {
		t.Errorf("a call that runs while the prover is closed: %v", err)
	}
	_, err = prover.Check(background, request)
	wants(t, err, CodeClosed)
	wants(t, prover.Release(), CodeClosed)
	_, err = prover.Metrics()
	wants(t, err, CodeClosed)
	prover.Close()
}

func TestAProverThatIsShutDownRefusesCalls(t *testing.T) {
	over, cancel := context.WithCancel(background)
	cancel()
	for _, ctx := range []context.Context{background, over} {
		prover, err := NewProver(Config{Threads: 1, GPUWorkers: 1})
		if err != nil {
			t.Fatal(err)
		}
		if stopped, err := prover.Shutdown(ctx); stopped || err != nil {
			t.Errorf("nothing was to be stopped: %v, %v", stopped, err)
		}
		_, err = prover.Check(background, fixture(t, interactive))
		if wants(t, err, CodeShutDown); !errors.Is(err, ErrResource) {
			t.Error(err)
		}
		if err := prover.Release(); err != nil {
			t.Error(err)
		}
		prover.Close()
	}
	_, err := NewProver(Config{GPUWorkers: 65})
	wants(t, err, CodeArgument)
}

func TestContextsEndCalls(t *testing.T) {
	request := fixture(t, interactive)
	cancelled, cancel := context.WithCancel(background)
	cancel()
	_, err := Check(cancelled, request)
	if wants(t, err, CodeCancelled); !errors.Is(err, context.Canceled) || !errors.Is(err, ErrCancelled) {
		t.Error(err)
	}
	past, cancel := context.WithDeadline(background, time.Now().Add(-time.Second))
	defer cancel()
	_, err = Check(past, request)
	if wants(t, err, CodeDeadline); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := Check(background, request); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

func TestProgressOfACheckAndAPanicInIt(t *testing.T) {
	request := fixture(t, interactive)
	var events []Event
	request.Progress = func(event Event) { events = append(events, event) }
	if _, err := Check(background, request); err != nil {
		t.Fatal(err)
	}
	if len(events) != 4 {
		t.Fatalf("%+v", events)
	}
	for index, event := range events {
		if event.RequestID != interactive || event.Stage != StageDecode+Stage(index/2) || event.Partition != -1 ||
			event.Ended != (index%2 == 1) || (event.Elapsed > 0) != event.Ended {
			t.Errorf("event %d: %+v", index, event)
		}
	}
	calls := 0
	request.Progress = func(Event) { calls++; panic("of the caller") }
	request.Sector++
	_, report, err := ProvePoRep(background, request)
	if wants(t, err, CodeC1Identity); calls != 1 || !report.ProgressFailed {
		t.Errorf("%d calls, %+v", calls, report)
	}
}

func TestTheLogComesToOneFunctionAndAPanicInItEndsIt(t *testing.T) {
	request := fixture(t, interactive)
	request.Sector++
	fail := func() {
		if _, _, err := ProvePoRep(background, request); err == nil {
			t.Error("it proved another sector")
		}
	}
	var lock sync.Mutex
	var lines []string
	count := func() int {
		lock.Lock()
		defer lock.Unlock()
		return len(lines)
	}
	add := func(level LogLevel, target, message string) {
		lock.Lock()
		defer lock.Unlock()
		lines = append(lines, fmt.Sprint(level, target, message))
	}
	set := func(level LogLevel, function func(LogLevel, string, string)) {
		t.Helper()
		if err := SetLog(level, function); err != nil {
			t.Fatal(err)
		}
	}
	set(LogInfo, add)
	fail()
	if text := strings.Join(lines, "\n"); !strings.Contains(text, interactive) || !strings.Contains(text, "cuporep::") ||
		!strings.Contains(text, " failed class=input code=107 ms=") {
		t.Errorf("log: %s", text)
	}
	wants(t, SetLog(99, add), CodeArgument)
	before := count()
	fail()
	if count() == before {
		t.Error("a refused SetLog ended the log")
	}
	calls := 0
	set(LogInfo, func(LogLevel, string, string) {
		lock.Lock()
		defer lock.Unlock()
		calls++
		panic("of the caller")
	})
	fail()
	fail()
	set(LogOff, nil)
	before = count()
	fail()
	if calls != 1 || count() != before {
		t.Errorf("%d calls, %d lines after the end", calls, count()-before)
	}
}

func TestVersionsAreCompared(t *testing.T) {
	if err := compareVersions(Version(), Version()); err != nil {
		t.Error(err)
	}
	found := wants(t, compareVersions("0.1.0", "0.2.0"), CodeVersion)
	if !strings.Contains(found.Message, "0.1.0") || !strings.Contains(found.Message, "0.2.0") {
		t.Error(found)
	}
	if Version() == "" || !strings.Contains(Features(), "cpu") {
		t.Errorf("%q %q", Version(), Features())
	}
}

func TestDevicesHaveNames(t *testing.T) {
	devices, err := Devices()
	if err != nil {
		t.Fatal(err)
	}
	for _, device := range devices {
		if device.Name == "" || device.UUID == "" || device.Memory == 0 {
			t.Errorf("%+v", device)
		}
	}
}

func TestCallsAtTheSameTime(t *testing.T) {
	right := fixture(t, interactive)
	var group sync.WaitGroup
	for caller := uint64(0); caller < 16; caller++ {
		group.Add(1)
		go func(caller uint64) {
			defer group.Done()
			request := right
			request.Sector += caller % 2
			ctx, cancel := context.WithTimeout(background, time.Hour)
			defer cancel()
			_, err := Check(ctx, request)
			if caller%2 == 0 && err != nil || caller%2 == 1 && !errors.Is(err, ErrInput) {
				t.Errorf("caller %d: %v", caller, err)
			}
			if err := Release(); err != nil {
				t.Error(err)
			}
		}(caller)
	}
	group.Wait()
}

// resident is the process's memory and open files.
func resident(t *testing.T) (bytes, files int) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var size, pages int
	if _, err := fmt.Sscan(string(status), &size, &pages); err != nil {
		t.Fatal(err)
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize(), len(open)
}

func TestMemoryStaysFlatOver1000Calls(t *testing.T) {
	right := fixture(t, interactive)
	right.Progress = func(Event) {}
	call := func(index int) {
		request := right
		request.Sector += uint64(index % 2)
		ctx, cancel := context.WithCancel(background)
		defer cancel()
		if index%4 == 3 {
			cancel()
		}
		_, err := Check(ctx, request)
		if (index%4 == 0 || index%4 == 2) != (err == nil) {
			t.Fatalf("call %d: %v", index, err)
		}
		if index%100 == 0 {
			prover, err := NewProver(Config{Threads: 2})
			if err != nil {
				t.Fatal(err)
			}
			prover.Close()
		}
	}
	for index := 0; index < 200; index++ {
		call(index)
	}
	runtime.GC()
	before, filesBefore := resident(t)
	for index := 0; index < 1000; index++ {
		call(index)
	}
	runtime.GC()
	after, filesAfter := resident(t)
	t.Logf("resident: %d MB before, %d MB after 1000 calls", before>>20, after>>20)
	if after > before+16<<20 || filesAfter > filesBefore+2 {
		t.Errorf("resident: %d bytes, then %d; files: %d, then %d", before, after, filesBefore, filesAfter)
	}
}
