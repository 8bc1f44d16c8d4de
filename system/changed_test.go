package system_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/memory"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
)

// careful is a sink that asks a Decider after each batch of which jobs it remembers something else, and saves all.
type careful struct {
	sched.Memory

	v     *sched.View
	saved map[sched.JobID][]byte
	known int           // batches of which it could say it
	left  []sched.JobID // jobs that it left out, though no event of the batch named them
	named []sched.JobID
}

func (c *careful) Log(v *sched.View, e *sched.Event) { c.v, c.named = v, append(c.named, e.Job) }

func (c *careful) BeginBatch() { c.named = c.named[:0] }

func (c *careful) EndBatch() error {
	list, known := memory.Changed(nil, []sched.Memory{c.Memory})
	if known {
		c.known++
	}
	for j := range c.v.Jobs {
		id := sched.JobID(j)
		b := c.SaveJob(id, nil)
		if known && !bytes.Equal(b, c.saved[id]) && !slices.Contains(list, id) && !slices.Contains(c.named, id) {
			c.left = append(c.left, id)
		}
		c.saved[id] = b
	}
	return nil
}

// Ensure that every system says of which jobs it remembers something else, leaves none out that no event named, and
// goes on as if it were not asked.
func TestChangedLeavesNoJobOut(t *testing.T) {
	tr := small()
	for _, info := range system.Table() {
		want, _ := run(t, &info, tr, nil)
		c := &careful{saved: make(map[sched.JobID][]byte)}
		got, _ := run(t, &info, tr, nil, func(d sched.Decider) eventlog.Sink {
			c.Memory = d
			return c
		})
		switch {
		case got != want:
			t.Errorf("%s decides otherwise when it is asked", info.Name)
		case len(c.left) > 0:
			t.Errorf("%s leaves out %v", info.Name, c.left)
		case c.known == 0:
			t.Errorf("%s never says it", info.Name)
		}
	}
}

// Ensure that what worth remembers is refused as a whole where a part of it is of another version, by the names of
// both.
func TestWorthRefusesMemoryOfAnotherVersion(t *testing.T) {
	info, err := system.Named("worth")
	if err != nil {
		t.Fatal(err)
	}
	c := &careful{saved: make(map[sched.JobID][]byte)}
	run(t, info, small(), nil, func(d sched.Decider) eventlog.Sink {
		c.Memory = d
		return c
	})
	saved := memory.Save(c.v, c.Memory)
	if !bytes.Contains(saved.Rest, []byte("clear/1")) {
		t.Fatalf("%q has no prices", saved.Rest)
	}
	saved.Rest = bytes.ReplaceAll(saved.Rest, []byte("clear/1"), []byte("clear/9"))
	fresh, err := info.Build(allKnown(), key.NewSettings(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = `found memory of "clear/9", want that of clear/1`
	if err := saved.Load(c.v, fresh.Decider); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}
