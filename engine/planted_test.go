//go:build invariants

package engine_test

import (
	"strings"
	"testing"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
)

// planting is a Decider that plants a fault once a job holds GPUs.
type planting struct {
	sched.Decider
	fault func(v *sched.View)
}

func (p *planting) Observe(v *sched.View, e *sched.Event) {
	p.Decider.Observe(v, e)
	if e.Kind == sched.AttemptStarted {
		p.fault(v)
	}
}

func (p *planting) Verify(v *sched.View) { p.Decider.(sched.Verifier).Verify(v) }

// Ensure that -tags invariants finds a wrong count of holders in the state, and a target that the ledger of the
// pipeline does not have, also where the pipeline is composed with parts.
func TestPlantedFaults(t *testing.T) {
	plain := func() sched.Decider { return pipeline.New(plainFIFO) }
	parts := func() sched.Decider {
		return pipeline.Compose(plain(), pipeline.Parts{Learn: []sched.Observer{blank{}}})
	}
	holders := func(v *sched.View) { v.GPUs[0].Holders++ }
	target := func(v *sched.View) { // counts agree: only the ledger shows it
		j := &v.Jobs[0]
		v.GPUs[j.Target[0]].Targets--
		v.GPUs[j.Target[0]].Alone--
		j.Target = []sched.GPUID{j.Target[0] + 1}
		v.GPUs[j.Target[0]].Targets++
		v.GPUs[j.Target[0]].Alone++
	}
	for name, c := range map[string]struct {
		dec   func() sched.Decider
		fault func(v *sched.View)
		want  string
	}{
		"sound":               {plain, func(*sched.View) {}, ""},
		"holders":             {plain, holders, "GPU 0 counts"},
		"holders, with parts": {parts, holders, "GPU 0 counts"},
		"target":              {plain, target, "ledger has [0] for job 0, target is [1]"},
		"target, with parts":  {parts, target, "ledger has [0] for job 0, target is [1]"},
	} {
		got := func() (text string) {
			defer func() {
				if cause := recover(); cause != nil {
					text, _ = cause.(string)
				}
			}()
			d := &answers{list: [][]sched.Event{{joined(2)}, {arrived(1)}, {started(2, 0)}}}
			must(engine.Run(t.Context(), engine.NewState(eventlog.Header{}), d, &planting{c.dec(), c.fault},
				engine.Options{}))
			return ""
		}()
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: panics with %q, want %q", name, got, c.want)
		}
	}
}

// blank is an estimator that learns nothing.
type blank struct{}

func (blank) Observe(*sched.View, *sched.Event) {}
