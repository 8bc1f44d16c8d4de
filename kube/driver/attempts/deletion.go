package attempts

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/kube/driver/writer"
	"github.com/trainyard/trainyard/sched"
)

// ending is how an attempt is going to end, once no process of it is left, although no one ordered it: its pods are
// deleted because of it.
type ending struct {
	outcome sched.Outcome // NoOutcome: its start failed
	code    int32
	text    string
	suspect []int          // ranks whose GPUs may be to blame that the start failed
	refusal writer.Verdict // of the API server, where it has jobs held; what else ends it has none
}

// cause returns why an attempt is going to end, nil if it goes on. Of several things that went wrong the first counts,
// as it is what made the others: at the same instant the loss of a rank. silent says that a node of the attempt does
// not answer: then a rank that failed did so for want of the others. started says that all ranks were up.
func cause(ranks []podStatus, silent, started bool) *ending {
	first := -1
	for i, s := range ranks {
		if s.stage != lost && s.stage != failed {
			continue
		}
		if first < 0 || cmp.Or(s.at.Compare(ranks[first].at), -cmp.Compare(s.stage, ranks[first].stage)) < 0 {
			first = i
		}
	}
	if first < 0 {
		if all(ranks, func(s podStatus) bool { return s.stage == succeeded }) {
			return &ending{outcome: sched.Finished}
		}
		return nil
	}
	code, text := ranks[first].code, ranks[first].text
	switch {
	case ranks[first].unrun && !started:
		return &ending{text: text, suspect: []int{first}}
	case ranks[first].stage == lost:
		return &ending{outcome: sched.NodeLost, text: text}
	case silent && len(ranks) > 1:
		return &ending{outcome: sched.NodeLost, code: code, text: text + "; a node of another rank does not answer"}
	}
	return &ending{outcome: sched.Failed, code: code, text: text}
}

// tooLate is the end of an attempt whose ranks are not all up in time.
func tooLate(ranks []podStatus, within time.Duration) *ending {
	e := new(ending)
	n := 0
	for i, s := range ranks {
		if hasRun(s) {
			continue
		}
		n++
		if !s.fault {
			e.suspect = append(e.suspect, i)
		}
		if e.text == "" {
			e.text = s.text
		}
	}
	why := cmp.Or(e.text, "no pod is there")
	e.text = fmt.Sprintf("%d of %d ranks not up after %v: %s", n, len(ranks), within, why)
	return e
}

// keptEnding is an ending as the job of the attempt says it while pods are deleted because of it: who leads next could
// not distinguish these from pods that others delete, and those that are gone say nothing.
type keptEnding struct {
	Attempt int32  `json:"attempt"`
	Outcome string `json:"outcome,omitempty"` // "": its start failed
	Code    int32  `json:"code,omitempty"`
	Text    string `json:"text,omitempty"`
	Suspect []int  `json:"suspect,omitempty"`
	Refused uint8  `json:"refused,omitempty"` // a writer.Answer
}

// keep returns the ending of an attempt as its job is to say it; "": the next leader takes it for the same without.
func (e *ending) keep(attempt int32) string {
	if e == nil || e.outcome == sched.NodeLost {
		return ""
	}
	text, _ := json.Marshal(keptEnding{attempt, e.outcome.String(), e.code, e.text, e.suspect,
		uint8(e.refusal.Answer)}) // of words and numbers
	return string(text)
}

// keptEnding returns how an attempt ends that those who led before were ending, nil if they were not.
func (as *Attempts) keptEnding(ctx context.Context, api observer.API, a *live, up bool) (*ending, error) {
	tj := new(v1alpha1.TrainingJob)
	found, err := api.Ask(ctx, a.Key, tj)
	text := tj.Annotations[v1alpha1.AnnotationDeletion]
	if err != nil || !found || tj.UID != a.UID || text == "" {
		return nil, err
	}
	var kept keptEnding
	if err := json.Unmarshal([]byte(text), &kept); err != nil {
		err = fmt.Errorf("annotation %s: %w", v1alpha1.AnnotationDeletion, err)
		as.o.Log.Warn("how an attempt ended is found out again", "job", a.Key, "error", err)
		return nil, nil
	}
	outcomes := []sched.Outcome{sched.NoOutcome, sched.Failed}
	if up {
		outcomes[0] = sched.Finished
	}
	i := slices.IndexFunc(outcomes, func(o sched.Outcome) bool { return o.String() == kept.Outcome })
	foreign := func(r int) bool { return r < 0 || r >= len(a.Ranks) }
	if kept.Attempt != a.Number || i < 0 || slices.ContainsFunc(kept.Suspect, foreign) {
		return nil, nil
	}
	refusal := writer.Verdict{Answer: writer.Answer(kept.Refused), Why: kept.Text}
	return &ending{outcomes[i], kept.Code, kept.Text, kept.Suspect, refusal}, nil
}
