// Package cuporepprom shows the metrics of a prover to Prometheus:
//
//	prover, err := cuporep.Default()
//	...
//	prometheus.MustRegister(cuporepprom.NewCollector(prover))
//
// It is a module of its own, so that package cuporep needs no other.
package cuporepprom

import (
	"errors"
	"io"
	"math"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// Source of metrics: a *cuporep.Prover.
type Source interface {
	// Metrics in Prometheus' text format.
	Metrics() (string, error)
}

// NewCollector makes a collector of all metrics that the source has; the library is the only place that lists them. So
// it is "unchecked" in client_golang's words: it describes none in advance. To register several provers in one registry,
// tell them apart with prometheus.WrapRegistererWith.
//
// Where the source fails, so does the collection, with its error.
func NewCollector(source Source) prometheus.Collector { return collector{source} }

type collector struct{ source Source }

func (collector) Describe(chan<- *prometheus.Desc) {}

func (c collector) Collect(metrics chan<- prometheus.Metric) {
	if err := c.collect(metrics); err != nil {
		description := prometheus.NewDesc("cuporep_collection_failed", "The metrics of cuporep cannot be had.", nil, nil)
		metrics <- prometheus.NewInvalidMetric(description, err)
	}
}

func (c collector) collect(metrics chan<- prometheus.Metric) error {
	text, err := c.source.Metrics()
	if err != nil {
		return err
	}
	decoder := expfmt.NewDecoder(strings.NewReader(text), expfmt.NewFormat(expfmt.TypeTextPlain))
	for {
		var family dto.MetricFamily
		if err := decoder.Decode(&family); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		for _, metric := range family.GetMetric() {
			metrics <- constant(&family, metric)
		}
	}
}

// constant is a metric with the value that it has now.
func constant(family *dto.MetricFamily, metric *dto.Metric) prometheus.Metric {
	var names, values []string
	for _, label := range metric.GetLabel() {
		names, values = append(names, label.GetName()), append(values, label.GetValue())
	}
	description := prometheus.NewDesc(family.GetName(), family.GetHelp(), names, nil)
	var made prometheus.Metric
	var err error
	switch family.GetType() {
	case dto.MetricType_COUNTER:
		value := metric.GetCounter().GetValue()
		made, err = prometheus.NewConstMetric(description, prometheus.CounterValue, value, values...)
	case dto.MetricType_GAUGE:
		value := metric.GetGauge().GetValue()
		made, err = prometheus.NewConstMetric(description, prometheus.GaugeValue, value, values...)
	case dto.MetricType_HISTOGRAM:
		histogram := metric.GetHistogram()
		buckets := make(map[float64]uint64)
		for _, bucket := range histogram.GetBucket() {
			// The last one is the count.
			if bound := bucket.GetUpperBound(); !math.IsInf(bound, 1) {
				buckets[bound] = bucket.GetCumulativeCount()
			}
		}
		made, err = prometheus.NewConstHistogram(description, histogram.GetSampleCount(), histogram.GetSampleSum(),
			buckets, values...)
	default:
		err = errors.New("a metric of type " + family.GetType().String())
	}
	if err != nil {
		return prometheus.NewInvalidMetric(description, err)
	}
	return made
}
