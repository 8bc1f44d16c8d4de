package past

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/metrics/timeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
	"github.com/trainyard/trainyard/whatif"
)

// History is a recorded run made into a trace and a cluster on which other systems can be tried.
//
// The work of a job is what was measured: what it reported, or, if it never did, the time that its last attempt took.
// Where the record does not say when an attempt did its first work, each start costs a job what it was seen to cost it:
// the time that it was up and did no work that lasted, shared out among its starts. A job that never reports its work
// has that in its work, and starts over when it is stopped. Jobs arrive when they arrived. Jobs that were not over when
// the record ended (or were refused later), but had run, are censored: they are simulated, for they took GPUs from
// others, with the work they had done so far, and no figure counts them. What users did to jobs (pauses, cancels),
// failures of nodes and strangers on GPUs are not repeated: a job that failed or was cancelled ends when it has done
// the same work. A job that was changed is from its arrival on as it was wanted last.
type History struct {
	Header   eventlog.Header
	Trace    *trace.Trace
	Cluster  *cluster.Cluster // the nodes as last seen, down ones included
	Jobs     []metrics.Job    // what became of each job of Trace
	Recorded Row              // the run itself
	Ended    int              // jobs of Trace that figures count
	Censored int              // jobs of Trace that they do not
	NeverRan int              // jobs of the record left out: their work is not known
	Changed  int              // jobs of Trace that their users changed: they are as they were wanted last
	Measured Overheads
	// systems, with their settings, that decided before that of Header did, in order; nil = it decided all
	Earlier []string
	// Progress hears before each simulation how many there were, and are in all, and of which system it is; nil = none.
	Progress func(done, of int, system string)

	line   *timeline.Timeline // of the record, with the jobs of Trace; nil = not asked for
	result metrics.Result     // of the record, all its jobs

	ended []bool // by job of Trace
	// startUp is what each start cost a job, by its name in Trace; nil = Measured says it for all.
	startUp map[string]time.Duration
	// by the names of jobs in Trace: the work at which a job said how much it is in all
	known map[string]time.Duration
	// how fast jobs were by their GPUs and next to others; nil = as fast as they had GPUs
	speeds *speeds
	mute   map[string]bool // jobs, by their names in Trace, of whose epochs nothing was heard where they shared
}

// Overheads are what starts and stops took, by the median; 0 = nothing, or never seen.
type Overheads struct {
	Start, Stop time.Duration // from the order until the attempt was up or gone
	Restart     time.Duration // from an attempt being up until it did work again
	Restarts    int           // seen
	AtFirst     bool          // Restart is that of first starts too
	Report      time.Duration // between reports of the progress of a job
}

// ReadHistory reads a log to its end, where no one decides anything again. Nothing happened after it until now; a now
// before the last record means that. line notes who held which GPU when; then simulations do, too. nil: no one does. It
// is an error if no job ran.
func ReadHistory(r *eventlog.Reader, now sched.Time, line *timeline.Timeline) (*History, error) {
	rec, who := metrics.NewRecorder(0), new(eventlog.Deciders)
	spent := &overheads{shared: make(map[sched.JobID]bool), epochs: make(map[sched.JobID]bool),
		said: make(map[sched.JobID]time.Duration), changed: make(map[sched.JobID]bool)}
	sinks := []eventlog.Sink{rec, spent, &spent.paces, who}
	if line != nil {
		line.Meter = rec.Bill()
		sinks = append([]eventlog.Sink{line}, sinks...)
	}
	s, _, err := engine.Fold(r.Header(), r.Records(), sinks...)
	if err != nil {
		return nil, fmt.Errorf("whatif: %w", err)
	}
	v := asOf(s.View(), now, rec)
	h := &History{Header: r.Header(), Earlier: who.Earlier, speeds: spent.paces.fit()}
	h.Measured = spent.sum(v, h.speeds)
	if h.Cluster, err = clusterOf(v); err != nil {
		return nil, err
	}
	result := rec.Result(h.Header.System)
	h.result = result
	number := h.addJobs(v, rec.Jobs, spent)
	if line != nil {
		h.line = line.Of(number)
	}
	if len(h.Jobs) == 0 {
		return nil, fmt.Errorf("whatif: no job of %d in the log has run", len(v.Jobs))
	}
	h.Recorded = h.row(h.Jobs, result.GPUBusy, v.Now)
	h.Recorded.System, h.Recorded.Recorded = h.systems(), true
	if len(h.Earlier) == 0 {
		h.Recorded.Settings = h.Header.Settings
	}
	return h, nil
}

// systems names those who decided: "pollux, then las".
func (h *History) systems() string {
	return eventlog.InTurn(h.Earlier, h.Header.System)
}

// asOf returns v as it is now, as far as time alone changes it, and lets rec count what jobs did meanwhile.
func asOf(v *sched.View, now sched.Time, rec *metrics.Recorder) *sched.View {
	later := *v
	for i := range v.Jobs {
		if now > v.Now && v.Jobs[i].HoldsDevices() {
			later.Now = now
			rec.Log(&later, &sched.Event{Time: now, Kind: sched.Progressed, Job: sched.JobID(i)})
			break
		}
	}
	return &later
}

// addJobs makes a trace of the jobs that ran, and returns their numbers in it by those in the log.
func (h *History) addJobs(v *sched.View, jobs []metrics.Job, spent *overheads) map[sched.JobID]sched.JobID {
	costs := &spent.costs
	h.mute, h.known = make(map[string]bool), make(map[string]time.Duration)
	h.Trace = &trace.Trace{Format: "recorded", Source: "a log of " + cmp.Or(h.Header.System, "an unknown system")}
	number := make(map[sched.JobID]sched.JobID) // in the trace, by that in the log
	if h.Measured.AtFirst {
		h.startUp = make(map[string]time.Duration)
	}
	names := make(map[string]bool)
	for i := range v.Jobs {
		id, j := sched.JobID(i), &v.Jobs[i]
		if j.FirstStart < 0 {
			h.NeverRan++
			continue
		}
		number[id] = sched.JobID(len(h.Jobs))
		if spent.changed[id] {
			h.Changed++
		}
		spec, saves := specOf(id, j, number, names), savesAs(j, costs.Says(id))
		spec.Saves = spec.Saves || saves == trace.SavesWork
		h.Trace.Jobs = append(h.Trace.Jobs, trace.Job{Spec: spec, Saves: saves,
			Duration: whatif.AsWanted(j, spent.work(v, id, h.speeds))})
		h.Jobs, h.ended = append(h.Jobs, jobs[i]), append(h.ended, over(j))
		name := h.Trace.Jobs[len(h.Jobs)-1].Spec.Name
		if spent.mute(id) {
			h.mute[name] = true
		}
		h.known[name] = math.MaxInt64
		if work, said := spent.said[id]; said {
			h.known[name] = work
		}
		if h.startUp != nil {
			h.startUp[name] = spent.startUp(v, id, h.speeds)
		}
		if over(j) {
			h.Ended++
		} else {
			h.Censored++
		}
	}
	closeRanks(v, h.Trace.Jobs, number)
	return number
}

// closeRanks has each array of the trace consist of its tasks that ran: the others left gaps, and a task finds the
// first of its array by its place.
func closeRanks(v *sched.View, jobs []trace.Job, number map[sched.JobID]sched.JobID) {
	tasks := make(map[sched.JobID][]*sched.Array) // that ran, by the first task in the log
	for i := range v.Jobs {
		id := sched.JobID(i)
		if n, ran := number[id]; ran && v.Jobs[i].Spec.Ties.Array.Size > 0 {
			first := v.Jobs[i].Spec.Ties.Array.First(id)
			tasks[first] = append(tasks[first], &jobs[n].Spec.Ties.Array)
		}
	}
	for _, ran := range tasks {
		for place, a := range ran {
			a.Place, a.Size = int32(place), int32(len(ran))
		}
	}
}

// savesAs returns whether a job keeps its work when it is stopped, as it turned out; says is that it reports its work.
func savesAs(j *sched.Job, says bool) trace.Saving {
	switch {
	case j.Evidence == sched.SavesNot, j.Evidence == sched.ResumesNot, !says && j.State == sched.Done:
		return trace.LosesWork
	case j.Evidence == sched.Seen, j.Evidence == sched.Proven:
		return trace.SavesWork
	}
	return 0 // it is not known: then it does
}

// over reports whether j, which ran, came to an end of its own.
func over(j *sched.Job) bool { return j.State == sched.Done && j.Outcome != sched.RejectedJob }

// specOf returns what job id said, as a job of a trace says it: it is submitted when it arrived, its name is its own,
// and of the jobs that it waits for those are left that ran. How they had to end is left out: it ran, so they did.
func specOf(id sched.JobID, j *sched.Job, number map[sched.JobID]sched.JobID, names map[string]bool) sched.JobSpec {
	s := *j.Spec
	s.Submit, s.Task, s.After = j.Arrived, "", nil
	s.Ties.AfterOK, s.Ties.AfterFail = nil, nil
	for _, d := range j.Spec.After {
		if n, ok := number[d]; ok {
			s.After = append(s.After, n)
		}
	}
	if s.Name == "" || names[s.Name] {
		s.Name = fmt.Sprintf("%s#%d", cmp.Or(s.Name, "job"), id)
	}
	names[s.Name] = true
	if s.Deadline > 0 && s.Deadline <= s.Submit {
		s.Deadline = 0 // it was late when it came
	}
	return s
}

// clusterOf returns the cluster that v shows.
func clusterOf(v *sched.View) (*cluster.Cluster, error) {
	c := &cluster.Cluster{Name: "recorded", Types: v.Types}
	for i := range v.Nodes {
		n := &v.Nodes[i]
		if n.Spec.Pool != sched.None || n.State == sched.NodeGone {
			continue
		}
		c.Nodes = append(c.Nodes, n.Spec)
		for int(n.Spec.Type) >= len(c.Types) {
			c.Types = append(slices.Clip(c.Types), fmt.Sprint("type", len(c.Types)))
		}
	}
	for i := range v.Pools {
		p := v.Pools[i].Spec
		c.Pools = append(c.Pools, cluster.Pool{PoolSpec: p,
			Node: sched.NodeSpec{GPUs: p.GPUs, Type: p.Type, DollarsHr: p.Price}})
	}
	if len(c.Nodes)+len(c.Pools) == 0 {
		return nil, errors.New("whatif: the log has no nodes")
	}
	return c, nil
}

// overheads measures what starts and stops take.
type overheads struct {
	costs   whatif.Delays
	paces   paces
	resume  []time.Duration
	reports []time.Duration
	last    map[sched.JobID]sched.Time    // report, or start, of the attempt
	said    map[sched.JobID]time.Duration // the work at the first report of how many steps there are in all
	shared  map[sched.JobID]bool          // next to another on a GPU, so that the ends of its epochs were asked for
	epochs  map[sched.JobID]bool          // the end of one was reported
	changed map[sched.JobID]bool          // by its user
}

// mute reports whether a job was asked for the ends of its epochs and never reported one.
func (o *overheads) mute(id sched.JobID) bool { return o.shared[id] && !o.epochs[id] }

// share notes who is on a GPU with others.
func (o *overheads) share(v *sched.View, id sched.JobID) {
	j := v.Job(id)
	for other := range v.Jobs {
		next := v.Job(sched.JobID(other))
		if other != int(id) && slices.ContainsFunc(next.GPUs, func(g sched.GPUID) bool {
			return slices.Contains(j.GPUs, g)
		}) {
			o.shared[id], o.shared[sched.JobID(other)] = true, true
		}
	}
}

// Log notes orders and their answers.
func (o *overheads) Log(v *sched.View, e *sched.Event) {
	o.costs.Log(v, e)
	switch e.Kind {
	case sched.JobChanged:
		o.changed[e.Job] = true
	case sched.EpochEnded:
		o.epochs[e.Job] = true
	case sched.AttemptStarted:
		if v.Job(e.Job).Spec.Share != sched.ShareNever {
			o.share(v, e.Job)
		}
		if e.Attempt > 1 {
			o.resume = append(o.resume, e.WorkFrom.Sub(e.Time))
		}
		delete(o.last, e.Job)
	case sched.Progressed:
		if _, known := o.said[e.Job]; !known && e.Code > 0 {
			o.said[e.Job] = e.Work
		}
		if at, ok := o.last[e.Job]; ok {
			o.reports = append(o.reports, e.Time.Sub(at))
		} else if o.last == nil {
			o.last = make(map[sched.JobID]sched.Time)
		}
		o.last[e.Job] = e.Time
	}
}

// work returns the work of a job in time alone on the GPUs it asked for, as s says how fast it was; nil = as fast as it
// had GPUs.
func (o *overheads) work(v *sched.View, id sched.JobID, s *speeds) time.Duration {
	j := v.Job(id)
	measured, p := whatif.Measured(v, j), o.paces.jobs[id]
	if s == nil || p == nil {
		return measured
	}
	return s.work(id, p, measured, o.costs.Says(id) || j.State != sched.Done)
}

// startUp returns what each start has cost a job on average, see whatif.Delays.StartUp.
func (o *overheads) startUp(v *sched.View, id sched.JobID, s *speeds) time.Duration {
	cost, _ := o.costs.StartUp(id)
	if p := o.paces.jobs[id]; s != nil && p != nil && o.costs.Says(id) {
		return s.startUp(p, s.work(id, p, v.Job(id).Work, true))
	}
	return cost
}

// sum returns the medians. Logs of simulations say when an attempt does work again. Those of real jobs do not: a job
// that reports its work loses some time at every start, its first too, before the first report.
func (o *overheads) sum(v *sched.View, s *speeds) Overheads {
	m := Overheads{Start: o.costs.Start(), Stop: o.costs.Stop(), Restart: max(median(o.resume), 0),
		Restarts: len(o.resume), Report: median(o.reports)}
	var first []time.Duration
	for i := range v.Jobs {
		if id := sched.JobID(i); o.costs.Says(id) && v.Job(id).Outcome == sched.Finished {
			first = append(first, o.startUp(v, id, s))
		}
	}
	if m.Restart == 0 && slices.ContainsFunc(first, func(d time.Duration) bool { return d > 0 }) {
		m.Restart, m.AtFirst = median(first), true
	}
	return m
}

// median returns the middle one, the lower of two; 0 of none.
func median(d []time.Duration) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[(len(d)-1)/2]
}
