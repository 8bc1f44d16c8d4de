package server

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
)

// Meter counts what happens while a manager runs. It is to be the last of its sinks.
type Meter struct {
	kinds   [sched.EventKinds]prometheus.Counter
	commits prometheus.Counter
	took    prometheus.Histogram
	all     []prometheus.Collector
	steps   []steps // by job, as reported last; of Run's goroutine
	wasted  wasted
	batch   bool // has events
}

var (
	_ eventlog.Sink    = (*Meter)(nil)
	_ eventlog.Batcher = (*Meter)(nil)
)

// NewMeter returns a meter at zero.
func NewMeter() *Meter {
	events := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "trainyard_events_total",
		Help: "Events of the log, by kind."}, []string{"kind"})
	m := &Meter{
		commits: prometheus.NewCounter(prometheus.CounterOpts{Name: "trainyard_commits_total",
			Help: "Batches of events made durable."}),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "trainyard_decision_seconds",
			Help: "Time of a decision that changed something.", Buckets: prometheus.ExponentialBuckets(10e-6, 4, 10)}),
	}
	for k := sched.NoEvent + 1; k < sched.EventKinds; k++ {
		m.kinds[k] = events.WithLabelValues(k.String())
	}
	m.all = []prometheus.Collector{events, m.commits, m.took}
	m.wasted.restart(nil)
	return m
}

// steps are those of a training; 0 = not known.
type steps struct{ done, total int64 }

// Restart has the meter count from v on, whose attempts it has not heard of.
func (m *Meter) Restart(v *sched.View) { m.wasted.restart(v) }

// Decided counts a decision, see manager.Options.
func (m *Meter) Decided(nanoseconds int64) { m.took.Observe(float64(nanoseconds) / 1e9) }

// BeginBatch does nothing.
func (m *Meter) BeginBatch() {}

// Log counts an event.
func (m *Meter) Log(v *sched.View, e *sched.Event) {
	m.batch = true
	m.kinds[e.Kind].Inc()
	m.wasted.log(v, e)
	if e.Value > 0 && (e.Kind == sched.Progressed || e.Kind == sched.AttemptStarted || e.Kind == sched.AttemptEnded) {
		for len(m.steps) < len(v.Jobs) {
			m.steps = append(m.steps, steps{})
		}
		s := &m.steps[e.Job]
		if s.done = int64(e.Value); e.Kind == sched.Progressed && e.Code > 0 {
			s.total = int64(e.Code)
		}
	}
}

// EndBatch counts a batch.
func (m *Meter) EndBatch() error {
	if m.batch {
		m.commits.Inc()
	}
	m.batch = false
	return nil
}

// newMetrics returns the handler of figures.
func (s *Server) newMetrics() http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(s.o.Meter.all...)
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		standing{s})
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError, MaxRequestsInFlight: 4,
		DisableCompression: true})
}

// standing says how jobs and GPUs stand when figures are asked for.
type standing struct{ s *Server }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("trainyard_"+name, help, labels, nil)
}

var (
	descJobs     = desc("jobs", "Jobs, by how they stand.", "state")
	descOutcomes = desc("jobs_done_total", "Jobs that are done, by outcome.", "outcome")
	descPrice    = desc("gpu_price", "Seconds that jobs wait saved by each second of a GPU, as of the last decision, "+
		"under a system that puts a price on them.", "type")
	descQueue       = desc("queue_length", "Jobs that wait for GPUs.")
	descGPUs        = desc("gpus", "GPUs or slots, by state; busy ones are in use by a job.", "state")
	descPreemptions = desc("preemptions_total", "Targets taken away with none given in exchange.")
	descRestarts    = desc("restarts_total", "Attempts beyond the first of a job.")
	descResizes     = desc("resizes_total", "Targets exchanged for a set of another size.")
	descService     = desc("gpu_seconds_total", "GPU time that jobs attained.")
	descLost        = desc("lost_gpu_seconds_total", "GPU time of jobs that came to nothing, by cause: "+
		"stopped-for-others since the first job; stopped-by-user, failed and node-lost since the manager was started.",
		"cause")
	descEnergy = desc("energy_joules_total",
		"Energy of the GPUs since the first job arrived, as far as it is measured.")
	descAstray  = desc("jobs_on_gpus_of_others", "Jobs with a process on a GPU that they do not hold.")
	descStreams = desc("streams", "Streams that are open.")
)

// Describe sends the names of the figures.
func (standing) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descJobs, descOutcomes, descQueue, descGPUs, descPreemptions, descRestarts,
		descResizes, descService, descLost, descEnergy, descAstray, descStreams, descPrice} {
		ch <- d
	}
}

// tally is what is counted over all jobs and GPUs.
type tally struct {
	jobs, gpus, outcomes           map[string]int
	preemptions, restarts, resizes int
	service, lost, energy          float64
	wasted                         map[string]float64 // GPU seconds, by cause
	prices                         []api.TypePrice
}

// Collect looks at the manager. One that does not answer in time has no such figures.
func (x standing) Collect(ch chan<- prometheus.Metric) {
	t := tally{jobs: make(map[string]int), gpus: make(map[string]int), outcomes: make(map[string]int)}
	ctx, cancel := context.WithTimeout(context.Background(), api.Patience/2)
	defer cancel()
	if err := x.s.o.Host.Look(ctx, func(v *sched.View) { x.count(v, &t) }); err != nil {
		ch <- prometheus.NewInvalidMetric(descJobs, err)
		return
	}
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
	for _, state := range states {
		send(descJobs, prometheus.GaugeValue, float64(t.jobs[state]), state)
	}
	for o := sched.Finished; o <= sched.RejectedJob; o++ {
		if o != sched.Preempted && o != sched.NodeLost {
			send(descOutcomes, prometheus.CounterValue, float64(t.outcomes[o.String()]), o.String())
		}
	}
	for _, state := range append([]string{"busy", "quarantined"}, gpuStates[:]...) {
		send(descGPUs, prometheus.GaugeValue, float64(t.gpus[state]), state)
	}
	for _, p := range t.prices {
		send(descPrice, prometheus.GaugeValue, p.Price, p.Type)
	}
	send(descQueue, prometheus.GaugeValue, float64(t.jobs["waiting"]))
	send(descPreemptions, prometheus.CounterValue, float64(t.preemptions))
	send(descRestarts, prometheus.CounterValue, float64(t.restarts))
	send(descResizes, prometheus.CounterValue, float64(t.resizes))
	send(descService, prometheus.CounterValue, t.service)
	t.wasted[wastedForOthers] = t.lost
	for cause, seconds := range t.wasted {
		send(descLost, prometheus.CounterValue, seconds, cause)
	}
	send(descEnergy, prometheus.CounterValue, t.energy)
	send(descAstray, prometheus.GaugeValue, float64(len(astray(x.s.o.Site))))
	send(descStreams, prometheus.GaugeValue, float64(x.s.guard.streams.open()))
}

// count counts the jobs and GPUs of a View.
func (x standing) count(v *sched.View, t *tally) {
	for id := range v.Jobs {
		j := &v.Jobs[id]
		t.jobs[stateOf(v, j)]++
		t.outcomes[j.Outcome.String()]++
		t.preemptions += int(j.Preemptions)
		t.restarts += max(int(j.Attempts)-1, 0)
		t.resizes += int(j.Resizes)
		t.service += float64(j.ServiceNow(v.Now))
		t.lost += j.Loss().Work.Seconds() * float64(j.Unit())
	}
	for g := range v.GPUs {
		state := gpuDoc(v, sched.GPUID(g)).State
		if v.GPUs[g].Holders > 0 {
			state = "busy"
		}
		t.gpus[state]++
	}
	t.wasted = x.s.o.Meter.wasted.all()
	if p := x.s.o.Host.Pricer(); p != nil {
		t.prices = prices(v, p)
	}
	kWh, _ := energy(x.s.o.Host)
	t.energy = kWh * 3.6e6
}
