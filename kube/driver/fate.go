package driver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/sched"
)

// fate is how an attempt is going to end, once no process of it is left, although nobody ordered it.
type fate struct {
	outcome sched.Outcome // NoOutcome: its start failed
	code    int32
	text    string
	suspect []int // ranks whose GPUs may be to blame that the start failed
}

// cause returns why an attempt is going to end, nil if it goes on. Of several things that went wrong the first counts, as it is what
// made the others: at the same instant the loss of a rank. silent says that a node of the attempt does not answer: then a rank
// that failed did so for want of the others. started says that all ranks were up.
func cause(ranks []sight, silent, started bool) *fate {
	first := -1
	for i, s := range ranks {
		if s.stage != lost && s.stage != failed {
			continue
		}
		if first < 0 || cmp.Or(s.at.Compare(ranks[first].at), -cmp.Compare(s.stage, ranks[first].stage)) < 0 {
			first = i
		}
	}
	switch {
	case first < 0 && !slices.ContainsFunc(ranks, func(s sight) bool { return s.stage != succeeded }):
		return &fate{outcome: sched.Finished}
	case first < 0:
		return nil
	case ranks[first].unrun && !started:
		return &fate{text: ranks[first].text, suspect: []int{first}}
	case ranks[first].stage == lost:
		return &fate{outcome: sched.NodeLost, text: ranks[first].text}
	case silent && len(ranks) > 1:
		return &fate{outcome: sched.NodeLost, code: ranks[first].code, text: ranks[first].text + "; a node of another rank does not answer"}
	}
	return &fate{outcome: sched.Failed, code: ranks[first].code, text: ranks[first].text}
}

// tooLate is the fate of an attempt whose ranks are not all up in time.
func tooLate(ranks []sight, within time.Duration) *fate {
	f := new(fate)
	n := 0
	for i, s := range ranks {
		if hasRun(s) {
			continue
		}
		n++
		if !s.fault {
			f.suspect = append(f.suspect, i)
		}
		if f.text == "" {
			f.text = s.text
		}
	}
	f.text = fmt.Sprintf("%d of %d ranks not up after %v: %s", n, len(ranks), within, cmp.Or(f.text, "no pod is there"))
	return f
}

// keptFate is a fate as the job of the attempt says it while pods are deleted because of it: who leads next could not tell them from those
// that somebody else deletes, and those that are gone tell nothing.
type keptFate struct {
	Attempt int32  `json:"attempt"`
	Outcome string `json:"outcome,omitempty"` // "" = its start failed
	Code    int32  `json:"code,omitempty"`
	Text    string `json:"text,omitempty"`
	Suspect []int  `json:"suspect,omitempty"`
}

// fateTime is how long the pods of an attempt wait at most for its fate to be written down.
const fateTime = 10 * time.Second

// keepFate writes down how an attempt ends, if that can be done in time: its GPUs are not to be held by ranks that wait for one that
// failed. The loss of a machine is what anybody would take it for.
func (d *Driver) keepFate(ctx context.Context, a *attempt, f *fate) {
	if f == nil || f.outcome == sched.NodeLost {
		return
	}
	text, err := json.Marshal(keptFate{a.number, f.outcome.String(), f.code, f.text, f.suspect})
	if err == nil {
		soon, cancel := context.WithTimeout(ctx, fateTime)
		err = d.annotate(soon, a, v1alpha1.AnnotationFate, string(text))
		cancel()
	}
	d.warn(ctx, err, "how an attempt ends cannot be kept", "job", a.key, "attempt", a.number)
}

// fateKept returns how an attempt ends that those who led before were ending, nil if they were not.
func (d *Driver) fateKept(a *attempt, up bool) (*fate, error) {
	tj := new(v1alpha1.TrainingJob)
	if found, err := d.ask(a.key, tj); err != nil || !found || tj.UID != a.uid || tj.Annotations[v1alpha1.AnnotationFate] == "" {
		return nil, err
	}
	var kept keptFate
	if err := json.Unmarshal([]byte(tj.Annotations[v1alpha1.AnnotationFate]), &kept); err != nil {
		d.o.Log.Warn("how an attempt ended is found out anew", "job", a.key, "error", fmt.Errorf("annotation %s: %w", v1alpha1.AnnotationFate, err))
		return nil, nil
	}
	outcomes := []sched.Outcome{sched.NoOutcome}
	if up {
		outcomes = []sched.Outcome{sched.Finished}
	}
	i := slices.IndexFunc(append(outcomes, sched.Failed), func(o sched.Outcome) bool { return o.String() == kept.Outcome })
	foreign := func(r int) bool { return r < 0 || r >= len(a.ranks) }
	if kept.Attempt != a.number || i < 0 || slices.ContainsFunc(kept.Suspect, foreign) {
		return nil, nil
	}
	return &fate{append(outcomes, sched.Failed)[i], kept.Code, kept.Text, kept.Suspect}, nil
}
