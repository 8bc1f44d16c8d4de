package past

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/trainyard/trainyard/manager"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/metrics/timeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
	"github.com/trainyard/trainyard/trace"
)

// Candidate is a system to be tried on a History.
type Candidate struct {
	System string
	// as of simulate.Request; what restarts, starts and stops take is as measured unless said
	Settings map[string]string
	Budget   float64       // GPUs rented on average, for systems that rent; 0 = none given
	Round    time.Duration // decisions at multiples of it only; 0 = the system's own
}

// Row is one run in figures: the recorded one or a simulated one. They count the jobs that ended in the record,
// whatever became of them later, and no others, so that rows can be compared. Times are in seconds.
type Row struct {
	System      string            // of the record: those who decided, one after the other
	Settings    map[string]string // of the record: nil if there were several
	Recorded    bool              // it is the record itself
	Jobs        int               // that ended, of those counted
	MeanJCT     float64
	P95JCT      float64 // nearest rank
	MeanQueue   float64 // without GPUs
	Makespan    float64 // first arrival to last end
	Busy        float64 // share of the GPU time of nodes that were up in which work went on, by whatever job
	Preemptions int64
	Prices      []Price         // of a GPU of each type over time; empty where the system puts none on them
	Error       *Difference     // of the simulation from the record, where both are of the same system; else nil
	Paired      *metrics.Paired //  against the simulation of the system that decided; nil = none of it, or too few jobs
	Err         error           // it could not be simulated: no figures

	line    *timeline.Timeline // of its run; nil = not asked for
	outcome *simulate.Outcome  // nil: it is the record
}

// Difference is how far a simulation is from the record, relative to it: 0.1 = a tenth more.
type Difference struct {
	MeanJCT, P95JCT, Makespan float64
	MeanQueue                 float64 // relative to the mean JCT, for no one may have waited
	PerJob                    float64 // median over jobs of the size of the difference of their JCT
}

// Itself returns the system that decided in the record, the last of several, to see how far a simulation of it is from
// what happened.
func (h *History) Itself() Candidate {
	return Candidate{System: h.Header.System, Settings: ownKeys(h.Header.Settings), Budget: h.Header.Budget,
		Round: h.Header.Round}
}

// Compare simulates the history under each candidate and returns the recorded run first, then theirs in order. A
// candidate that cannot be simulated has its error in its row; the error returned is that of ctx.
//
// Systems that ask how much work a job has left hear the truth, which the recorded run may not have known; but that
// which decided in a record of real jobs hears what it did: estimates, until a job says how many its steps are.
func (h *History) Compare(ctx context.Context, list []Candidate) ([]Row, error) {
	rows, took := []Row{h.Recorded}, [][]time.Duration{nil}
	for i := range list {
		if h.Progress != nil {
			h.Progress(i, len(list), list[i].System)
		}
		row, jcts := h.simulate(ctx, &list[i])
		if ctx.Err() != nil {
			return rows, ctx.Err()
		}
		rows, took = append(rows, row), append(took, jcts)
	}
	pair(rows, took)
	return rows, nil
}

// request is the simulation of a candidate.
func (h *History) request(c *Candidate) *simulate.Request {
	sim := &simulate.Request{Trace: h.Trace, Cluster: h.Cluster, System: c.System, Settings: h.settings(c),
		Budget: c.Budget, Round: c.Round, Prices: new(simulate.Prices)}
	_, given := c.Settings["restart_overhead"]
	if sim.Recorded = h.seen(!given); h.decidedBy(c) && manager.Wrote(&h.Header) {
		sim.Recorded.Known = func(j *trace.Job) time.Duration { return h.known[j.Spec.Name] }
	}
	if manager.Wrote(&h.Header) && h.Header.GPUs > 0 { // as real jobs are decided about
		sim.Known = system.EqualScores(h.Header.GPUs)
	}
	return sim
}

// simulate returns how a candidate does, and the JCTs of the jobs that are counted, see jcts.
func (h *History) simulate(ctx context.Context, c *Candidate) (Row, []time.Duration) {
	sim := h.request(c)
	if h.line != nil {
		sim.Timeline = new(timeline.Timeline)
	}
	out, err := sim.Run(ctx)
	if err != nil {
		return Row{System: c.System, Settings: c.Settings, Err: err}, nil
	}
	row := h.row(out.PerJob, out.GPUBusy, lastFinish(out.PerJob))
	row.System, row.Settings = c.System, c.Settings
	row.Prices = h.prices(ctx, c, &row, sim.Prices)
	if h.line != nil {
		row.line, row.outcome = sim.Timeline, out
	}
	if h.decidedBy(c) {
		row.Error = h.difference(&row, out.PerJob)
	}
	return row, h.jcts(out.PerJob)
}

// seen returns how jobs were seen to run, with what their starts cost where asked for.
func (h *History) seen(starts bool) (r simulate.Recorded) {
	if h.startUp != nil && starts {
		r.StartUp = func(j *trace.Job) time.Duration { return h.startUp[j.Spec.Name] }
	}
	if len(h.mute) > 0 {
		r.Mute = func(j *trace.Job) bool { return h.mute[j.Spec.Name] }
	}
	if h.speeds != nil {
		r.Speed, r.Slow = h.speeds.onGPUs, h.speeds.nextTo
	}
	return r
}

// decidedBy reports whether c is what the record was decided by, all of it.
func (h *History) decidedBy(c *Candidate) bool {
	was := &h.Header
	return len(h.Earlier) == 0 && c.System == was.System && c.Budget == was.Budget && c.Round == was.Round &&
		maps.Equal(ownKeys(c.Settings), ownKeys(was.Settings))
}

// settings returns those of c, with what was measured where c says nothing. What was never seen has its usual default.
func (h *History) settings(c *Candidate) map[string]string {
	m := &h.Measured
	all := map[string]string{"start_delay": sched.FormatSeconds(m.Start), "stop_delay": sched.FormatSeconds(m.Stop)}
	if m.Restarts > 0 || m.AtFirst {
		all["restart_overhead"] = sched.FormatSeconds(m.Restart)
	}
	if m.AtFirst {
		all["restart_at_first"] = "yes"
	}
	if m.Report > 0 && learnsFromReports(c) {
		all["report_interval"] = sched.FormatSeconds(m.Report)
	}
	maps.Copy(all, c.Settings)
	return all
}

// learnsFromReports reports whether a system finds out from what jobs report how fast they are.
func learnsFromReports(c *Candidate) bool {
	info, err := system.Named(c.System)
	if err != nil {
		return false
	}
	curves := slices.ContainsFunc(info.Keys, func(k key.Key) bool { return k.Name == "curves" })
	return curves && c.Settings["curves"] != "oracle" || c.Settings["stragglers"] == "watch"
}

// ownKeys returns the settings of a system without those of the simulated world.
func ownKeys(settings map[string]string) map[string]string {
	own := maps.Clone(settings)
	for _, k := range simulate.RuntimeKeys {
		delete(own, k.Name)
	}
	return own
}

// row sums up what became of the jobs that are counted.
func (h *History) row(jobs []metrics.Job, busy float64, end sched.Time) Row {
	counted := make([]metrics.Job, 0, h.Ended)
	for i, j := range jobs {
		if !h.ended[i] {
			continue
		}
		if j.Outcome == sched.Failed || j.Outcome == sched.Cancelled {
			j.Outcome = sched.Finished // after the same work, as its simulation does
		}
		counted = append(counted, j)
	}
	r := metrics.FromJobs("", counted, end)
	return Row{Jobs: r.Finished, MeanJCT: r.AvgJCT, P95JCT: r.P95JCT, MeanQueue: r.AvgQueue, Makespan: r.Makespan,
		Busy:        busy,
		Preemptions: r.Preemptions}
}

// difference compares a simulation with the record.
func (h *History) difference(row *Row, jobs []metrics.Job) *Difference {
	was := &h.Recorded
	d := &Difference{MeanJCT: relative(row.MeanJCT, was.MeanJCT), P95JCT: relative(row.P95JCT, was.P95JCT),
		MeanQueue: relative(row.MeanQueue-was.MeanQueue+was.MeanJCT, was.MeanJCT),
		Makespan:  relative(row.Makespan, was.Makespan)}
	var sizes []float64
	for i := range jobs {
		if h.ended[i] && jobs[i].Outcome == sched.Finished {
			sizes = append(sizes, math.Abs(relative(jobs[i].JCT().Seconds(), h.Jobs[i].JCT().Seconds())))
		}
	}
	if slices.Sort(sizes); len(sizes) > 0 {
		d.PerJob = sizes[(len(sizes)-1)/2]
	}
	return d
}

// relative returns (x-was)/was; 0 where both are nothing, at the scale of a nanosecond where only was is.
func relative(x, was float64) float64 {
	return (x - was) / max(was, time.Nanosecond.Seconds())
}

// jcts returns the JCT of the jobs that are counted, in order of arrival; -1 of one that did not end.
func (h *History) jcts(jobs []metrics.Job) (list []time.Duration) {
	for i := range jobs {
		switch {
		case !h.ended[i]:
		case jobs[i].Finish == sched.None:
			list = append(list, -1)
		default:
			list = append(list, jobs[i].JCT())
		}
	}
	return list
}

// pair compares each simulated row with that of the system that decided, by what the jobs of each took.
func pair(rows []Row, took [][]time.Duration) {
	base := slices.IndexFunc(rows, func(r Row) bool { return r.Error != nil })
	if base < 0 {
		return
	}
	for i := range rows {
		if r := &rows[i]; !r.Recorded && r.Err == nil && i != base {
			r.Paired = metrics.Pair(took[i], took[base])
		}
	}
}
