package cuporepprom

import (
	"errors"
	"strings"
	"testing"

	"github.com/cuporep/cuporep/go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// sample has each kind of metric, as the library writes them.
const sample = `# HELP cuporep_build_info 1, with what is running.
# TYPE cuporep_build_info gauge
cuporep_build_info{features="cpu",version="0.1.0"} 1
# HELP cuporep_proofs_total Proofs that were asked for and have ended.
# TYPE cuporep_proofs_total counter
cuporep_proofs_total{backend="cpu",kind="V1_1",result="ok",size="2KiB"} 2
cuporep_proofs_total{backend="none",kind="V1_1",result="input",size="2KiB"} 1
# HELP cuporep_stage_duration_seconds Time of the stages that ended.
# TYPE cuporep_stage_duration_seconds histogram
cuporep_stage_duration_seconds_bucket{stage="sum_h",le="0.5"} 1
cuporep_stage_duration_seconds_bucket{stage="sum_h",le="5"} 3
cuporep_stage_duration_seconds_bucket{stage="sum_h",le="+Inf"} 4
cuporep_stage_duration_seconds_sum{stage="sum_h"} 12.25
cuporep_stage_duration_seconds_count{stage="sum_h"} 4
`

type text string

func (t text) Metrics() (string, error) { return string(t), nil }

type broken struct{}

func (broken) Metrics() (string, error) { return "", errors.New("it is closed") }

func registry(t *testing.T, source Source) *prometheus.Registry {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(NewCollector(source)); err != nil {
		t.Fatal(err)
	}
	return registry
}

func TestWhatIsGatheredIsWhatTheSourceSays(t *testing.T) {
	if err := testutil.GatherAndCompare(registry(t, text(sample)), strings.NewReader(sample)); err != nil {
		t.Error(err)
	}
}

func TestSeveralProversAreToldApartByALabel(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	for _, name := range []string{"one", "other"} {
		labelled := prometheus.WrapRegistererWith(prometheus.Labels{"prover": name}, registry)
		labelled.MustRegister(NewCollector(text(sample)))
	}
	count, err := testutil.GatherAndCount(registry, "cuporep_proofs_total")
	if err != nil || count != 4 {
		t.Errorf("%d, %v", count, err)
	}
}

func TestASourceThatFailsFailsTheCollection(t *testing.T) {
	for want, source := range map[string]Source{
		"it is closed": broken{},
		"parsing":      text("cuporep_proofs_total{ 1\n"),
		"SUMMARY":      text("# TYPE a summary\na_sum 1\na_count 1\n"),
	} {
		if _, err := registry(t, source).Gather(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}

func TestAProverIsASource(t *testing.T) {
	prover, err := cuporep.Default()
	if errors.Is(err, errors.ErrUnsupported) {
		t.Log("built without the library")
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	families, err := registry(t, prover).Gather()
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]string)
	for _, family := range families {
		names[family.GetName()] = family.GetType().String()
	}
	for name, kind := range map[string]string{
		"cuporep_build_info": "GAUGE", "cuporep_queue_depth": "GAUGE", "cuporep_queue_wait_seconds": "HISTOGRAM",
	} {
		if names[name] != kind {
			t.Errorf("%s is %q", name, names[name])
		}
	}
}
