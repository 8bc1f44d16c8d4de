package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/api/site"
	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/sched"
)

// commander does the same with several jobs.
type commander struct{ s *Server }

type commandsInput struct{ Body api.Commanding }

// all has the same done with several jobs, and says of each how it stands then, or why nothing was done.
func (m commander) all(ctx context.Context, in *commandsInput) (api.Commanded, error) {
	who := callerOf(ctx)
	if who.seen != "" {
		return api.Commanded{}, fmt.Errorf("%w: If-Match, want a request about one job with it", api.ErrMalformed)
	}
	names := in.Body.Jobs
	wrong := make([]error, len(names))
	ids := make([]sched.JobID, len(names))
	owners, err := m.owners(ctx)
	if err != nil {
		return api.Commanded{}, err
	}
	var jobs []sched.JobID // without those that are refused
	for i, name := range names {
		if ids[i], wrong[i] = m.mayCommand(ctx, &who, in.Body.Command, name, owners); wrong[i] == nil {
			jobs = append(jobs, ids[i])
		}
	}
	refused, err := m.carryOut(ctx, who.who, jobs, commands[in.Body.Command])
	if err != nil {
		return api.Commanded{}, err
	}
	for i := range names {
		if wrong[i] == nil {
			if wrong[i], refused = refused[0], refused[1:]; wrong[i] != nil {
				wrong[i] = fmt.Errorf("job %q: %w", names[i], wrong[i])
			}
		}
	}
	return m.commanded(ctx, names, ids, wrong, in.Body.Command == "cancel")
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

// carryOut does the same with several jobs: in one batch where that can be.
func (m commander) carryOut(ctx context.Context, who api.Who, jobs []sched.JobID, c sched.Command) ([]error, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	if all, able := m.s.o.Site.(Commander); able {
		return all.CommandAll(ctx, jobs, c)
	}
	refused := make([]error, len(jobs))
	for i, id := range jobs {
		refused[i] = m.s.o.Site.Command(ctx, who, id, c)
	}
	return refused, nil
}

// commanded says of each job how it stands, or why nothing was done with it. One that is cancelled already is no error
// of who cancels it.
func (m commander) commanded(ctx context.Context, names []string, ids []sched.JobID, wrong []error, ends bool) (
	doc api.Commanded, err error) {
	doc = api.Commanded{Schema: "trainyard.commanded/v1", Jobs: make([]api.CommandedJob, len(names))}
	err = m.s.o.Host.Look(ctx, func(v *sched.View) {
		x := m.s.writer(v)
		for i, id := range ids {
			if row, _, _ := m.s.o.Host.Board().Row(id); ends && row.Cancelled && errors.Is(wrong[i], host.ErrDone) {
				wrong[i] = nil
			}
			if wrong[i] == nil && int(id) < len(v.Jobs) {
				job := x.job(id)
				doc.Jobs[i].Job = &job
				continue
			}
			p := (*api.Problem)(nil)
			if wrong[i] = problemOf(wrong[i]); errors.As(wrong[i], &p) {
				doc.Jobs[i].Problem = p
			}
		}
	})
	return doc, err
}
