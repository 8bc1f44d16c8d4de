package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
)

// comparison is what is asked, and what came of it.
type comparison struct {
	Budget float64 `json:"budget_slots"`
	Load   float64 `json:"load"`
	Slots  int     `json:"slots"`
	Seed   uint64  `json:"seed"`
	Rows   []row   `json:"rows"` // boa first

	jobs     int
	size     float64
	step     time.Duration
	trainer  string // path
	dir      string // for all that is written
	arrivals []arrival
}

// row is a system's run and its simulation.
type row struct {
	Name      string  `json:"system"`
	Overhead  float64 `json:"overhead_s"` // of a start and an end, measured before the run and after it
	Real      figures `json:"real"`
	Simulated figures `json:"simulated"`
	JCTError  float64 `json:"jct_error"` // simulated over real, less 1
	SlotError float64 `json:"slot_error"`
}

// figures are what a run comes to.
type figures struct {
	JCT         float64 `json:"avg_jct_s"`
	SlotSeconds float64 `json:"slot_seconds"`
	Slots       float64 `json:"slots"` // on average
	Makespan    float64 `json:"makespan_s"`
	Resizes     int64   `json:"resizes"`
}

func figuresOf(r *metrics.Result) figures {
	return figures{JCT: r.AvgJCT, SlotSeconds: r.AvgRentedGPUs * r.Makespan, Slots: r.AvgRentedGPUs,
		Makespan: r.Makespan, Resizes: r.Resizes}
}

// kinds are what is trained, by name; sizes are shares of --size.
var kinds = []struct {
	name     string
	parallel float64
	size     float64
	asks     int // slots
}{{"wide", .95, 1, 4}, {"narrow", .6, .5, 2}}

// arrival is a job: of which kind, and when it comes.
type arrival struct {
	kind int
	at   time.Duration
}

// apps are the kinds as they truly are.
func (c *comparison) apps() map[string]speedup.App {
	apps := make(map[string]speedup.App)
	for i, k := range kinds {
		apps[k.name] = speedup.Stages{{Size: float64(c.steps(i)) * c.step.Seconds(),
			Law: speedup.Amdahl{Parallel: k.parallel}}}
	}
	return apps
}

// steps returns the steps of a kind.
func (c *comparison) steps(kind int) int {
	return max(int(math.Round(kinds[kind].size*c.size/c.step.Seconds())), 1)
}

// rate returns how many jobs of each kind arrive per second.
func (c *comparison) rate() float64 {
	work := 0.
	for i := range kinds {
		work += float64(c.steps(i)) * c.step.Seconds()
	}
	return c.Load * c.Budget / work
}

// mix is what BOA gets to know of arrivals.
func (c *comparison) mix(apps map[string]speedup.App) (mix []speedup.Class) {
	for _, k := range kinds {
		mix = append(mix, speedup.Class{Model: k.name, Rate: c.rate(),
			Chain: speedup.ChainOf(apps[k.name], 1, c.Slots, sched.BatchRange{})})
	}
	return mix
}

// draw draws the jobs: as many of each kind, in random order, whose arrivals are those of a Poisson process.
func (c *comparison) draw() {
	r := rand.New(rand.NewPCG(c.Seed, 20))
	at := 0.
	for i := range c.jobs {
		c.arrivals = append(c.arrivals, arrival{kind: i % len(kinds), at: time.Duration(at*1e3) * time.Millisecond})
		at += r.ExpFloat64() / (c.rate() * float64(len(kinds)))
	}
	r.Shuffle(c.jobs, func(i, j int) {
		c.arrivals[i].kind, c.arrivals[j].kind = c.arrivals[j].kind, c.arrivals[i].kind
	})
}

// compare fills in the rows. What a start and an end cost is measured between the runs, as what else the machine does
// changes.
func (c *comparison) compare(ctx context.Context) error {
	c.draw()
	before, err := c.calibrate(ctx, 0)
	if err != nil {
		return err
	}
	for i, s := range []struct {
		name, system string
		settings     map[string]string
	}{
		{"boa", "boa-exact", map[string]string{"information": "perfect"}},
		{"elastic", "elastic", map[string]string{"curves": "oracle", "horizon": "10"}},
		{"fifo", "fifo-skip", nil},
	} {
		reserved := 0
		if i > 0 {
			reserved = max(int(math.Round(c.Rows[0].Real.Slots)), 1)
		}
		r := row{Name: s.name}
		if r.Real, err = c.real(ctx, s.name, s.system, reserved, settings(before, s.settings)); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		after, failed := c.calibrate(ctx, i+1)
		if failed != nil {
			return failed
		}
		r.Overhead, before = (before+after)/2, after
		if r.Simulated, err = c.simulate(ctx, s.system, reserved, settings(r.Overhead, s.settings)); err != nil {
			return fmt.Errorf("%s, simulated: %w", s.name, err)
		}
		r.JCTError, r.SlotError = r.Simulated.JCT/r.Real.JCT-1, r.Simulated.SlotSeconds/r.Real.SlotSeconds-1
		c.Rows = append(c.Rows, r)
	}
	return nil
}

// settings returns those of a system, with what restarts cost in seconds.
func settings(overhead float64, own map[string]string) map[string]string {
	all := map[string]string{"min_run": "0", "preempt_limit": "0",
		"restart_overhead": strconv.FormatFloat(overhead, 'f', 3, 64)}
	maps.Copy(all, own)
	return all
}
