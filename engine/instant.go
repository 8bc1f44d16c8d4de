package engine

import (
	"errors"
	"fmt"
	"strings"

	"github.com/trainyard/trainyard/sched"
)

// mostAtOnce is how many decisions in a row may change targets while no time passes. Systems settle within a few; one
// that does not would go on for ever.
const mostAtOnce = 10_000

// instant counts the decisions of one instant that changed something.
type instant struct {
	at      sched.Time
	count   int
	changed []sched.JobID // by the last of them
}

// begin forgets what the decision before changed.
func (i *instant) begin() { i.changed = i.changed[:0] }

// end counts the decision that was taken. It is an error, which names the time and the jobs, if it is one too many.
func (i *instant) end(v *sched.View) error {
	switch {
	case len(i.changed) == 0:
		return nil
	case v.Now != i.at:
		i.at, i.count = v.Now, 0
	}
	if i.count++; i.count < mostAtOnce {
		return nil
	}
	const most = 5
	var names []string
	for _, id := range i.changed[:min(len(i.changed), most)] {
		names = append(names, fmt.Sprintf("%d (%s)", id, v.Jobs[id].Spec.Name))
	}
	if len(i.changed) > most {
		names = append(names, "...")
	}
	return fmt.Errorf("%w: %d decisions at %v changed who holds GPUs, and no time passed; the last changed jobs %s; "+
		"want the system to settle", ErrUnsettled, mostAtOnce, v.Now, strings.Join(names, ", "))
}

// ErrUnsettled says that a system goes on changing its decisions at one instant.
var ErrUnsettled = errors.New("engine: the system does not settle")
