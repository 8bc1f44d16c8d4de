package server

import (
	"context"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/api/site"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/metrics/timeline"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
)

// Host is what a Server asks of the one who decides. All of it may be asked by any goroutine.
type Host interface {
	// Header says which system decides, on what, since when.
	Header() eventlog.Header
	// Look has f look at the state while nothing changes it; Brief and Result are for f.
	Look(ctx context.Context, f func(*sched.View)) error
	// Brief says why jobs wait, for lists of many.
	Brief(v *sched.View) *pipeline.Brief
	// Pricer is what puts a price on GPUs; nil = the system that decides puts none on them. Its answers are for Look.
	Pricer() sched.Pricer
	// Result is what has come of all jobs so far.
	Result() (metrics.Result, []metrics.Job)
	// Board has what the view does not: when jobs came and went, by whom, and why they failed.
	Board() *Board
	// LastEvent is the number of the newest event, 0 if there is none.
	LastEvent() uint64
	// Events sends the lines of the log from that event on, those to come too, until ctx is done or send fails.
	Events(ctx context.Context, from uint64, send func(seq uint64, line []byte) error) error
	// Why says why a job waits, and what would have it start.
	Why(ctx context.Context, job sched.JobID, o WhyOptions) (*Answer, error)
}

// What a Host answers with.
type (
	// Board shows how the jobs stand, as far as that is durable.
	Board = host.Board
	// Row is how one job stands.
	Row = host.Row
	// Answer says why a job stands as it does.
	Answer = host.Answer
	// WhyOptions say how much an Answer is to find out.
	WhyOptions = host.WhyOptions
	// Decision is one change of target, decided again.
	Decision = host.Decision
)

// Foreseer is a Host that looks into the future of all jobs.
type Foreseer interface {
	// Outlook says when the jobs that are not done start and end; nil where that is not known before ctx ends.
	Outlook(ctx context.Context) (*explain.Forecast, error)
}

// Accountant is a Host that says what jobs have used without summing up all that has come of them.
type Accountant interface {
	// Energy returns what all nodes have used, in kWh, and what has come of a job. It is for what Look calls.
	Energy() (kWh float64, of func(sched.JobID) metrics.Job)
	// Metered reports whether some node was measured to draw power: what others draw is what a model says.
	Metered() bool
}

// energy is that of an Accountant, of any Host.
func energy(h Host) (kWh float64, of func(sched.JobID) metrics.Job) {
	if a, able := h.(Accountant); able {
		return a.Energy()
	}
	result, jobs := h.Result()
	return result.EnergyKWh, func(id sched.JobID) metrics.Job {
		if int(id) < len(jobs) {
			return jobs[id]
		}
		return metrics.Job{}
	}
}

// Historian is a Host that knows who held what when.
type Historian interface {
	// Timeline is for what Look calls.
	Timeline() *timeline.Timeline
}

// Forgetful is a Host that keeps the latest events alone.
type Forgetful interface {
	// FirstEvent is the number of the first event that is kept; 1 = all are.
	FirstEvent() uint64
}

// Explainer is a Site whose log has enough to decide a decision again.
type Explainer interface {
	Explain(ctx context.Context, seq uint64) (*Decision, error)
}

// Ordering is a Site that starts attempts itself.
type Ordering interface {
	// Launched returns the command of an attempt as it was run; nil = that is not known.
	Launched(job sched.JobID, attempt int32) []string
}

// Warden is a Site that sees which processes of jobs are on GPUs that their job does not hold.
type Warden interface {
	// Astray says so by job, with the likely cause. Anyone may call it.
	Astray() map[sched.JobID]string
}

// Remarker is a Site that watches its jobs itself.
type Remarker interface {
	// Remark returns what the user of a job should know of how that is watched; "" = nothing.
	Remark(job sched.JobID) string
}

// Keeper is a Site that knows keys of its jobs as job files have them.
type Keeper interface {
	// Keys returns those of a job that are set; nil = that is not known. Anyone may call it.
	Keys(spec *sched.JobSpec) *api.Keys
	// Paths says where a job runs and what it writes to; nil = that is not known. Anyone may call it.
	Paths(id sched.JobID, spec *sched.JobSpec) *api.Paths
	// TimeLimit is after how long a job is ended; 0 = never, or that is not known. Lists of many jobs ask for it.
	TimeLimit(spec *sched.JobSpec) time.Duration
}

// Noticer is a Site whose jobs have users who hear of them.
type Noticer interface {
	// Notices says what was sent last in each way. Anyone may call it.
	Notices(id sched.JobID, spec *sched.JobSpec) []api.NoticeState
}

// Planner is a Batch that knows when its jobs would start; without it nothing is known.
type Planner interface {
	Plan(ctx context.Context) (f *explain.Forecast, first sched.JobID, err error)
}

// Cleaner is a Site that can remove what jobs that are done left.
type Cleaner interface {
	Clean(ctx context.Context, in api.Clean) (api.Cleaned, error)
}

// Forgetter is a Site whose GPUs may be taken away for good.
type Forgetter interface {
	// Forget has GPUs that are missing count no more; ErrInUse of api if one is there, or a job holds it.
	Forget(ctx context.Context, gpus []sched.GPUID) error
}

// Signaller is a Site that can send signals to what jobs run.
type Signaller interface {
	// Signal sends one to processes of an attempt that runs.
	Signal(job sched.JobID, attempt int32, in api.Signal) error
}

// Editor is a Site that can change all keys of a job.
type Editor interface {
	// Edit changes keys, all of them or none, and returns which hold at once and which of the next attempt. Under
	// host.OnlyIf its error is returned.
	Edit(ctx context.Context, who api.Who, job sched.JobID, in *api.Edit) (now, next []string, err error)
}

// Commander is a Site that does the same with several jobs in one batch: after a crash with all of them, or with none.
type Commander interface {
	// CommandAll returns why nothing was done with single jobs, in their order, or why with none.
	CommandAll(ctx context.Context, jobs []sched.JobID, c sched.Command) ([]error, error)
}

// Ranking is a Site that bounds the priorities of jobs. Anyone may call it.
type Ranking interface {
	// MayRank refuses a priority that the one who asks may not give a job.
	MayRank(who api.Who, priority int32) error
}

// Halting is a Site that may start no job for a while.
type Halting interface {
	// Halted says why no job is started at present; "" = they are. Anyone may call it.
	Halted() string
}

// Keyed is a Batch that is submitted at most once under a key of the one who asks; without it no key is taken.
type Keyed interface {
	SubmitOnce(ctx context.Context, key string) ([]site.Accepted, error)
}

var (
	errLate = host.ErrLate // of Explain: its time is over
	signal  = host.Signal  // names the signal of an exit code
)

// hostErrors are the errors of a host by the errors of the contract. The first that fits holds.
var hostErrors = []struct{ of, contract error }{
	{host.ErrNoJob, api.ErrNoJob},
	{host.ErrNoEvent, api.ErrNoEvent},
	{host.ErrNoDecision, api.ErrNoDecided},
	{host.ErrOtherSystem, api.ErrElsewhere},
	{host.ErrDone, api.ErrDone},
	{host.ErrStopped, api.ErrStopped},
	{host.ErrNotHere, api.ErrNotHere},
	{host.ErrKeyUsed, api.ErrKeyUsed},
}
