//go:build cgo && linux && !cuporep_stub

package cuporep

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// As in go-state-types, which this module does not depend on.
type (
	sectorNumber uint64
	actorID      uint64
)

const (
	interactive    = "StackedDrg2KiBV1_1-000"
	nonInteractive = "StackedDrg2KiBV1_2_Feat_NonInteractivePoRep-000"
)

// fixture is a real C1 output of the repository as a request.
func fixture(t *testing.T, name string) Request {
	t.Helper()
	directory := filepath.Join("..", "tests", "fixtures", name)
	c1, err := exec.Command("xz", "-dc", filepath.Join(directory, "c1.json.xz")).Output()
	if err != nil {
		t.Fatalf("xz is needed to unpack test data: %v", err)
	}
	text, err := os.ReadFile(filepath.Join(directory, "meta.json"))
	if err != nil {
		t.Fatal(err)
	}
	var meta struct {
		Sector uint64 `json:"sector_id"`
		Miner  uint64 `json:"miner"`
	}
	if err := json.Unmarshal(text, &meta); err != nil {
		t.Fatal(err)
	}
	return Request{C1: c1, Sector: meta.Sector, Miner: meta.Miner, ID: name}
}

var useTestParameters sync.Once

// testParameters makes the process's prover use insecure parameters for 2 KiB sectors, and returns their directory.
func testParameters(t *testing.T) string {
	t.Helper()
	directory := os.Getenv("GO_TEST_PARAMETERS")
	if directory == "" {
		t.Fatal("GO_TEST_PARAMETERS must name a directory with insecure parameters; go/test.sh makes them")
	}
	useTestParameters.Do(func() {
		if err := os.Setenv("FIL_PROOFS_PARAMETER_CACHE", directory); err != nil {
			t.Fatal(err)
		}
	})
	return directory
}

// wants fails unless err is an *Error of this code and its class.
func wants(t *testing.T, err error, code Code) *Error {
	t.Helper()
	var found *Error
	if !errors.As(err, &found) || found.Code != code || found.Class != Class(code/100) || found.Message == "" {
		t.Fatalf("expected code %d, got %v", code, err)
	}
	return found
}
