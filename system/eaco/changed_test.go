package eaco_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/memory"
	"github.com/trainyard/trainyard/model/interference"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system/eaco"
)

// careful is a Decider that is asked before each decision of which jobs it remembers something else; all are saved.
type careful struct {
	sched.Decider
	saved map[sched.JobID][]byte
	named []sched.JobID // by events since
	found *tally
}

// tally is what came of it.
type tally struct {
	alone int // shares that changed though no event named their job
	left  []sched.JobID
}

func (c *careful) Observe(v *sched.View, e *sched.Event) {
	c.named = append(c.named, e.Job)
	c.Decider.Observe(v, e)
}

func (c *careful) Decide(v *sched.View, out *sched.Desired) {
	list, known := memory.Changed(nil, []sched.Memory{c.Decider})
	for j := range v.Jobs {
		id := sched.JobID(j)
		b := c.SaveJob(id, nil)
		if known && !bytes.Equal(b, c.saved[id]) && !slices.Contains(c.named, id) {
			c.found.alone++
			if !slices.Contains(list, id) {
				c.found.left = append(c.found.left, id)
			}
		}
		c.saved[id] = b
	}
	c.named = c.named[:0]
	c.Decider.Decide(v, out)
}

// Ensure that in random worlds in which jobs share GPUs, EaCO and pairs name all jobs of which they remember something
// else without an event that does.
func TestChangedLeavesNoSharerOut(t *testing.T) {
	for name, build := range map[string]func(eaco.Known) (sched.Decider, error){
		"eaco": func(k eaco.Known) (sched.Decider, error) {
			return eaco.New(eaco.Params{Known: k, Slow: 1.2})
		},
		"gandiva": func(k eaco.Known) (sched.Decider, error) {
			return eaco.NewPairs(k, eaco.Gandiva, 1, 0, nil)
		},
	} {
		found := &tally{}
		for seed := range uint64(60) {
			drawn(seed, 0.1).run(t, func(k eaco.Known) (sched.Decider, error) {
				d, err := build(k)
				return &careful{Decider: d, saved: make(map[sched.JobID][]byte), found: found}, err
			}, interference.NewLearner(&interference.History{}))
			if len(found.left) > 0 {
				t.Fatalf("%s, seed %d: %v are left out", name, seed, found.left)
			}
		}
		if found.alone == 0 {
			t.Errorf("%s: in no world is there one to be named", name)
		}
	}
}
