package restart

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/trainyard/trainyard/internal/memo"
	"github.com/trainyard/trainyard/sched"
)

// Format names what Save writes.
func (*Costs) Format() string { return "restart-costs/1" }

// SaveJob appends what the attempt of job j does and since when, nothing if nothing is awaited of it.
func (c *Costs) SaveJob(j sched.JobID, b []byte) []byte {
	p := c.phase(j)
	if p.doing == running {
		return b
	}
	return memo.Uint(memo.Uint(memo.Uint(b, uint64(p.doing)), uint64(p.since)), uint64(p.work))
}

// LoadJob takes what SaveJob wrote.
func (c *Costs) LoadJob(j sched.JobID, b []byte) error {
	r := memo.NewReader(b)
	p := phase{doing(r.Uint(uint64(doings) - 1)), sched.Time(r.Uint(math.MaxInt64)),
		time.Duration(r.Uint(math.MaxInt64))}
	r.Want(p.doing != running, "of an attempt of which nothing is awaited")
	if err := r.End(); err != nil {
		return memoryError(err)
	}
	c.enter(j, p)
	return nil
}

// SaveRest appends what is known of all models, then of each by name.
func (c *Costs) SaveRest(b []byte) []byte {
	b = c.all.save(b)
	b = memo.Uint(b, uint64(len(c.models)))
	for _, name := range slices.Sorted(maps.Keys(c.models)) {
		b = c.models[name].save(memo.Text(b, name))
	}
	return b
}

func (x *cost) save(b []byte) []byte {
	for _, t := range []times{x.up, x.step, x.stop} {
		b = memo.Uint(b, uint64(len(t)))
		for _, d := range t {
			b = memo.Uint(b, uint64(d))
		}
	}
	return b
}

// LoadRest takes what SaveRest wrote. On error all stays as it was.
func (c *Costs) LoadRest(b []byte) error {
	r, all, models := memo.NewReader(b), cost{}, make(map[string]*cost)
	all.load(r)
	for range r.Uint(maxModels) {
		name, x := r.Text(), &cost{}
		x.load(r)
		r.Want(models[name] == nil, "model %.80q twice", name)
		models[name] = x
	}
	if err := r.End(); err != nil {
		return memoryError(err)
	}
	c.all, c.models = all, models
	return nil
}

// Format names what Save writes.
func (*Guard) Format() string { return "guard/1" }

// SaveJob appends when job j was stopped.
func (g *Guard) SaveJob(j sched.JobID, b []byte) []byte {
	if int(j) < len(g.stopped) {
		for _, t := range g.stopped[j] {
			b = memo.Uint(b, uint64(t))
		}
	}
	return b
}

// LoadJob takes what SaveJob wrote.
func (g *Guard) LoadJob(j sched.JobID, b []byte) error {
	var stopped []sched.Time
	r := memo.NewReader(b)
	for r.Len() > 0 && r.Err() == nil {
		stopped = append(stopped, sched.Time(r.Uint(math.MaxInt64)))
	}
	r.Want(len(stopped) > 0 && len(stopped) <= g.PerHour && slices.IsSorted(stopped),
		"%d times of stops, want 1 to %d that rise", len(stopped), g.PerHour)
	if err := r.End(); err != nil {
		return memoryError(err)
	}
	for int(j) >= len(g.stopped) {
		g.stopped = append(g.stopped, nil)
	}
	g.stopped[j] = stopped
	return nil
}

// SaveRest writes nothing: all is about jobs.
func (g *Guard) SaveRest(b []byte) []byte { return b }

// LoadRest reads nothing.
func (g *Guard) LoadRest(b []byte) error {
	return memoryError(memo.NewReader(b).End())
}

// load reads what save wrote.
func (x *cost) load(r *memo.Reader) {
	for _, t := range []*times{&x.up, &x.step, &x.stop} {
		for range r.Uint(newest) {
			*t = append(*t, time.Duration(r.Uint(math.MaxInt64)))
		}
	}
}

// memoryError says what is wrong with what was saved, nil if nothing is.
func memoryError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("restart: memory: %w", err)
}
