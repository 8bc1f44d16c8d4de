package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/api/site"
	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/sched"
)

// commander does the same with several jobs.
type commander struct{ s *Server }

type commandsInput struct{ Body api.Commanding }

// Limits of what is done with several jobs.
const (
	commandsAtOnce = 16   // where it is no batch
	mostWritten    = 1000 // jobs for which the engine is held up at a time
)

// meant is the job that a name means, or why nothing may be done with it.
type meant struct {
	id    sched.JobID
	wrong error
}

// all has the same done with several jobs, once with each, and says of each how it stands then, or why nothing was
// done.
func (m commander) all(ctx context.Context, in *commandsInput) (api.Commanded, error) {
	who := callerOf(ctx)
	if who.seen != "" {
		return api.Commanded{}, fmt.Errorf("%w: If-Match, want a request about one job with it", api.ErrMalformed)
	}
	owners, err := m.owners(ctx)
	if err != nil {
		return api.Commanded{}, err
	}
	found := make(map[string]meant)
	at := make(map[sched.JobID]int)
	var jobs []sched.JobID // each once, without those that are refused
	for _, name := range in.Body.Jobs {
		one, known := found[name]
		if known {
			continue
		}
		one.id, one.wrong = m.mayCommand(ctx, &who, in.Body.Command, name, owners)
		found[name] = one
		if _, twice := at[one.id]; one.wrong == nil && !twice {
			at[one.id], jobs = len(jobs), append(jobs, one.id)
		}
	}
	refused, err := m.carryOut(ctx, who.who, jobs, commands[in.Body.Command])
	if err != nil {
		return api.Commanded{}, err
	}
	list := make([]meant, len(in.Body.Jobs))
	for i, name := range in.Body.Jobs {
		list[i] = found[name]
		if one := &list[i]; one.wrong == nil && refused[at[one.id]] != nil {
			one.wrong = fmt.Errorf("job %q: %w", name, refused[at[one.id]])
		}
	}
	return m.commanded(ctx, list, in.Body.Command == "cancel")
}

// owners returns whose the jobs are, by number.
func (m commander) owners(ctx context.Context) (list []string, err error) {
	err = m.s.o.Host.Look(ctx, func(v *sched.View) {
		list = make([]string, len(v.Jobs))
		for id := range v.Jobs {
			list[id] = v.Jobs[id].Spec.User
		}
	})
	return list, err
}

// mayCommand returns the job that a name means, or why nothing may be done with it.
func (m commander) mayCommand(ctx context.Context, who *caller, operation, name string, owners []string) (sched.JobID,
	error) {
	if instead, missing := m.s.missing(operation); missing {
		return sched.None, api.NotHere(operation, instead)
	}
	id, err := m.s.find(ctx, name)
	if err != nil {
		return sched.None, err
	}
	owner := func(ctx context.Context) (string, error) {
		if int(id) < len(owners) {
			return owners[id], nil
		}
		return m.s.ownerOf(ctx, id)
	}
	right := site.Right{Operation: operation, Least: api.User, Own: true, Job: id, Owner: owner}
	if refused := m.s.o.Site.May(ctx, who.who, right); refused != nil {
		return id, refused
	}
	one := *who
	one.job = id
	return id, m.s.sole(ctx, &one, name)
}

// carryOut does the same with several jobs: in one batch where that can be, else with some at a time, until the time is
// over.
func (m commander) carryOut(ctx context.Context, who api.Who, jobs []sched.JobID, c sched.Command) ([]error, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	if all, able := m.s.o.Site.(Commander); able {
		return all.CommandAll(ctx, jobs, c)
	}
	refused := make([]error, len(jobs))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(commandsAtOnce, len(jobs)) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(jobs)); i = next.Add(1) - 1 {
				if refused[i] = ctx.Err(); refused[i] == nil {
					refused[i] = m.s.o.Site.Command(ctx, who, jobs[i], c)
				}
			}
		})
	}
	workers.Wait()
	return refused, nil
}

// commanded says of each job how it stands, or why nothing was done with it, even if the time of the request is over:
// much may have been done. One that is cancelled already is no error of who cancels it.
func (m commander) commanded(ctx context.Context, list []meant, ends bool) (doc api.Commanded, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), api.Patience)
	defer cancel()
	doc = api.Commanded{Schema: "trainyard.commanded/v1", Jobs: make([]api.CommandedJob, len(list))}
	for i := range list {
		row, _, _ := m.s.o.Host.Board().Row(list[i].id)
		if ends && row.Cancelled && errors.Is(list[i].wrong, host.ErrDone) {
			list[i].wrong = nil
		}
	}
	written := make(map[sched.JobID]*api.Job)
	for from := 0; from < len(list) && err == nil; from += mostWritten {
		err = m.s.o.Host.Look(ctx, func(v *sched.View) {
			x := m.s.writer(v)
			for i := from; i < min(from+mostWritten, len(list)); i++ {
				if id := list[i].id; list[i].wrong == nil && int(id) < len(v.Jobs) {
					if written[id] == nil {
						job := x.job(id)
						written[id] = &job
					}
					doc.Jobs[i].Job = written[id]
				}
			}
		})
	}
	if err != nil {
		return api.Commanded{}, err
	}
	for i := range list {
		if p := (*api.Problem)(nil); doc.Jobs[i].Job == nil {
			errors.As(problemOf(cmp.Or(list[i].wrong, host.ErrNoJob)), &p)
			doc.Jobs[i].Problem = p
		}
	}
	return doc, nil
}
