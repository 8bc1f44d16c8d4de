package server

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/sched"
)

type explainInput struct {
	Seq uint64 `path:"seq" minimum:"0" maximum:"9007199254740991" doc:"number of an event of the log"`
}

// explain decides a decision of the log again.
func (s *Server) explain(ctx context.Context, in *explainInput) (api.Decision, error) {
	done, err := inTurn(ctx, s.explaining)
	if err != nil {
		return api.Decision{}, err
	}
	defer done()
	d, err := s.o.Site.(Explainer).Explain(ctx, in.Seq) // the guard has found that it is one
	if errors.Is(err, errLate) {
		err = fmt.Errorf("%w: %w; `trainyard events` has what was decided", api.ErrTimeout, err)
	}
	if err != nil {
		return api.Decision{}, s.readable(in.Seq, err)
	}
	x := whyWriter{Renderer: s.says(d.View)}
	e := &d.Event
	doc := api.Decision{Schema: "trainyard.decision/v1", Seq: e.Seq, Event: e.Kind.String(), At: x.rfc3339(e.Time),
		System: x.System, Unit: x.Unit, Job: int(e.Job),
		Was: x.gpuNames(d.Was), GPUs: x.gpuNames(e.GPUs), Reason: x.reason(e.Why), Free: x.gpuNames(d.Free),
		Ordered: d.Order != nil,
		Waited:  x.waited(d), Chosen: []api.Chosen{}, Refused: []api.Chosen{}, Figures: x.figures(d.Facts)}
	if e.Job != sched.None {
		doc.Name = x.View.Job(e.Job).Spec.Name
	}
	for _, w := range d.Wanted {
		doc.Chosen = append(doc.Chosen, x.chosen(w.Job, w.GPUs, w.Why, ""))
	}
	for i := range d.Refused {
		r := &d.Refused[i]
		doc.Refused = append(doc.Refused, x.chosen(r.Job, r.GPUs, r.Why, r.Text))
	}
	doc.Sentence = x.decided(d)
	return doc, nil
}

// readable returns the error of a decision that is not decided again. One about what the log has, of which it cites the
// lines, is for who reads what the manager logs: they hold the values of variables, of any length.
func (s *Server) readable(seq uint64, err error) error {
	cites := !errors.Is(err, errLate) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
	for _, e := range hostErrors {
		cites = cites && !errors.Is(err, e.of)
	}
	if !cites {
		return err
	}
	s.o.Log.Error("a decision cannot be decided again", "event", seq, "error", err)
	return fmt.Errorf("event %d: the log cannot be read up to there; the manager logs why", seq)
}

// waited lists who waited, with what they wanted then.
func (x *whyWriter) waited(d *Decision) []api.Ahead {
	docs := x.list(d.Waited)
	for i := range docs {
		docs[i].GPUs, docs[i].State = int(x.View.Job(d.Waited[i]).Spec.GPUs.Want), "waiting"
	}
	return docs
}

func (x *whyWriter) chosen(id sched.JobID, gpus []sched.GPUID, why sched.Reason, text string) api.Chosen {
	doc := api.Chosen{Job: int(id), GPUs: x.gpuNames(gpus), Reason: x.reason(why), Text: text}
	if id >= 0 && int(id) < len(x.View.Jobs) {
		doc.Name = x.View.Job(id).Spec.Name
	}
	return doc
}

// reason says why, with the numbers that the code has.
func (x *whyWriter) reason(r sched.Reason) api.Reason {
	doc := api.Reason{Code: r.Code.String(), Job: int(sched.None), A: r.A, B: r.B}
	other := "another job"
	if slices.Contains(withJob, r.Code) && r.Job >= 0 && int(r.Job) < len(x.View.Jobs) {
		doc.Job, other = int(r.Job), x.Name(r.Job)
	}
	if text, ok := reasonTexts[r.Code]; ok {
		doc.Text = text(r, other)
	}
	return doc
}

// withJob are the reasons that have to do with another job.
var withJob = []sched.ReasonCode{sched.WhyPreempted, sched.WhyTrial, sched.WhyKept, sched.WhyUndone, sched.WhyPaired}

// reasonTexts say reasons in words.
var reasonTexts = map[sched.ReasonCode]func(r sched.Reason, other string) string{
	sched.WhyStarted: func(sched.Reason, string) string { return "it was its turn and it fits" },
	sched.WhyPreempted: func(_ sched.Reason, other string) string {
		return other + " is before it and takes what it held"
	},
	sched.WhyMoved: func(r sched.Reason, _ string) string {
		return fmt.Sprintf("another set serves it better: gain %.3g", r.A)
	},
	sched.WhyResized: func(r sched.Reason, _ string) string {
		return fmt.Sprintf("%g instead of %g serve it better", r.B, r.A)
	},
	sched.WhyPromoted: func(r sched.Reason, _ string) string {
		return fmt.Sprintf("it waited %.3g s after it had run %.3g s", r.A, r.B)
	},
	sched.WhyDemoted: func(r sched.Reason, _ string) string {
		return fmt.Sprintf("its service, %.3g, reached the limit: queue %g", r.B, r.A)
	},
	sched.WhyTooWide: func(r sched.Reason, _ string) string {
		return fmt.Sprintf("it needs %g, and there can never be more than %g", r.A, r.B)
	},
	sched.WhyQuota: func(r sched.Reason, _ string) string {
		return fmt.Sprintf("its user would hold %g, of %g allowed", r.A, r.B)
	},
	sched.WhyInvalid:     func(sched.Reason, string) string { return "it breaks a rule" },
	sched.WhyStartFailed: func(r sched.Reason, _ string) string { return fmt.Sprintf("%g starts failed", r.A) },
	sched.WhyTrial: func(r sched.Reason, other string) string {
		text := fmt.Sprintf("it joins %s on trial; %g jobs are there", other, r.A)
		if r.B > 0 {
			text += fmt.Sprintf("; together they are worth %.3g job-seconds a second more than apart", r.B)
		}
		return text
	},
	sched.WhyKept: func(r sched.Reason, other string) string {
		if r.A > 0 {
			return fmt.Sprintf("%s had %.4g GB of its GPU, too much next to it, and is taken off: it stays", other,
				r.A)
		}
		return "its trial with " + other + " is over: it stays"
	},
	sched.WhyUndone: func(r sched.Reason, other string) string {
		if r.A > 0 {
			return fmt.Sprintf("it had %.4g GB of a GPU, too much next to %s", r.A, other)
		}
		return "with " + other + " a deadline or a limit would be missed"
	},
	sched.WhyPaired: func(_ sched.Reason, other string) string { return "it shares with " + other },
	sched.WhyAtRisk: func(sched.Reason, string) string { return "it would miss its deadline even alone" },
	sched.WhyNoRoom: func(r sched.Reason, _ string) string {
		return fmt.Sprintf("it needs %g, %g are to be had, and it is not to wait", r.A, r.B)
	},
	sched.WhyAfter: func(_ sched.Reason, other string) string {
		return other + ", which it was to start after, ended otherwise than it wanted"
	},
}

// decided says a decision in a sentence.
func (x *whyWriter) decided(d *Decision) string {
	e := &d.Event
	who := "the cluster"
	if e.Job != sched.None {
		who = x.Name(e.Job)
	}
	now, was := len(e.GPUs), len(d.Was)
	text := ""
	switch {
	case e.Kind != sched.Decided:
		text = fmt.Sprintf("%s: %v", who, e.Kind)
	case was == 0:
		text = fmt.Sprintf("%s is given %d of %d free %ss", who, now, len(d.Free), x.Unit)
	case now == 0:
		text = fmt.Sprintf("%s has its %d %ss taken away", who, was, x.Unit)
	case now == was:
		text = fmt.Sprintf("%s is given %d other %ss", who, now, x.Unit)
	default:
		text = fmt.Sprintf("%s is given %d %ss instead of %d", who, now, x.Unit, was)
	}
	if i := slices.Index(d.Waited, e.Job); i >= 0 && d.Order != nil {
		text += fmt.Sprintf("; it was number %d of %d that waited", i+1, len(d.Waited))
	}
	if why := x.reason(e.Why).Text; why != "" {
		text += ": " + why
	}
	return text
}
