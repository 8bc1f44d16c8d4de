package server

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/api/site"
	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/explain/text"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
)

// states are the words for how a job stands.
var states = []string{"held", "waiting", "starting", "running", "stopping", "done"}

// stateOf says in a word how a job stands.
func stateOf(v *sched.View, j *sched.Job) string {
	switch {
	case j.State == sched.Done:
		return "done"
	case j.HoldsDevices():
		return j.Attempt.String()
	case j.State == sched.Held && !inLine(v, j):
		return "held"
	}
	return "waiting"
}

// placeInArray says which task of an array a job is; nil = none.
func placeInArray(id sched.JobID, spec *sched.JobSpec) *api.Task {
	a := &spec.Ties.Array
	if a.Size == 0 {
		return nil
	}
	return &api.Task{First: int(a.First(id)), Index: int(a.Index), Size: int(a.Size), AtOnce: int(a.AtOnce)}
}

// inLine reports whether a job that is held waits for other tasks of its array alone, as those that come after as many
// as may run at once do: what all of them depend on is done, and they still wait for one thing.
func inLine(v *sched.View, j *sched.Job) bool {
	if j.Spec == nil || j.Paused {
		return false
	}
	a := &j.Spec.Ties.Array
	return a.Limited() && a.Place >= a.AtOnce && j.BlockedBy() == 1 && !slices.ContainsFunc(j.Spec.After,
		func(d sched.JobID) bool { return v.Jobs[d].State != sched.Done })
}

// list returns the jobs that fit a filter.
func (s *Server) list(ctx context.Context, in *jobsInput) (api.Jobs, error) {
	doc := api.Jobs{Schema: "trainyard.jobs/v1", Unit: s.o.Site.Unit(), System: s.o.Host.Header().System}
	ahead, err := outlook(ctx, s.o.Host, in.Ahead)
	if ctx.Err() != nil {
		return doc, err
	}
	if err != nil { // a list comes without it, too
		s.o.Log.Error("nothing is foreseen", "error", err)
	}
	err = s.o.Host.Look(ctx, func(v *sched.View) {
		x := s.writer(v)
		x.says.Forecast = ahead
		ids := make([]sched.JobID, 0, len(v.Jobs))
		for id := range v.Jobs {
			j := &v.Jobs[id]
			if (in.User == "" || j.Spec.User == in.User) && (len(in.State) == 0 || slices.Contains(in.State,
				stateOf(v, j))) {
				ids = append(ids, sched.JobID(id))
			}
		}
		if doc.Total = len(ids); in.Limit > 0 {
			ids = ids[max(len(ids)-in.Limit, 0):]
		}
		doc.Jobs = make([]api.Job, len(ids))
		for i, id := range ids {
			doc.Jobs[i] = x.job(id)
		}
		worths(s.o.Host, v, doc.Jobs)
		if doc.Now = x.when(v.Now); earlier(ahead, v.Now) {
			doc.AsOf = x.when(ahead.At)
		}
	})
	return doc, err
}

// one returns how a job stands, with its keys, and with the last lines of what it wrote if it failed.
func (s *Server) one(ctx context.Context, id sched.JobID) (doc api.Job, err error) {
	ctx, cancel := context.WithTimeout(ctx, api.Patience)
	defer cancel()
	err = s.o.Host.Look(ctx, func(v *sched.View) {
		if int(id) < len(v.Jobs) {
			doc = s.writer(v).job(id)
			if k, able := s.o.Site.(Keeper); able {
				doc.Keys, doc.Paths = k.Keys(v.Jobs[id].Spec), k.Paths(id, v.Jobs[id].Spec)
			}
			if n, able := s.o.Site.(Noticer); able {
				doc.Notices = n.Notices(id, v.Jobs[id].Spec)
			}
			conceal(callerOf(ctx).who, &doc)
		}
	})
	if f := doc.Failure; f != nil && f.Attempt > 0 {
		f.Tail = s.o.Site.Tail(id, int32(f.Attempt), tailLines)
	}
	return doc, err
}

// conceal leaves out of a job of another user where its notices go, unless an admin asks.
func conceal(who api.Who, doc *api.Job) {
	if who.Role >= api.Admin || who.Name == doc.Owner {
		return
	}
	if doc.Keys != nil {
		for i, way := range doc.Keys.Notify {
			doc.Keys.Notify[i] = api.Notify{On: way.On}
		}
	}
	for i := range doc.Notices {
		if failed := doc.Notices[i].Failed; failed != nil {
			failed.Why = ""
		}
	}
}

// tailLines are the last lines of an output that the document of a failure has.
const tailLines = 10

// writer makes documents of a View, while it may be looked at.
type writer struct {
	v      *sched.View
	rows   []Row // by job
	used   func(sched.JobID) metrics.Job
	steps  []steps // by job
	origin time.Time
	brief  *pipeline.Brief
	says   text.Renderer
	ref    func(sched.JobID, *sched.JobSpec) string
	leave  sched.Unsaved // who is not stopped for others
	halted string        // why no job is started; "" = they are
	astray map[sched.JobID]string
	remark func(sched.JobID) string // nil = there are none
	keeper Keeper                   // nil = keys are not known
}

// writer is for the one who looks: rows that were read before would be older than the View, and a job that has just
// failed would have no exit code.
func (s *Server) writer(v *sched.View) *writer {
	rows := s.o.Host.Board().Rows()
	_, used := energy(s.o.Host)
	says := s.says(v)
	says.Last = func(id sched.JobID) (last text.Failure) {
		if int(id) < len(rows) {
			last = rows[id].LastFailure()
		}
		return last
	}
	var remark func(sched.JobID) string
	if r, able := s.o.Site.(Remarker); able {
		remark = r.Remark
	}
	keeper, _ := s.o.Site.(Keeper)
	return &writer{v, rows, used, s.o.Meter.steps, s.origin, s.o.Host.Brief(v), says, s.o.Site.Ref,
		leaves(s.o.Host), halted(s.o.Site), astray(s.o.Site), remark, keeper}
}

// astray says which jobs have processes on GPUs that they do not hold.
func astray(world site.Site) map[sched.JobID]string {
	if w, may := world.(Warden); may {
		return w.Astray()
	}
	return nil
}

// halted says why no job is started at present; "" = they are.
func halted(world site.Site) string {
	if h, may := world.(Halting); may {
		return h.Halted()
	}
	return ""
}

// when says a time as RFC 3339.
func (x *writer) when(t sched.Time) string {
	at := x.origin.Add(time.Duration(t)).UTC()
	// A layout with milliseconds takes five times as long, and lists are long.
	b := at.AppendFormat(make([]byte, 0, 24), time.RFC3339)
	ms := at.Nanosecond() / 1e6
	return string(append(b[:len(b)-1], '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z'))
}

// job returns the document of a job.
func (x *writer) job(id sched.JobID) api.Job {
	j := &x.v.Jobs[id]
	spec := j.Spec
	now := x.v.Now
	doc := api.Job{ID: int(id), Name: spec.Name, User: spec.User, Group: spec.Group, Model: spec.Model,
		Class:   spec.Class,
		State:   stateOf(x.v, j),
		Outcome: j.Outcome.String(), Priority: int(spec.Priority), Min: int(spec.GPUs.Min),
		Want: int(spec.GPUs.Want), Max: int(spec.GPUs.Max),
		GPUs: make([]string, 0,
			len(j.GPUs)), Attempt: int(j.Attempts), Preemptions: int(j.Preemptions), Resizes: int(j.Resizes),
		Submitted: x.when(j.Arrived), RunSec: j.RunNow(now).Seconds(), GPUSeconds: float64(j.ServiceNow(now))}
	doc.Owner, doc.Ref = spec.User, x.ref(id, spec)
	x.limits(&doc, spec)
	x.saving(&doc, j)
	doc.Array = placeInArray(id, spec)
	if int(id) < len(x.rows) {
		x.ended(&doc, j, &x.rows[id])
		doc.UnsavedSec = unsaved(j, &x.rows[id], now).Seconds()
	}
	used := x.used(id)
	doc.EnergyJ, doc.InUseSec = float64(used.Energy), float64(used.InUse)
	doc.PeakGB = math.Round(1e3*float64(used.PeakGB)) / 1e3
	if int(id) < len(x.steps) {
		doc.Step, doc.Total = x.steps[id].done, x.steps[id].total
	}
	if doc.Why == "" && j.State != sched.Done {
		doc.Why = x.why(j, id)
	}
	if other := unmet(x.v, j); other != sched.None {
		doc.Why = x.says.Refusal(sched.Reason{Code: sched.WhyAfter, Job: other})
	}
	x.foreseen(&doc, j, id)
	if j.FirstStart != sched.None {
		doc.Started = x.when(j.FirstStart)
	}
	if j.State == sched.Done {
		doc.Ended, now = x.when(j.End), j.End
	}
	doc.QueueSec = max(now.Sub(j.Arrived).Seconds()-doc.RunSec, 0)
	if j.HoldsDevices() {
		doc.Batch = int(j.Live.Batch)
		x.place(&doc, j, id)
	}
	if j.Attempt == sched.Running {
		doc.Speed = j.Rate
	}
	return doc
}

// limits says what bounds the job.
func (x *writer) limits(doc *api.Job, spec *sched.JobSpec) {
	doc.CPUs, doc.MemoryGB = float64(spec.CPUs), float64(spec.MemoryGB)
	if spec.Preempt != sched.AfterSave {
		doc.Preemptible = spec.Preempt.String()
	}
	if x.keeper == nil {
		return
	}
	if most := x.keeper.TimeLimit(spec); most > 0 {
		doc.TimeLimit = most.String()
	}
}

// saving says whether the job may be stopped for others, and what that has cost.
func (x *writer) saving(doc *api.Job, j *sched.Job) {
	if doc.Protected = x.leave.Protects(j); j.Evidence != sched.NoEvidence {
		doc.Saves = j.Evidence.String()
	}
	l := j.Loss()
	doc.LostSec, doc.LostStops = l.Work.Seconds(), int(l.Stops)
}

// unmet returns the job on account of which j was rejected, as it depends on it; None = there is none.
func unmet(v *sched.View, j *sched.Job) sched.JobID {
	if j.Outcome != sched.RejectedJob {
		return sched.None
	}
	return j.Spec.Unmeetable(v)
}

// foreseen says when the job starts and ends, where that was looked for.
func (x *writer) foreseen(doc *api.Job, j *sched.Job, id sched.JobID) {
	e := x.says.Forecast.Of(id)
	if e == nil || j.State == sched.Done {
		return
	}
	w := whyWriter{Renderer: x.says}
	doc.Start, doc.End = w.expected(e)
}

// listSuits is for how long a list looks into the future as suits.
const listSuits = 500 * time.Millisecond

// outlook looks into the future of all jobs, for so many milliseconds at most; -1 = as suits.
func outlook(ctx context.Context, host Host, ms int) (*explain.Forecast, error) {
	h, able := host.(Foreseer)
	if !able || ms == 0 {
		return nil, nil //nolint:nilnil // nothing is foreseen
	}
	limit := time.Duration(ms) * time.Millisecond
	if limit == api.AsSuits {
		limit = listSuits
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	f, err := h.Outlook(limited)
	if limited.Err() != nil && ctx.Err() == nil { // a list comes without it, too
		return nil, nil //nolint:nilnil // as said
	}
	return f, err
}

// unsaved is the work of a job that is in no checkpoint; 0 where that is not known.
func unsaved(j *sched.Job, row *Row, now sched.Time) time.Duration {
	switch {
	case row.SavedIn == j.Attempts:
		return j.Unsaved(now, row.Saved)
	case row.Unheard == j.Attempts && j.Evidence.Shows():
		return 0
	}
	return j.Unsaved(now, j.Loss().Base)
}

// ended says how the last attempt of a job ended.
func (x *writer) ended(doc *api.Job, j *sched.Job, row *Row) {
	doc.ExitCode, doc.Text = int(row.Code), row.Text
	if !row.Failed() {
		return
	}
	doc.Failure = &api.Failure{Attempt: int(row.Last), Text: row.Failure(), Retries: int(j.Spec.Retries),
		Left: int(max(j.Spec.Retries-j.Failures, 0))}
	if j.State == sched.Done { // whatever is left: its `retry` may be for other ends
		doc.Failure.Left = 0
	}
	if row.Failures > 0 {
		doc.Failure.Attempt = 0
		return
	}
	doc.Failure.Signal = signal(row.Code)
	if j.Outcome == sched.Failed {
		doc.Why = row.Failure()
	}
}

// why says in a sentence why a job that is not done does not run, or why it is kept at its width.
func (x *writer) why(j *sched.Job, id sched.JobID) string {
	if x.halted != "" && j.State == sched.Waiting {
		return x.halted
	}
	if why := x.astray[id]; why != "" {
		return why
	}
	if j.State == sched.Held && x.remark != nil && x.remark(id) != "" {
		return "is held: " + x.remark(id)
	}
	if j.Attempt != sched.Running {
		w := x.brief.Why(id)
		if x.brief.Held != nil && w.Code == explain.WaitPaused {
			if why := x.brief.Held(id); why != "" {
				return why
			}
		}
		return x.says.Sentence(id, &w)
	}
	if len(j.Target) > 0 && x.brief.Unmeasured(id) {
		return x.says.Unmeasured(id)
	}
	if x.leave.Protects(j) {
		return "not stopped for others"
	}
	return ""
}

// place says what a job holds, and with whom.
func (x *writer) place(doc *api.Job, j *sched.Job, id sched.JobID) {
	shared := false
	for _, g := range j.GPUs {
		doc.GPUs = append(doc.GPUs, text.GPUName(x.v, g))
		shared = shared || x.v.GPUs[g].Holders > 1
	}
	if !shared {
		return
	}
	for other := range x.v.Jobs {
		o := &x.v.Jobs[other]
		if sched.JobID(other) != id && o.HoldsDevices() && slices.ContainsFunc(o.GPUs,
			func(g sched.GPUID) bool { return slices.Contains(j.GPUs, g) }) {
			doc.Shares = append(doc.Shares, other)
		}
	}
}

// nodes returns what jobs run on.
func (s *Server) nodes(ctx context.Context, _ *nothing) (api.Nodes, error) {
	doc := api.Nodes{Schema: "trainyard.nodes/v1", Unit: s.o.Site.Unit()}
	several := s.o.Site.Kind() != api.Machine
	err := s.o.Host.Look(ctx, func(v *sched.View) {
		doc.Drained = len(v.Nodes) > 0
		doc.Nodes = make([]api.Node, len(v.Nodes))
		doc.GPUs = make([]api.GPU, len(v.GPUs))
		for i := range v.Nodes {
			n := &v.Nodes[i]
			doc.Drained = doc.Drained && drained(v, n)
			doc.Nodes[i] = nodeDoc(v, n)
			for g := n.First; g < n.First+sched.GPUID(n.Spec.GPUs); g++ {
				if doc.GPUs[g] = gpuDoc(v, g); several {
					doc.GPUs[g].Node = n.Spec.Name
				}
			}
		}
		for id := range v.Jobs {
			if j := &v.Jobs[id]; j.HoldsDevices() {
				for _, g := range j.GPUs {
					doc.GPUs[g].Jobs = append(doc.GPUs[g].Jobs, id)
				}
			}
		}
	})
	if !several && len(doc.Nodes) > 0 {
		doc.Node = doc.Nodes[0].Name
	}
	s.o.Site.Measure(doc.GPUs)
	return doc, err
}

// nodeDoc says how a node stands.
func nodeDoc(v *sched.View, n *sched.Node) api.Node {
	doc := api.Node{Name: n.Spec.Name, Rack: int(n.Spec.Rack), State: n.State.String(), GPUs: make([]string,
		n.Spec.GPUs)}
	if int(n.Spec.Type) < len(v.Types) {
		doc.Type = v.Types[n.Spec.Type]
	}
	for i := range doc.GPUs {
		doc.GPUs[i] = text.GPUName(v, n.First+sched.GPUID(i))
	}
	return doc
}

// drained reports whether nothing new starts on n because its user wants that, of the node or of all its GPUs, those
// that are forgotten aside. One that is not rented at the moment is not drained by that.
func drained(v *sched.View, n *sched.Node) bool {
	if n.State != sched.NodeGone && !n.Open() {
		return true
	}
	for g := n.First; g < n.First+sched.GPUID(n.Spec.GPUs); g++ {
		if s := v.GPUs[g].State; s != sched.GPUWithheld && s != sched.GPUForgotten {
			return false
		}
	}
	return true
}

// gpuDoc says how a GPU stands as far as the View says.
func gpuDoc(v *sched.View, g sched.GPUID) api.GPU {
	gpu := &v.GPUs[g]
	doc := api.GPU{Name: text.GPUName(v, g), State: gpuStates[gpu.State], Jobs: []int{}}
	if t := v.Nodes[gpu.Node].Spec.Type; int(t) < len(v.Types) {
		doc.Type = v.Types[t]
	}
	if gpu.State == sched.GPUInUse && gpu.Quarantined {
		doc.State = "quarantined"
	}
	return doc
}

// gpuStates are the words for the states of a GPU.
var gpuStates = [...]string{sched.GPUInUse: "in-use", sched.GPUForeign: "foreign", sched.GPUMissing: "missing",
	sched.GPUStuck:    "stuck",
	sched.GPUWithheld: "drained", sched.GPUForgotten: "forgotten"}
