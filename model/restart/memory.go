package restart

import (
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/trainyard/trainyard/sched"
)

var errMemory = errors.New("restart: memory is cut short, too long or out of range")

// Format names what Save writes.
func (*Costs) Format() string { return "restart-costs/1" }

// SaveJob appends what the attempt of job j does and since when, nothing if nothing is awaited of it.
func (c *Costs) SaveJob(j sched.JobID, b []byte) []byte {
	if int(j) >= len(c.jobs) || c.jobs[j].doing == running {
		return b
	}
	p := &c.jobs[j]
	b = binary.AppendUvarint(append(b, byte(p.doing)), uint64(p.since))
	return binary.AppendUvarint(b, uint64(p.work))
}

// LoadJob takes what SaveJob wrote.
func (c *Costs) LoadJob(j sched.JobID, b []byte) error {
	r := reader{b: b}
	p := phase{doing(r.number(uint64(doings) - 1)), sched.Time(r.number(math.MaxInt64)), time.Duration(r.number(math.MaxInt64))}
	if r.bad || len(r.b) > 0 || p.doing == running {
		return errMemory
	}
	*c.phase(j) = p
	return nil
}

// SaveRest appends what is known of all models, then of each by name.
func (c *Costs) SaveRest(b []byte) []byte {
	b = c.all.save(b)
	b = binary.AppendUvarint(b, uint64(len(c.models)))
	for _, name := range slices.Sorted(maps.Keys(c.models)) {
		b = append(binary.AppendUvarint(b, uint64(len(name))), name...)
		b = c.models[name].save(b)
	}
	return b
}

func (x *cost) save(b []byte) []byte {
	for _, t := range []times{x.up, x.step, x.stop} {
		b = binary.AppendUvarint(b, uint64(len(t)))
		for _, d := range t {
			b = binary.AppendUvarint(b, uint64(d))
		}
	}
	return b
}

// LoadRest takes what SaveRest wrote. On error all stays as it was.
func (c *Costs) LoadRest(b []byte) error {
	r := reader{b: b}
	all, models := r.cost(), make(map[string]*cost)
	for range r.number(maxModels) {
		name, x := r.text(), r.cost()
		if r.bad = r.bad || models[name] != nil; r.bad {
			break
		}
		models[name] = &x
	}
	if r.bad || len(r.b) > 0 {
		return errMemory
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
			b = binary.AppendUvarint(b, uint64(t))
		}
	}
	return b
}

// LoadJob takes what SaveJob wrote.
func (g *Guard) LoadJob(j sched.JobID, b []byte) error {
	r := reader{b: b}
	var stopped []sched.Time
	for len(r.b) > 0 && !r.bad {
		stopped = append(stopped, sched.Time(r.number(math.MaxInt64)))
	}
	if r.bad || len(stopped) == 0 || len(stopped) > g.PerHour || !slices.IsSorted(stopped) {
		return errMemory
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
	if len(b) > 0 {
		return errMemory
	}
	return nil
}

// reader cuts numbers off what was saved; once something is wrong it gives zeros.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) number(most uint64) uint64 {
	x, n := binary.Uvarint(r.b)
	if r.bad = r.bad || n <= 0 || x > most; r.bad {
		return 0
	}
	r.b = r.b[n:]
	return x
}

func (r *reader) text() string {
	n := r.number(uint64(len(r.b)))
	if r.bad = r.bad || n > uint64(len(r.b)); r.bad {
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

func (r *reader) cost() (x cost) {
	for _, t := range []*times{&x.up, &x.step, &x.stop} {
		for range r.number(newest) {
			*t = append(*t, time.Duration(r.number(math.MaxInt64)))
		}
	}
	return x
}
