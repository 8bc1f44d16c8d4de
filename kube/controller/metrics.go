package controller

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
)

// Metrics are the figures of a controller for Prometheus. Those that stand for a moment are taken at the end of a
// batch, once it is durable; who asks for them gets the last ones and holds no one up. Counts start with the process.
// One that does not lead gives no figures of jobs, GPUs and pools, so that sums over all replicas are right.
type Metrics struct {
	standing     atomic.Pointer[standing] // nil = it does not decide
	failures     prometheus.Counter
	preemptions  prometheus.Counter
	ends         *prometheus.CounterVec
	decisionTook prometheus.Histogram
}

var _ prometheus.Collector = (*Metrics)(nil)

// NewMetrics returns figures at zero, for one controller. They are to be registered.
func NewMetrics() *Metrics {
	m := &Metrics{
		failures: prometheus.NewCounter(prometheus.CounterOpts{Name: "trainyard_start_failures_total",
			Help: "Attempts that did not start."}),
		preemptions: prometheus.NewCounter(prometheus.CounterOpts{Name: "trainyard_preemptions_total",
			Help: "Targets taken away with none given in exchange."}),
		ends: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "trainyard_attempts_ended_total",
			Help: "Attempts that ended, by outcome; those that are preempted go on later, at times elsewhere or at " +
				"another width."}, []string{"outcome"}),
		decisionTook: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "trainyard_decision_seconds",
			Help: "Time of a decision that changed something.", Buckets: prometheus.ExponentialBuckets(10e-6, 4, 10)}),
	}
	for o := sched.Finished; o <= sched.NodeLost; o++ {
		m.ends.WithLabelValues(o.String())
	}
	return m
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("trainyard_"+name, help, labels, nil)
}

var (
	descDeciding = desc("deciding", "1 where this process decides, 0 where another one does, or no one can.")
	descGPUs     = desc("gpus", "GPUs of nodes that are there, by state: busy ones are a job's, unusable ones are "+
		"given to no one.", "state")
	descJobs  = desc("jobs", "Jobs that are not done, by phase.", "phase")
	descNodes = desc("pool_nodes", "Nodes of a pool, by state: rented ones are there, wanted ones are what the "+
		"policy wants.", "pool", "state")
	descSpend = desc("pool_spend_total", "What the nodes of a pool have cost, in the currency of its price.", "pool")
)

// Describe gives the names of the figures.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descDeciding, descGPUs, descJobs, descNodes, descSpend} {
		ch <- d
	}
	for _, c := range m.counts() {
		c.Describe(ch)
	}
}

func (m *Metrics) counts() []prometheus.Collector {
	return []prometheus.Collector{m.failures, m.preemptions, m.ends, m.decisionTook}
}

// Collect gives the figures.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.counts() {
		c.Collect(ch)
	}
	report := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
	s := m.standing.Load()
	if s == nil {
		report(descDeciding, prometheus.GaugeValue, 0)
		return
	}
	report(descDeciding, prometheus.GaugeValue, 1)
	for i, state := range gpuStates {
		report(descGPUs, prometheus.GaugeValue, float64(s.gpus[i]), state)
	}
	for i, phase := range phases {
		report(descJobs, prometheus.GaugeValue, float64(s.jobs[i]), string(phase))
	}
	for _, p := range s.pools {
		report(descNodes, prometheus.GaugeValue, float64(p.rented), p.name, "rented")
		report(descNodes, prometheus.GaugeValue, float64(p.wanted), p.name, "wanted")
		report(descSpend, prometheus.CounterValue, p.spent, p.name)
	}
}

// standing is how all stands at the end of a batch. No one changes it.
type standing struct {
	gpus  [len(gpuStates)]int
	jobs  [len(phases)]int
	pools []poolStanding
}

type poolStanding struct {
	name           string
	rented, wanted int32
	spent          float64
}

// meter is the sink that takes the figures of one start. It is the last, so that what it gives is durable.
type meter struct {
	m         *Metrics
	v         *sched.View
	tally     tally
	preempted []int32 // by job, as counted
}

var (
	_ eventlog.Sink    = (*meter)(nil)
	_ eventlog.Batcher = (*meter)(nil)
)

// newMeter returns the sink of a start from v.
func newMeter(m *Metrics, v *sched.View) *meter {
	t := &meter{m: m, v: v}
	for id := range v.Jobs {
		t.preempted = append(t.preempted, v.Jobs[id].Preemptions)
	}
	return t
}

// Log counts an event.
func (t *meter) Log(v *sched.View, e *sched.Event) {
	t.tally.note(v, e)
	switch e.Kind {
	case sched.JobArrived:
		t.preempted = append(t.preempted, 0)
	case sched.StartFailed:
		t.m.failures.Inc()
	case sched.AttemptEnded:
		t.m.ends.WithLabelValues(e.Outcome.String()).Inc()
	case sched.Decided:
		if n := t.v.Jobs[e.Job].Preemptions; n > t.preempted[e.Job] {
			t.preempted[e.Job] = n
			t.m.preemptions.Inc()
		}
	}
}

// BeginBatch does nothing.
func (t *meter) BeginBatch() {}

// EndBatch takes the figures of the moment.
func (t *meter) EndBatch() error {
	t.tally.settle(t.v)
	s := &standing{gpus: t.tally.gpus, jobs: t.tally.phases}
	for i := range t.v.Pools {
		p := &t.v.Pools[i]
		if p.Spec.Name == "" { // it is gone; two figures of one name would have all refused
			continue
		}
		s.pools = append(s.pools, poolStanding{p.Spec.Name, p.Nodes, p.Target, float64(p.SpentNow(t.v.Now))})
	}
	t.m.standing.Store(s)
	return nil
}
