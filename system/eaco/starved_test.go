package eaco_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/model/footprint"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system/eaco"
)

// crowd is jobs on one node whose memory grows to peaks that not all of them state.
type crowd struct {
	*still
	r     *rand.Rand
	d     sched.Decider
	peaks *footprint.Peaks
	has   []float64 // by job: now
	peak  []float64
	gone  map[string]int // how often a job was starved, or taken off, next to the same jobs
	t     testing.TB
}

// newCrowd returns a random one.
func newCrowd(t testing.TB, seed uint64, build func(k eaco.Known) (sched.Decider, error)) *crowd {
	rows, c := tables(t), &crowd{still: newStill(1), r: rand.New(rand.NewPCG(seed, 11)), peaks: footprint.New(),
		gone: make(map[string]int), t: t}
	models := []string{"AlexNet", "VGG-16", "ResNet-18", "ResNet-50"}
	for range 3 + c.r.IntN(6) {
		spec := c.view.Jobs[c.add(job(rows, models[c.r.IntN(4)], 0), -1)].Spec
		peak := 10 + 70*c.r.Float64()
		spec.GPUMemGB, spec.Util = float32(peak), 0.1
		if c.r.IntN(2) == 0 {
			spec.GPUMemGB = float32(peak * c.r.Float64())
		}
		c.has, c.peak = append(c.has, 0), append(c.peak, peak)
	}
	d, err := build(eaco.Known{Work: c, Learner: seeded(t, rows), Peaks: c.peaks})
	if err != nil {
		t.Fatal(err)
	}
	c.d = d
	d.(sched.Resumer).Resume(&c.view)
	return c
}

// see has all that learn see an event.
func (c *crowd) see(e sched.Event) {
	e.Time = c.view.Now
	c.peaks.Observe(&c.view, &e)
	c.d.Observe(&c.view, &e)
}

func (c *crowd) measure(id sched.JobID) {
	c.see(sched.Event{Kind: sched.Measured, Job: id, MemGB: float32(c.has[id]), Rate: .5})
}

// up returns the jobs that run.
func (c *crowd) up() (list []sched.JobID) {
	for id := range c.view.Jobs {
		if c.view.Jobs[id].Up {
			list = append(list, sched.JobID(id))
		}
	}
	return list
}

// off takes a job off its GPUs: it is done, or waits.
func (c *crowd) off(id sched.JobID, o sched.Outcome) {
	j := &c.view.Jobs[id]
	j.State, j.Config, j.Target, j.GPUs, j.Attempt, j.Up, j.Trial = sched.Waiting, sched.Config{}, nil, nil,
		sched.Ended, false, false
	if o == sched.Finished {
		j.State, j.Outcome = sched.Done, o
	}
	c.has[id] = 0
	c.see(sched.Event{Kind: sched.AttemptEnded, Job: id, Attempt: j.Attempts, Outcome: o})
}

// parted notes that a job was taken from others, and fails the test if it was from the same before.
func (c *crowd) parted(id sched.JobID, others []sched.JobID, how string) {
	others = slices.DeleteFunc(slices.Clone(others), func(o sched.JobID) bool { return o == id })
	key := fmt.Sprint(id, others)
	if c.gone[key]++; c.gone[key] > 1 {
		c.t.Errorf("job %d was %s next to %v again", id, how, others)
	}
}

// decide has what is decided done at once. Trials succeed.
func (c *crowd) decide() {
	var out sched.Desired
	c.d.Decide(&c.view, &out)
	for i := range out.Jobs {
		x := &out.Jobs[i]
		j := &c.view.Jobs[x.Job]
		if len(out.Set(x)) == 0 {
			c.parted(x.Job, c.up(), "taken off")
			c.off(x.Job, sched.Preempted)
			continue
		}
		j.State, j.Attempt, j.Attempts, j.Rate, j.Up, j.Config = sched.Active, sched.Running, j.Attempts+1, 1, true,
			x.Config
		j.Target = slices.Clone(out.Set(x))
		j.GPUs, j.Live = j.Target, j.Config
		c.see(sched.Event{Kind: sched.Decided, Job: x.Job})
	}
}

// grow has a job take more memory. Where there is none, one that keeps to its figure is starved by who does not, and
// that is heard of at once, as package local has it.
func (c *crowd) grow(id sched.JobID) {
	c.has[id] = min(c.peak[id], c.has[id]+c.peak[id]*c.r.Float64())
	all := 0.0
	for _, o := range c.up() {
		all += c.has[o]
	}
	if all <= nodeGB {
		return
	}
	up, victim, greedy := c.up(), sched.JobID(sched.None), false
	for _, o := range up {
		switch stated := float64(c.view.Jobs[o].Spec.GPUMemGB); {
		case c.has[o] > stated*footprint.Margin:
			greedy = true
		default:
			victim = o
		}
	}
	if victim == sched.None || !greedy {
		c.off(id, sched.Finished) // it fails for good
		return
	}
	c.parted(victim, up, "starved")
	for _, o := range up {
		if o != victim {
			c.measure(o)
		}
	}
	c.off(victim, sched.NodeLost)
}

// Ensure that in random histories of jobs whose memory grows, measured now and then, no job is starved or taken off
// twice next to the same jobs, and that all jobs end.
func TestNoStarvationLoop(t *testing.T) {
	for name, build := range map[string]func(k eaco.Known) (sched.Decider, error){
		"eaco": func(k eaco.Known) (sched.Decider, error) {
			return eaco.New(eaco.Params{Known: k, Slow: 100, Use: 1, Memory: 1})
		},
		"gandiva": func(k eaco.Known) (sched.Decider, error) { return eaco.NewPairs(k, eaco.Gandiva, 0, 0, nil) },
	} {
		parted := 0
		for seed := range uint64(300) {
			c := newCrowd(t, seed, build)
			for step := 0; ; step++ {
				c.decide()
				up := c.up()
				if len(up) == 0 {
					break
				}
				c.view.Now += hour / 60
				switch id := up[c.r.IntN(len(up))]; c.r.IntN(6) {
				case 0:
					c.measure(id)
				case 1:
					c.off(id, sched.Finished)
				default:
					c.grow(id)
				}
				if step == 1000 {
					t.Fatalf("%s: seed %d: it does not end", name, seed)
				}
			}
			for id := range c.view.Jobs {
				if c.view.Jobs[id].State != sched.Done {
					t.Errorf("%s: seed %d: job %d is left", name, seed, id)
				}
			}
			parted += len(c.gone)
		}
		if t.Logf("%s: %d times taken off or starved", name, parted); parted < 20 {
			t.Errorf("%s: %d times taken off or starved: too few to say anything", name, parted)
		}
	}
}
