package server

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/explain/text"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/whatif"
)

// says returns who says in sentences how the jobs of v stand, by the clock of this machine.
func (s *Server) says(v *sched.View) text.Renderer {
	last := func(id sched.JobID) text.Failure {
		row, _, _ := s.o.Host.Board().Row(id)
		return row.LastFailure()
	}
	return text.Renderer{Vocabulary: s.vocabulary(), View: v, System: s.o.Host.Header().System,
		Origin: s.origin.Local(), Last: last}
}

// vocabulary has the words of this world.
func (s *Server) vocabulary() text.Vocabulary {
	if s.o.Site.Kind() == api.Cluster {
		return text.Cluster()
	}
	return text.Machine(s.o.Site.Unit())
}

// think lets one at a time look into the future, and returns what ends that.
func (s *Server) think(ctx context.Context) (done func(), err error) { return inTurn(ctx, s.thinking) }

// inTurn lets one at a time go on, and returns what ends that.
func inTurn(ctx context.Context, turn chan struct{}) (done func(), err error) {
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// whyInput says what is asked about a job.
type whyInput struct {
	aboutJob
	Ahead int `query:"ahead_ms" minimum:"-1" maximum:"5000" default:"-1" doc:"milliseconds for a look into the future at most; 0 = none, -1 = 2000, and what was foreseen last where more than 2000 jobs are not done"`
	Try   int `query:"try_ms" minimum:"0" maximum:"3000" default:"1000" doc:"milliseconds for trying remedies at most; 0 = none"`
}

// Limits of a look into the future as suits.
const (
	suits     = 2 * time.Second
	suitsJobs = 2000
)

func (s *Server) why(ctx context.Context, in *whyInput) (api.Why, error) {
	id := callerOf(ctx).job
	done, err := s.think(ctx)
	if err != nil {
		return api.Why{}, err
	}
	defer done()
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	o := WhyOptions{Remedies: ms(in.Try), Forecast: ms(in.Ahead)}
	if o.Forecast == api.AsSuits {
		o.Forecast, o.Most = suits, suitsJobs
	}
	a, err := s.o.Host.Why(ctx, id, o)
	if err != nil {
		return api.Why{}, fmt.Errorf("job %d: %w", id, err)
	}
	doc, err := s.one(ctx, id)
	if err != nil {
		return api.Why{}, err
	}
	x := whyWriter{s.says(a.View), a, id, leaves(s.o.Host)}
	x.Forecast = a.Forecast
	foretold(s.o.Host, a, id)
	answer := x.why(doc)
	if answer.Bid, err = bidOf(ctx, s, id); err != nil {
		return api.Why{}, err
	}
	answer.Sentence += higherClass(s.o.Host, a, id)
	if why := halted(s.o.Site); why != "" && a.View.Job(id).State == sched.Waiting {
		answer.Sentence = why
	}
	if a.Held != "" {
		answer.Sentence = a.Held
	}
	if r, able := s.o.Site.(Remarker); able {
		if answer.Remark = r.Remark(id); answer.Remark != "" && a.View.Job(id).State == sched.Held {
			answer.Sentence = "is held: " + answer.Remark
		}
	}
	if o, able := s.o.Site.(Ordering); able && doc.Attempt > 0 {
		answer.Command = o.Launched(id, int32(doc.Attempt))
	}
	return answer, nil
}

// higherClass says how many jobs are before one because of their class, where that may keep it from its GPUs.
func higherClass(h Host, a *Answer, id sched.JobID) string {
	header := h.Header()
	switch n := system.HigherClass(&header, a.View, id); {
	case n == 0 || a.Waiting.Code < explain.WaitBehind:
		return ""
	case n == 1:
		return "; 1 job of a higher priority class is ahead"
	default:
		return fmt.Sprintf("; %d jobs of a higher priority class are ahead", n)
	}
}

// whyWriter makes documents of an answer.
type whyWriter struct {
	text.Renderer
	a     *Answer
	id    sched.JobID
	leave sched.Unsaved // who is not stopped for others
}

// mostAhead is how many of the jobs ahead are listed.
const mostAhead = 20

func (x *whyWriter) why(job api.Job) api.Why {
	a, w := x.a, &x.a.Waiting
	doc := api.Why{Schema: "trainyard.why/v1", Job: job, Unit: x.Unit, Sentence: x.sentence(), Code: w.Code.String(),
		Ahead:    x.list(w.Ahead[:min(len(w.Ahead), mostAhead)]),
		AheadAll: len(w.Ahead), Remedies: []api.Remedy{}, Figures: x.figures(a.Facts), Hurried: a.Hurried}
	for _, id := range w.Ahead {
		r := x.View.Job(id).Spec.GPUs
		doc.AheadGPU += int(r.Want)
		doc.AheadMin += int(r.Min)
		doc.AheadMax += int(r.Max)
	}
	if e := a.Forecast.Of(x.id); e != nil {
		doc.Draws, doc.Rests = a.Forecast.Draws, x.RestsOf(e)
		doc.Start, doc.End = x.expected(e)
		if earlier(a.Forecast, x.View.Now) {
			doc.Rests += ", as of " + x.Origin.Add(time.Duration(a.Forecast.At)).Format(time.TimeOnly)
		}
	}
	if r := a.Remedies; r != nil {
		doc.Tried = r.Tried
		for i := range r.List {
			doc.Remedies = append(doc.Remedies, x.remedy(&r.List[i]))
		}
		if r.Unchanged {
			doc.Soon = x.rfc3339(r.At)
		}
	}
	x.stops(&doc)
	if a.Last != nil {
		doc.Last = x.displaced(a.Last)
	}
	return doc
}

// stops says whether the job may be stopped for others.
func (x *whyWriter) stops(doc *api.Why) {
	j := x.View.Job(x.id)
	if j.State == sched.Done && j.Loss().Stops == 0 || x.leave == sched.StopUnsaved && j.Loss().Stops == 0 {
		return
	}
	doc.Stops, doc.StakeSec = x.Stops(x.id, x.leave), text.Stake(x.View, j).Seconds()
	if open := sched.Seconds(doc.Job.UnsavedSec); open >= time.Second && doc.StakeSec == 0 {
		doc.Stops += fmt.Sprintf("; %s of work not seen saved so far", text.Work(open))
	}
}

// sentence says how the job stands, also of one that runs or is done.
func (x *whyWriter) sentence() string {
	if said := x.Sentence(x.id, &x.a.Waiting); said != "" {
		return said
	}
	j := x.View.Job(x.id)
	if j.Outcome == sched.Failed {
		return x.Failed(x.id)
	}
	if j.State == sched.Done {
		if other := unmet(x.View, j); other != sched.None {
			return "is done: rejected, as " + x.Refusal(sched.Reason{Code: sched.WhyAfter, Job: other})
		}
		return "is done: " + j.Outcome.String()
	}
	said := "runs on " + x.Units(len(j.GPUs))
	if r := j.Spec.GPUs; r.Min != r.Max {
		said = fmt.Sprintf("runs on %d of %s %ss", len(j.GPUs), text.Widths(r), x.Unit)
	}
	if e := x.Forecast.Of(x.id); e != nil {
		said += x.Until(e.End)
		if x.a.Guessed && e.Basis == whatif.BySteps {
			said += fmt.Sprintf(", which is a guess: its speed on %s was never measured", x.Units(len(j.GPUs)))
		}
	}
	if x.a.Unmeasured {
		said += "; " + x.Unmeasured(x.id)
	}
	return said
}

// list says how jobs stand in short.
func (x *whyWriter) list(ids []sched.JobID) []api.Ahead {
	docs := make([]api.Ahead, len(ids))
	for i, id := range ids {
		j := x.View.Job(id)
		r := j.Spec.GPUs
		docs[i] = api.Ahead{ID: int(id), Name: j.Spec.Name, GPUs: int(r.Want), Held: len(j.Target), Min: int(r.Min),
			Max: int(r.Max), State: stateOf(x.View, j), Array: placeInArray(id, j.Spec)}
		if docs[i].Held > 0 {
			docs[i].GPUs = docs[i].Held
		}
	}
	return docs
}

func (x *whyWriter) figures(facts []sched.Fact) []api.Figure {
	docs := make([]api.Figure, len(facts))
	for i, f := range facts {
		docs[i] = figure(f)
		docs[i].Text = x.Fact(f.Text)
	}
	return docs
}

// largest is what infinity is written as: JSON has none.
const largest = 1e308

func figure(f sched.Fact) api.Figure {
	value := min(max(f.Value, -largest), largest)
	if math.IsNaN(value) {
		value = 0
	}
	return api.Figure{Name: f.Name, Value: value, Unit: f.Unit, Text: f.Text}
}

// remedy says what would start the job.
func (x *whyWriter) remedy(r *whatif.Remedy) api.Remedy {
	doc := api.Remedy{Change: r.Change.String(), GPUs: x.gpuNames(r.GPUs), Takes: make([]int, len(r.Displaces))}
	for i, id := range r.Displaces {
		doc.Takes[i] = int(id)
	}
	doc.Value, doc.Text = x.changed(r)
	doc.ID = remedyID(&doc)
	switch r.Change {
	case whatif.OtherGPUs:
		doc.Resize = &api.Resize{Min: int(r.Spec.GPUs.Min), Want: int(r.Spec.GPUs.Want), Max: int(r.Spec.GPUs.Max)}
		doc.Command = fmt.Sprintf("trainyard resize %d --gpus %s", x.id, doc.Value)
	case whatif.Undrain:
		doc.Command = undrain(r, doc.Value)
	case whatif.RequeueOther:
		doc.Command = fmt.Sprintf("trainyard requeue %d", r.Requeue)
		return doc
	}
	if n := len(r.Displaces); n > 0 {
		doc.Text += fmt.Sprintf(", in place of %s", x.Name(r.Displaces[0]))
		if n > 1 {
			doc.Text += fmt.Sprintf(" and %d more", n-1)
		}
	}
	return doc
}

// undrain is the command, or both, that lift drains.
func undrain(r *whatif.Remedy, gpus string) string {
	switch {
	case len(r.Drained) == 0:
		return "trainyard undrain"
	case r.Machine:
		return "trainyard undrain && trainyard undrain " + gpus
	}
	return "trainyard undrain " + gpus
}

// changed says what of the job would be otherwise: as it would stand in a job file, and in words.
func (x *whyWriter) changed(r *whatif.Remedy) (value, said string) {
	s := r.Spec
	switch r.Change {
	case whatif.Undrain:
		return strings.Join(x.gpuNames(r.Drained), " "), "with what is drained in use again"
	case whatif.RequeueOther:
		return strconv.Itoa(int(r.Requeue)), fmt.Sprintf("once %s is put back in the queue, which loses it %s",
			x.Name(r.Requeue), text.Work(r.Loses))
	case whatif.MoreTypes:
		for t, name := range x.View.Types {
			if s.Types.Has(sched.TypeID(t)) && !x.View.Job(x.id).Spec.Types.Has(sched.TypeID(t)) {
				value = name
			}
		}
		return value, "submitted again for GPUs of type " + value + " too"
	case whatif.ShorterWallTime:
		value = sched.FormatSeconds(s.WallTime)
		return value, fmt.Sprintf("submitted again with a wall time of %v, if that is enough", s.WallTime)
	case whatif.AllowSharing:
		return "allow", "submitted again with share: allow"
	case whatif.HigherPriority:
		value = strconv.Itoa(int(s.Priority))
		return value, "submitted again with priority " + value
	}
	value = text.Widths(s.GPUs)
	if s.GPUs.Want != s.GPUs.Max {
		value += fmt.Sprintf(":%d", s.GPUs.Want)
	}
	return value, "with " + x.Units(len(r.GPUs))
}

// displaced says how the job lost its GPUs.
func (x *whyWriter) displaced(d *whatif.Displacement) *api.Displaced {
	doc := &api.Displaced{By: int(d.By), Rule: d.Why.String(), Text: x.Rule(d), At: x.rfc3339(d.At),
		LostSec: d.Lost.Seconds()}
	if d.By != sched.None {
		doc.Name = x.View.Job(d.By).Spec.Name
	}
	if d.Back != sched.Never {
		doc.Back = x.rfc3339(d.Back)
	}
	return doc
}

func (x *whyWriter) gpuNames(gpus []sched.GPUID) []string {
	names := make([]string, len(gpus))
	for i, g := range gpus {
		names[i] = text.GPUName(x.View, g)
	}
	return names
}

// within says an interval for programs.
// expected says when a job of an estimate starts and ends, no start of one that runs. What was foreseen at an earlier
// moment, and ought to have come by now, is not known.
func (x *whyWriter) expected(e *explain.Estimate) (start, end *api.Within) {
	overdue := func(s explain.Span) explain.Span {
		if s.P90 < x.View.Now && earlier(x.Forecast, x.View.Now) {
			s.Unknown = true
		}
		return s
	}
	end = x.within(overdue(e.End))
	if x.View.Job(e.Job).Attempt != sched.Running {
		start = x.within(overdue(e.Start))
	}
	return start, end
}

// recent is how old a forecast may be that counts as one of now: a moment lasts for so long.
const recent = 3 * time.Second

// earlier reports whether f, which may be nil, is of an earlier moment than now.
func earlier(f *explain.Forecast, now sched.Time) bool { return f != nil && now.Sub(f.At) > recent }

func (x *whyWriter) within(s explain.Span) *api.Within {
	if s.Unknown {
		return &api.Within{}
	}
	return &api.Within{Known: true, Alone: s.Alone, Low: x.rfc3339(s.P10), Median: x.rfc3339(s.P50),
		High: x.rfc3339(s.P90)}
}

// rfc3339 says a time for programs; "" = never.
func (x *whyWriter) rfc3339(t sched.Time) string {
	if t == sched.Never {
		return ""
	}
	return x.Origin.Add(time.Duration(t)).UTC().Format("2006-01-02T15:04:05.000Z")
}
