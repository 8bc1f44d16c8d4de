package manager

import (
	"context"
	"os"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/api/site"
	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/manager/access"
	"github.com/trainyard/trainyard/manager/jobfile"
	"github.com/trainyard/trainyard/manager/kept"
	"github.com/trainyard/trainyard/manager/whatifs"
	"github.com/trainyard/trainyard/sched"
)

// Site is the machine of a Manager, as the server of the API needs it.
type Site struct {
	*access.Door
	kept.Outputs
	m       *Manager
	whatifs *whatifs.Runner // nil = none is asked
	parsing chan struct{}   // a large job file is read by one at a time: its tree takes much memory
}

var _ site.Site = (*Site)(nil)

// NewSite returns the machine of m, which is reached by door.
func NewSite(m *Manager, door *access.Door) *Site {
	return &Site{Door: door, Outputs: kept.Outputs(m.Dir()), m: m, parsing: make(chan struct{}, 1)}
}

// Kind is that of one machine.
func (s *Site) Kind() string { return api.Machine }

// Unit is what jobs hold.
func (s *Site) Unit() string { return s.m.o.Unit }

// Widest is what a job file may name.
func (s *Site) Widest() int { return jobfile.MaxGPUs }

// Split takes a text for the name of a job, whoever owns it.
func (s *Site) Split(text string) (owner, name string) { return "", text }

// Ref names a job by its number.
func (s *Site) Ref(id sched.JobID, _ *sched.JobSpec) string { return strconv.Itoa(int(id)) }

// Expected reports whether a job of that name is among those known beforehand.
func (s *Site) Expected(text string) bool { return s.m.Expects(text) }

// Describe says which process on which folder answers.
func (s *Site) Describe(doc *api.Info) {
	doc.State, doc.PID, doc.Problems = s.m.Dir(), os.Getpid(), s.m.Problems()
}

// Ready is nil: the one who holds the folder decides, unless nothing can be made durable.
func (s *Site) Ready() error { return s.m.room.ready() }

// Halted says why no job is started at present.
func (s *Site) Halted() string { return s.m.room.why() }

// Missing reports false: a machine serves all operations.
func (s *Site) Missing(string) (instead string, missing bool) { return "", false }

// Redact hides the values of variables.
func (s *Site) Redact(line []byte) []byte { return kept.Redact(line) }

// Command does to a job what its user wants.
func (s *Site) Command(ctx context.Context, _ api.Who, job sched.JobID, c sched.Command) error {
	return s.m.Command(ctx, job, c)
}

// CommandAll does the same to several jobs in one batch.
func (s *Site) CommandAll(ctx context.Context, jobs []sched.JobID, c sched.Command) ([]error, error) {
	return host.CommandAll(ctx, s.m.Host, jobs, c)
}

// Change changes what may be changed of a job.
func (s *Site) Change(ctx context.Context, _ api.Who, job sched.JobID, change func(*sched.JobChange)) error {
	return s.m.Change(ctx, job, change)
}

// Drain has nothing new start on nodes, or lifts that.
func (s *Site) Drain(ctx context.Context, _ api.Who, nodes []sched.NodeID, on bool) error {
	return s.m.DrainNodes(ctx, nodes, on)
}

// DrainGPUs has nothing new start on GPUs, or lifts that.
func (s *Site) DrainGPUs(ctx context.Context, _ api.Who, gpus []sched.GPUID, on bool) error {
	return s.m.DrainGPUs(ctx, gpus, on)
}

// Forget has GPUs that are missing count no more.
func (s *Site) Forget(ctx context.Context, gpus []sched.GPUID) error {
	return s.m.ForgetGPUs(ctx, gpus)
}

// Explain decides a decision of the log again.
func (s *Site) Explain(ctx context.Context, seq uint64) (*host.Decision, error) {
	return s.m.Explain(ctx, seq)
}

// Remark returns what the user of a job should know of how it is watched.
func (s *Site) Remark(job sched.JobID) string {
	if d := s.m.driver.Load(); d != nil {
		return strings.TrimSpace(s.Astray()[job] + " " + d.Remark(job))
	}
	return ""
}

// Astray says, by job, which processes of it are on GPUs that it does not hold.
func (s *Site) Astray() map[sched.JobID]string { return s.m.astray() }

// Launched returns the command of an attempt as it was run, as its folder says.
func (s *Site) Launched(job sched.JobID, attempt int32) []string {
	o, err := shim.State(s.m.Dir()).RunDir(int32(job), attempt).Order()
	if err != nil {
		return nil
	}
	return o.Command
}

// Measure adds what the device back-end saw last.
func (s *Site) Measure(docs []api.GPU) {
	list := s.m.Devices()
	for g := range docs[:min(len(docs), len(list))] {
		measured(&docs[g], &list[g])
	}
}

// measured adds what was seen of a device.
func measured(doc *api.GPU, s *device.Status) {
	r := &s.Reading
	doc.Why = s.Why
	if r.UsedMiB >= 0 { // a slot's is not measured
		doc.OfMB = float64(s.MemoryGB) * 1024
	}
	doc.MemoryMB, doc.Use, doc.Watts = max(r.UsedMiB, 0), max(r.Use, 0), max(r.Watts, 0)
	doc.HeldIdle = s.HeldIdle(&device.DefaultRule)
	if len(r.Processes) > 0 {
		doc.By = s.By()
	}
}
