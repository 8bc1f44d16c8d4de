package system_test

import (
	"math"
	"testing"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
)

// asker has every job explained after every instant, and notes what was said.
type asker struct {
	t     *testing.T
	e     sched.Explainer
	v     *sched.View
	facts map[string]bool
}

func (a *asker) Log(v *sched.View, _ *sched.Event) { a.v = v }
func (a *asker) BeginBatch()                       {}

func (a *asker) EndBatch() error {
	for id := range a.v.Jobs {
		said := map[string]bool{}
		a.e.Explain(a.v, sched.JobID(id), func(f sched.Fact) {
			if f.Name == "" || said[f.Name] || math.IsNaN(f.Value) || f.Text != "" && (f.Value != 0 || f.Unit != "") {
				a.t.Errorf("%v: job %d: %+v: without a name, twice, no number, or word and number at once", a.v.Now,
					id, f)
			}
			said[f.Name], a.facts[f.Name] = true, true
		})
	}
	return nil
}

// Ensure that every system explains its jobs, says nothing twice, and decides as if no one had asked.
func TestExplainChangesNothing(t *testing.T) {
	tr := small()
	for i := range tr.Jobs { // those who go by nothing else say nothing of a job that has none
		tr.Jobs[i].Spec.Priority = int32(i % 2)
	}
	for _, info := range system.Table() {
		want, _ := run(t, &info, tr, nil)
		a := &asker{t: t, facts: map[string]bool{}}
		got, _ := run(t, &info, tr, nil, func(d sched.Decider) eventlog.Sink {
			a.e, _ = d.(sched.Explainer)
			if a.e == nil {
				t.Fatalf("%s explains nothing", info.Name)
			}
			return a
		})
		if got != want {
			t.Errorf("%s: asking changed the run", info.Name)
		}
		if len(a.facts) == 0 {
			t.Errorf("%s: nothing was ever said of a job", info.Name)
		}
	}
}
