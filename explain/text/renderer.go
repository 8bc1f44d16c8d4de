package text

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/sched"
)

// Renderer says in sentences how jobs of a View stand.
type Renderer struct {
	Vocabulary

	View   *sched.View
	System string
	Origin time.Time // of the View's times; sentences have those of its zone
	// Last says how the last attempt of a job failed; nil: it is not known.
	Last     func(sched.JobID) Failure
	Forecast *explain.Forecast // nil: the future is not known
}

// Failure is how the last attempt of a job failed.
type Failure struct {
	Starts  int32  // starts that failed in a row
	Text    string // "" = it did not fail
	GivenUp bool   // no retry is for that
}

// Name names a job in a sentence.
func (r *Renderer) Name(id sched.JobID) string { return r.job(r.View, id) }

// Names lists up to three jobs.
func (r *Renderer) Names(ids []sched.JobID) string {
	words := make([]string, 0, most)
	for _, id := range ids[:min(len(ids), most)] {
		words = append(words, r.Name(id))
	}
	return r.joined(words, len(ids)-len(words))
}

// Units counts GPUs or slots.
func (r *Renderer) Units(n int) string { return r.units(n) }

// Time says a time for people.
func (r *Renderer) Time(at sched.Time) string {
	return r.clock(r.Origin.Add(time.Duration(at)), r.Origin.Add(time.Duration(r.View.Now)))
}

// Sentence says why job id stands as it does, of which w is what binds it; "" where the vocabulary has nothing to say,
// as of a job on a machine that runs or is done.
func (r *Renderer) Sentence(id sched.JobID, w *explain.Waiting) string {
	j := r.View.Job(id)
	if j.State == sched.Done && r.done {
		return j.Outcome.String()
	}
	f := filling{Renderer: r, id: id, j: j, w: w, failure: r.failure(id)}
	template, ok := r.template(w.Code, f.is())
	switch {
	case ok:
		return f.fill(template)
	case w.Code == explain.NotWaiting:
		return ""
	}
	return w.Code.String()
}

func (r *Renderer) failure(id sched.JobID) (f Failure) {
	if r.Last != nil {
		f = r.Last(id)
	}
	return f
}

// filling is one sentence under way.
type filling struct {
	*Renderer

	id      sched.JobID
	j       *sched.Job
	w       *explain.Waiting
	failure Failure
}

// is returns which case of its code holds; "" = none of those that have a name.
func (f *filling) is() string {
	switch c := f.w.Code; {
	case c == explain.WaitStops && f.j.Cancel:
		return cancelled
	case c == explain.WaitStops && len(f.j.Target) > 0:
		return goesOn
	case c == explain.WaitRetry && f.failure.Starts > 0:
		return unstarted
	case c == explain.WaitRetry && f.failure.Text != "":
		return failed
	case c == explain.WaitQuota && f.w.Need > f.w.Limit:
		return never
	case c == explain.WaitUndecided && (f.w.Until <= f.View.Now || f.w.Until == sched.Never):
		return soon
	}
	return ""
}

// fill puts words where the template names them.
func (f *filling) fill(template string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(template, "{")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name, after, _ := strings.Cut(rest, "}")
		b.WriteString(words[name](f))
		template = after
	}
}

// words are what templates name.
var words = map[string]func(f *filling) string{
	"id":           func(f *filling) string { return strconv.Itoa(int(f.id)) },
	"target":       func(f *filling) string { return f.Units(len(f.j.Target)) },
	"places":       func(f *filling) string { return Places(f.View, f.j.GPUs) },
	"needs":        (*filling).needs,
	"need":         func(f *filling) string { return f.Units(int(f.w.Need)) },
	"have":         func(f *filling) string { return strconv.Itoa(int(f.w.Have)) },
	"limit":        func(f *filling) string { return strconv.Itoa(int(f.w.Limit)) },
	"largest":      func(f *filling) string { return strconv.Itoa(int(f.w.Largest)) },
	"is":           func(f *filling) string { return isAre(f.w.Have) },
	"are":          func(f *filling) string { return f.are(f.w.Have) },
	"are free":     func(f *filling) string { return f.are(f.w.Have) + " free" },
	"jobs":         func(f *filling) string { return f.Names(f.w.Jobs) },
	"jobs have":    func(f *filling) string { return f.Names(f.w.Jobs) + " " + hasHave(len(f.w.Jobs)) },
	"first":        func(f *filling) string { return f.Name(f.w.Jobs[0]) },
	"first allows": func(f *filling) string { return f.allows(f.w.Jobs[0]) },
	"gpus":         func(f *filling) string { return f.gpus(f.w.GPUs) },
	"until":        func(f *filling) string { return f.Time(f.w.Until) },
	"user":         func(f *filling) string { return user(f.j) },
	"of type":      func(f *filling) string { return f.ofType(f.w.Type) },
	"system":       func(f *filling) string { return f.System },
	"failure":      func(f *filling) string { return f.failure.Text },
	"retries":      func(f *filling) string { return retries(f.j) },
	"held":         (*filling).held,
	"ahead":        func(f *filling) string { return ahead(f.w.CountAhead()) },
	"unusable":     func(f *filling) string { return f.unusable(f.w.GPUs) },
	"undrain":      func(f *filling) string { return f.undrain(f.w.GPUs) },
	"unmeasured":   (*filling).unmeasured,
}

// needs counts what a job would be started with, of the widths that it allows.
func (f *filling) needs() string {
	if s := f.j.Spec.GPUs; s.Min != s.Max {
		return fmt.Sprintf("%d of %s %ss%s", f.w.Need, Widths(s), f.Unit, f.taken())
	}
	return f.Units(int(f.w.Need)) + f.taken()
}

// taken names the types of GPUs that a job takes, where it does not take all.
func (f *filling) taken() string {
	var names []string
	for t, name := range f.View.Types {
		if f.j.Spec.Types.Has(sched.TypeID(t)) {
			names = append(names, name)
		}
	}
	if len(names) == 0 || len(names) == len(f.View.Types) {
		return ""
	}
	return " of type " + strings.Join(names, " or ")
}

// unmeasured says why a job is looked at with one of its widths alone.
func (f *filling) unmeasured() string {
	if !f.w.Unmeasured {
		return ""
	}
	return fmt.Sprintf("; %s gives it %d or none: %s", f.System, f.w.Need, unknownSpeed(f.j))
}

// held says who holds what a job needs, those first who are expected to end first, and until when.
func (f *filling) held() string {
	if len(f.w.Jobs) == 0 {
		return ""
	}
	holders := slices.Clone(f.w.Jobs)
	slices.SortStableFunc(holders, func(a, b sched.JobID) int { return cmp.Compare(f.end(a), f.end(b)) })
	var parts []string
	for _, id := range holders[:min(len(holders), most)] {
		part := fmt.Sprintf("%d held by %s", len(f.View.Job(id).Target), f.Name(id))
		if e := f.Forecast.Of(id); e != nil {
			part += f.Until(e.End)
		}
		parts = append(parts, part)
	}
	text := ", " + strings.Join(parts, ", ")
	switch n := len(holders) - most; {
	case n == 1:
		text += ", and more by another"
	case n > 1:
		text += fmt.Sprintf(", and more by %d others", n)
	}
	if f.w.Until > 0 {
		text += "; one of them may be preempted from " + f.Time(f.w.Until) + " on"
	}
	return text
}

// end is when job id is expected to end.
func (f *filling) end(id sched.JobID) sched.Time {
	if e := f.Forecast.Of(id); e != nil {
		return e.End.P50
	}
	return sched.Never
}

// most is how many of a list are named.
const most = 3

// allows says which widths a job allows.
func (r *Renderer) allows(id sched.JobID) string {
	s := r.View.Job(id).Spec.GPUs
	if s.Min == s.Max {
		return r.Units(int(s.Min))
	}
	return fmt.Sprintf("%s %ss", Widths(s), r.Unit)
}

// ofType names the type of GPUs where there are several.
func (r *Renderer) ofType(id sched.TypeID) string {
	if len(r.View.Types) < 2 || int(id) >= len(r.View.Types) {
		return ""
	}
	return " of type " + r.View.Types[id]
}

// Unmeasured says of a job that runs why it is left at its width.
func (r *Renderer) Unmeasured(id sched.JobID) string {
	j := r.View.Job(id)
	return fmt.Sprintf("%s leaves it at %d of %s: %s", r.System, len(j.GPUs), Widths(j.Spec.GPUs), unknownSpeed(j))
}

// unknownSpeed says why nothing is known of the speed of a job at other widths.
func unknownSpeed(j *sched.Job) string {
	if j.Spec.Model == "" {
		return "speeds at other widths are learned by `model`, and it names none"
	}
	return "nothing is known of its speed at other widths"
}

// Failed says how the last attempt of job id failed and what comes of it.
func (r *Renderer) Failed(id sched.JobID) string {
	f := r.failure(id)
	switch {
	case f.Starts > 0:
		return f.Text
	case f.GivenUp:
		return "failed, and was " + f.Text
	}
	return fmt.Sprintf("failed with %s; %s", f.Text, retries(r.View.Job(id)))
}

// retries says what comes of a failure of job j.
func retries(j *sched.Job) string {
	switch allowed := j.Spec.Retries; {
	case j.State == sched.Done && allowed == 0:
		return "it is not tried again: no retry was asked for"
	case j.State == sched.Done && j.Failures <= allowed:
		return "it is not tried again: its `retry` is for other ends"
	case j.State == sched.Done:
		return fmt.Sprintf("it is not tried again: %d of %d retries were used", min(j.Failures-1, allowed), allowed)
	default:
		return fmt.Sprintf("retry %d of %d", j.Failures, allowed)
	}
}

// Rule says in words by which rule a job lost its GPUs.
func (r *Renderer) Rule(d *explain.Displacement) string {
	switch {
	case d.Why == sched.WhyPreempted && d.By != sched.None:
		return "by " + r.Name(d.By) + ", which is before it"
	case d.Why == sched.NoReason:
		return "by a decision of " + r.System
	}
	return fmt.Sprintf("by a decision of %s (%v)", r.System, d.Why)
}

// Widths writes the widths that a job allows: "2", or "2-4".
func Widths(s sched.Range) string {
	if s.Min == s.Max {
		return strconv.Itoa(int(s.Min))
	}
	return fmt.Sprintf("%d-%d", s.Min, s.Max)
}

func hasHave(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}

func user(j *sched.Job) string {
	if j.Spec.User == "" {
		return "its user"
	}
	return "its user " + j.Spec.User
}

// ahead says how many jobs rank before one, where that is known.
func ahead(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "; 1 job ranks before it"
	default:
		return fmt.Sprintf("; %d jobs rank before it", n)
	}
}

// Refusal says why a job is refused for good.
func (r *Renderer) Refusal(why sched.Reason) string {
	switch why.Code {
	case sched.WhyTooWide:
		return fmt.Sprintf("needs %s, there are never more than %.0f", r.Units(int(int32(why.A))), why.B)
	case sched.WhyQuota:
		return fmt.Sprintf("would hold %s, its %s may hold %.0f", r.Units(int(int32(why.A))), r.Owner, why.B)
	case sched.WhyAtRisk:
		return "would miss its deadline even alone"
	case sched.WhyNoRoom:
		return fmt.Sprintf("needs %s, %s free, and it is not to wait", r.Units(int(int32(why.A))), r.are(int32(why.B)))
	case sched.WhyAfter:
		return fmt.Sprintf("job %d, which it was to start after, ended otherwise than it wanted", why.Job)
	}
	return why.Code.String()
}
