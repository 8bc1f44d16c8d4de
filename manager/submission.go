package manager

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/api/site"
	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/manager/jobfile"
	"github.com/trainyard/trainyard/sched"
)

// smallFile is how many bytes of a job file are read next to others: its tree takes some 400 times as much memory.
const smallFile = 4 << 10

// Read returns the jobs of a submission. Who is no Admin submits them as himself.
func (s *Site) Read(ctx context.Context, who api.Who, in *api.Submission) (site.Batch, error) {
	jobs, err := s.parse(ctx, in)
	if err != nil {
		return nil, err
	}
	if bad := cmp.Or(checkInherit(jobs, in.Inherit), CheckOutputs(jobs), s.m.o.fitsMachine(jobs)); bad != nil {
		return nil, bad
	}
	for i := range jobs {
		spec := &jobs[i].Spec
		if spec.User == "" {
			spec.User = who.Name
		}
		if spec.User != who.Name && who.Role < api.Admin {
			return nil, api.Refusal(http.StatusForbidden, "job %s is one of %s, and you are %s", spec.Name, spec.User,
				who.Name)
		}
		if bad := s.MayRank(who, spec.Priority); bad != nil {
			return nil, fmt.Errorf("job %s: %w", spec.Name, bad)
		}
		if jobs[i].Inherit {
			continue // it has them already, and they are in no log
		}
		if bad := inherit(&jobs[i].Task, in.Env); bad != nil {
			return nil, fmt.Errorf("%w: job %s: %w", api.ErrMalformed, spec.Name, bad)
		}
	}
	scripts, err := readScripts(jobs, in.Scripts)
	if err != nil {
		return nil, err
	}
	return &batch{m: s.m, jobs: jobs, env: in.Inherit, scripts: scripts, user: who.Name, content: digest(in),
		paused: in.Paused}, nil
}

// digest is short for what is submitted: two submissions alike in it are the same jobs. The shell's environment is no
// part of it: who asks again may ask from another one.
func digest(in *api.Submission) string {
	what := []any{in.File, in.Dir, in.Env}
	if in.Paused {
		what = append(what, "paused")
	}
	b, _ := json.Marshal(what) // text alone
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// parse reads the job file of a submission.
func (s *Site) parse(ctx context.Context, in *api.Submission) ([]jobfile.Job, error) {
	name := in.Name
	if name == "" {
		name = "jobs.yaml"
	}
	switch {
	case filepath.Base(name) != name || name == "." || name == "..":
		return nil, fmt.Errorf("%w: name %q, want that of a file without its folder", api.ErrMalformed, name)
	case task.CheckDir(in.Dir) != nil:
		return nil, fmt.Errorf("%w: %w", api.ErrMalformed, task.CheckDir(in.Dir))
	}
	if len(in.File) > smallFile {
		select {
		case s.parsing <- struct{}{}:
			defer func() { <-s.parsing }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	jobs, err := jobfile.ParseJobs([]byte(in.File), filepath.Join(in.Dir, name))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", api.ErrMalformed, err)
	}
	return jobs, nil
}

// inherit gives a task those of the submitter's variables that it does not set itself.
func inherit(t *task.Task, env map[string]string) error {
	if len(env) == 0 {
		return nil
	}
	all := maps.Clone(env)
	maps.Copy(all, t.Env)
	t.Env = all
	return t.Validate()
}

// batch are the jobs of one submission.
type batch struct {
	m             *Manager
	jobs          []jobfile.Job
	env           map[string]string // that those inherit which are to
	scripts       map[string]string // that they run, by path
	user, content string            // who asks, and what for
	paused        bool              // from the start
}

// Names are those of the jobs.
func (b *batch) Names() []string {
	names := make([]string, len(b.jobs))
	for i := range b.jobs {
		names[i] = b.jobs[i].Spec.Name
	}
	return names
}

// Plan returns when the jobs would start and end if they were submitted now.
func (b *batch) Plan(ctx context.Context) (*explain.Forecast, sched.JobID, error) {
	return b.m.Plan(ctx, b.jobs)
}

// Submit submits the jobs.
func (b *batch) Submit(ctx context.Context) ([]site.Accepted, error) { return b.SubmitOnce(ctx, "") }

// SubmitOnce submits the jobs unless they were under that key of the one who asks; "" = under none.
func (b *batch) SubmitOnce(ctx context.Context, key string) ([]site.Accepted, error) {
	done, err := b.m.scripts.keep(ctx, b.m.Dir(), b.jobs, b.scripts)
	defer done()
	if err == nil {
		err = b.m.inherit.give(b.m.Dir(), b.jobs, b.env)
	}
	if err != nil {
		b.m.room.look() // a full disk has an error of its own
		return nil, cmp.Or(b.m.room.refuse(), err)
	}
	first, err := b.m.Submit(ctx, b.jobs, host.Submitting{Once: host.Once{User: b.user, Key: key, Content: b.content},
		Paused: b.paused})
	if err != nil {
		return nil, err
	}
	list := make([]site.Accepted, len(b.jobs))
	for i := range list {
		list[i].ID = first + sched.JobID(i)
	}
	return list, nil
}
