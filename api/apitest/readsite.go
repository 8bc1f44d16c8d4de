package apitest

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/api/site"
	"github.com/trainyard/trainyard/sched"
)

// ReadSite is the Site of a cluster whose host answers how jobs and nodes stand, and nothing else, to whoever bears the
// token root over the loopback. Jobs are NAMESPACE.NAME.
type ReadSite struct{}

var _ site.Site = ReadSite{}

// Known takes the loopback.
func (ReadSite) Known(_ *http.Request, name string) bool { return name == "127.0.0.1" }

// Identify knows root.
func (ReadSite) Identify(r *http.Request) (api.Who, func() bool) {
	if r.Header.Get("Authorization") != "Bearer root" {
		return api.Who{}, nil
	}
	return api.Who{Name: "root", Role: api.Admin}, func() bool { return true }
}

// Hint asks for a token.
func (ReadSite) Hint(*http.Request) string { return "want a token of the cluster" }

// May allows all that there is.
func (ReadSite) May(context.Context, api.Who, site.Right) error { return nil }

// Kind is a cluster.
func (ReadSite) Kind() string { return api.Cluster }

// Unit is a GPU.
func (ReadSite) Unit() string { return "GPU" }

// Widest is as wide as clusters get.
func (ReadSite) Widest() int { return 1 << 20 }

// Split takes NAMESPACE.NAME. A text without a dot names nothing.
func (ReadSite) Split(text string) (owner, name string) {
	owner, name, _ = strings.Cut(text, ".")
	return owner, name
}

// Ref is NAMESPACE.NAME.
func (ReadSite) Ref(_ sched.JobID, spec *sched.JobSpec) string { return spec.User + "." + spec.Name }

// Expected is false: a job without a number is none.
func (ReadSite) Expected(string) bool { return false }

// Describe adds nothing.
func (ReadSite) Describe(*api.Info) {}

// Ready says that this process leads.
func (ReadSite) Ready() error { return nil }

// Missing is all that changes something, and what takes a log or outputs.
func (ReadSite) Missing(operation string) (instead string, missing bool) {
	switch operation {
	case "openapi", "metrics", "info", "nodes", "jobs", "job", "wait", "why":
		return "", false
	}
	return "kubectl", true
}

// Measure adds nothing.
func (ReadSite) Measure([]api.GPU) {}

// Redact leaves lines as they are.
func (ReadSite) Redact(line []byte) []byte { return line }

// Read takes no jobs.
func (ReadSite) Read(context.Context, api.Who, *api.Submission) (site.Batch, error) {
	return nil, api.ErrNotHere
}

// Command does nothing.
func (ReadSite) Command(context.Context, api.Who, sched.JobID, sched.Command) error {
	return api.ErrNotHere
}

// Change does nothing.
func (ReadSite) Change(context.Context, api.Who, sched.JobID, func(*sched.JobChange)) error {
	return api.ErrNotHere
}

// Drain does nothing.
func (ReadSite) Drain(context.Context, api.Who, []sched.NodeID, bool) error { return api.ErrNotHere }

// DrainGPUs does nothing.
func (ReadSite) DrainGPUs(context.Context, api.Who, []sched.GPUID, bool) error { return api.ErrNotHere }

// Open has no output.
func (ReadSite) Open(context.Context, site.Source) (site.Output, error) { return nil, api.ErrNotHere }

// Last is not known.
func (ReadSite) Last(site.Source) (time.Time, bool) { return time.Time{}, false }

// Tail has no lines.
func (ReadSite) Tail(sched.JobID, int32, int) []string { return nil }

// Place is none.
func (ReadSite) Place(string) error { return api.ErrMalformed }
