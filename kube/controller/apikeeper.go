package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/kube/record"
	"github.com/trainyard/trainyard/sched"
)

// keeper is the host's store: what the API has. Each Load takes the lead. Where a controller looks on, nothing is
// written.
type keeper struct {
	batches // of the start

	c     *Controller
	l     *loaded // by the last Load
	store *store  // of the start
}

// batches is what makes batches durable, or only says what would be.
type batches interface {
	eventlog.Sink
	eventlog.Batcher
}

var (
	_ host.Store   = (*keeper)(nil)
	_ host.Starter = (*keeper)(nil)
)

// Load takes the lead and returns the state that earlier leaders left.
func (k *keeper) Load(ctx context.Context) (past host.Past, err error) {
	if k.l, err = k.c.load(ctx); err != nil {
		return past, err
	}
	return host.Past{Header: k.l.header, Renew: k.l.renewed, State: k.l.from}, nil
}

// system returns the system of the last Load: first the one that it was checked with, then others that know nothing
// yet.
func (k *keeper) system(*eventlog.Header) (dec sched.Decider, err error) {
	if dec, k.l.decider = k.l.decider, nil; dec != nil {
		return dec, nil
	}
	return k.l.build()
}

// Start writes what there is to be said of the policy, and has batches be written from now on.
func (k *keeper) Start(s *host.Start) error {
	l := k.l
	remarks := k.c.remarks(s.Context, &l.policy.Spec, l.nodes, s.Renewed)
	l.policy.Status.Message = message(remarks)
	if err := k.c.say(s.Context, l); err != nil {
		return err
	}
	k.store = k.c.newStore(s, l, remarks)
	k.batches = k.store
	if k.c.o.Observe {
		k.batches = &observer{log: k.c.o.Log, v: s.View, dec: s.Decider, origin: l.origin}
	}
	l.from, l.jobs, l.written, l.nodes = nil, nil, nil, nil // they may be large
	return nil
}

// newStore returns the store of a start.
func (c *Controller) newStore(s *host.Start, l *loaded, remarks []remark) *store {
	w := fencedWriter{ctx: s.Context, api: c.o.Client, reader: c.o.Reader, log: c.o.Log, space: c.o.Namespace,
		policy: l.policy,
		leader: l.policy.Status.Leader, held: c.o.Held, fatal: c.o.fatal, blobs: l.blobs}
	t := &store{fencedWriter: w, v: s.View, dec: s.Decider, mode: l.policy.Spec.Mode, clock: c.o.Clock,
		schema:  cmp.Or(c.o.RecordSchema, record.JobSchema),
		news:    news{report: c.o.report},
		remarks: remarks, rounds: rounds{every: c.o.every}, cluster: true,
		shards: newShards(s.View, cmp.Or(c.o.shardNodes, record.ShardNodes),
			cmp.Or(c.o.RecordSchema, record.JobSchema) < record.JobSchema, l.head, l.lost != ""),
		memory: remembered{side: l.side}, maxBlob: cmp.Or(c.o.maxBlob, maxBlob),
		jobs: make(map[sched.JobID]*saved, len(l.jobs))}
	for i := range l.jobs {
		id := l.jobs[i].ID
		w, j := l.written[id], &s.View.Jobs[id]
		t.jobs[id] = &saved{version: w.version, memory: w.memory, said: w.said, lost: w.lost,
			work: pace{j.Attempts, j.Work, j.WorkFrom, j.Rate},
			held: slices.Clone(j.GPUs), target: slices.Clone(j.Target), conditions: w.conditions, wait: waited(j),
			trouble: troubleOf(w.reason, j), hold: holdOf(w.reason, j),
			shown: shown{reason: w.reason}}
		if j.State != sched.Done {
			t.live = append(t.live, id)
		} else {
			t.jobs[id].lasting = w.reason
		}
		if l.jobs[i].Schema != t.schema { // who comes next may know this one alone
			t.touch(id)
		}
	}
	slices.Sort(t.live)
	return t
}

// Due is when a batch is wanted though nothing happens: for reasons that are reported again, and while anything is
// rented for what is spent.
func (k *keeper) Due() sched.Time {
	at := sched.Never
	if !k.c.o.Observe {
		at = k.store.wake()
	}
	v := k.store.v
	if slices.ContainsFunc(v.Pools, func(p sched.Pool) bool { return p.Nodes > 0 }) {
		at = min(at, v.Now+spendEvery)
	}
	return at
}

// whyHeld returns why a job is held; "": it is not.
func (k *keeper) whyHeld(id sched.JobID) string {
	if k.store == nil {
		return ""
	}
	return k.store.whyHeld(id)
}

// Close does nothing: the API stays.
func (k *keeper) Close() error { return nil }

// drive makes the driver of a start.
func (k *keeper) drive(s *host.Start) (host.Driver, error) {
	go k.c.watchFiles(s.Context, k.l.files, filesEvery, s.Stop)
	if !k.c.o.Observe {
		go k.c.removeDone(s.Context, k.l.policy.Spec.TTLAfterFinished)
	}
	d, err := k.c.o.Driver(k.l.setup(s.Context, s.Stop, k.store))
	if err != nil {
		return nil, fmt.Errorf("controller: %w", err)
	}
	return &joins{Driver: d, l: k.l, v: s.View, skipped: k.c.skipped}, nil
}
