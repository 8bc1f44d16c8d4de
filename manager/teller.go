package manager

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/manager/whatif"
	"github.com/trainyard/trainyard/sched"
)

// Teller says in sentences how jobs of a View stand.
type Teller struct {
	View     *sched.View
	Unit     string // what jobs hold: GPU or slot
	System   string
	Origin   time.Time             // of the View's times; sentences have those of its zone
	Row      func(sched.JobID) Row // how the last attempts of jobs ended; nil = it is not known
	Forecast *whatif.Forecast      // nil = the future is not known
}

// Name names a job in a sentence.
func (t *Teller) Name(id sched.JobID) string {
	if name := t.View.Job(id).Spec.Name; name != "" {
		return fmt.Sprintf("job %d (%s)", id, name)
	}
	return fmt.Sprintf("job %d", id)
}

// Sentence says why job id stands as it does, of which w is what binds it; "" of one that runs or is done.
func (t *Teller) Sentence(id sched.JobID, w *explain.Waiting) string {
	j := t.View.Job(id)
	switch w.Code {
	case explain.NotWaiting:
		return ""
	case explain.WaitStarts:
		return "is about to run on " + t.Units(len(j.Target)) + ": its processes start"
	case explain.WaitStops:
		return t.stops(j)
	case explain.WaitFreeing:
		return fmt.Sprintf("is to run on %s; %s to leave %s first", t.Units(len(j.Target)), verb(t.names(w.Jobs), len(w.Jobs), "has", "have"), t.gpus(w.GPUs))
	case explain.WaitPaused:
		return fmt.Sprintf("is paused by its user; `trainyard resume %d` lets it wait for its turn", id)
	case explain.WaitAfter:
		return fmt.Sprintf("depends on %s, not done yet", t.names(w.Jobs))
	case explain.WaitUntil:
		return "is not to start before " + t.Time(w.Until) + ", as its user wants"
	case explain.WaitRetry:
		return t.retry(id, w)
	}
	return fmt.Sprintf("needs %s, %s%s", t.needs(j, w), t.lacks(j, w), t.unmeasured(j, w))
}

// needs counts what a job would be started with, of the widths that it allows.
func (t *Teller) needs(j *sched.Job, w *explain.Waiting) string {
	if r := j.Spec.GPUs; r.Min != r.Max {
		return fmt.Sprintf("%d of %s %ss", w.Need, Widths(r), t.Unit)
	}
	return t.Units(int(w.Need))
}

// allows says which widths a job allows.
func (t *Teller) allows(id sched.JobID) string {
	r := t.View.Job(id).Spec.GPUs
	if r.Min == r.Max {
		return t.Units(int(r.Min))
	}
	return fmt.Sprintf("%s %ss", Widths(r), t.Unit)
}

// Widths writes the widths that a job allows: "2", or "2-4".
func Widths(r sched.Range) string {
	if r.Min == r.Max {
		return strconv.Itoa(int(r.Min))
	}
	return fmt.Sprintf("%d-%d", r.Min, r.Max)
}

// unmeasured says why a job is looked at with one of its widths alone.
func (t *Teller) unmeasured(j *sched.Job, w *explain.Waiting) string {
	if !w.Unmeasured {
		return ""
	}
	return fmt.Sprintf("; %s gives it %d or none: %s", t.System, w.Need, unknownSpeed(j))
}

// Unmeasured says of a job that runs why it is left at its width.
func (t *Teller) Unmeasured(id sched.JobID) string {
	j := t.View.Job(id)
	return fmt.Sprintf("%s leaves it at %d of %s: %s", t.System, len(j.GPUs), Widths(j.Spec.GPUs), unknownSpeed(j))
}

// unknownSpeed says why nothing is known of the speed of a job at other widths.
func unknownSpeed(j *sched.Job) string {
	if j.Spec.Model == "" {
		return "speeds at other widths are learned by `model`, and it names none"
	}
	return "nothing is known of its speed at other widths"
}

// retry says of a job whose attempt came to nothing when the next one comes.
func (t *Teller) retry(id sched.JobID, w *explain.Waiting) string {
	var row Row
	if t.Row != nil {
		row = t.Row(id)
	}
	again := "it is tried again at " + t.Time(w.Until)
	switch {
	case row.Failures > 0:
		return row.Failure() + "; " + again
	case row.Failed():
		return fmt.Sprintf("failed with %s; %s, %s", row.Failure(), again, retries(t.View.Job(id)))
	}
	return "could not start, or lost its node; " + again
}

// Failed says how the last attempt of job id failed and what comes of it.
func (t *Teller) Failed(id sched.JobID, row *Row) string {
	if row.Failures > 0 {
		return row.Failure()
	}
	return fmt.Sprintf("failed with %s; %s", row.Failure(), retries(t.View.Job(id)))
}

// stops says what happens to an attempt that is to end.
func (t *Teller) stops(j *sched.Job) string {
	switch {
	case j.Cancel:
		return "was cancelled; its processes end"
	case len(j.Target) > 0:
		return fmt.Sprintf("stops, to go on with %s", t.Units(len(j.Target)))
	}
	return "stops, and then waits for its turn"
}

// lacks says what a job lacks that may be given what it needs.
func (t *Teller) lacks(j *sched.Job, w *explain.Waiting) string {
	are := fmt.Sprintf("%d %s free", w.Have, isAre(w.Have))
	if w.Have == 0 {
		are = "none is free"
	}
	switch w.Code {
	case explain.WaitTooWide:
		return fmt.Sprintf("and there %s never more than %d%s", isAre(w.Have), w.Have, t.ofType(w.Type))
	case explain.WaitQuota:
		return fmt.Sprintf("and %s holds %d of %d allowed: %s", user(j), w.Have, w.Limit, t.names(w.Jobs))
	case explain.WaitRented:
		return fmt.Sprintf("%d %s there; others may be rented", w.Have, isAre(w.Have))
	case explain.WaitUnusable:
		return fmt.Sprintf("and %d may be used%s%s", w.Have, t.unusable(w.GPUs), t.undrain(w.GPUs))
	case explain.WaitNeverFits:
		return "and would not fit if all were free: nodes, CPUs or memory do not suit it"
	case explain.WaitBehind:
		return fmt.Sprintf("%s, but %s, which needs %s, is before it and may not be passed", are, t.Name(w.Jobs[0]), t.allows(w.Jobs[0]))
	case explain.WaitBusy:
		return are + t.held(w)
	case explain.WaitFragmented:
		return fmt.Sprintf("%s, but not where they are wanted, or without the CPUs and memory: at most %d on one node", are, w.Largest)
	case explain.WaitReserved:
		return fmt.Sprintf("%s, but reserved for %s, which is before it", are, t.Name(w.Jobs[0]))
	case explain.WaitUngranted:
		return are + ", but others make better use of them"
	case explain.WaitUndecided:
		return fmt.Sprintf("%s; %s decides again at %s", are, t.System, t.Time(w.Until))
	}
	return are + "; it waits for its turn"
}

// most is how many of a list are named.
const most = 3

// held says who holds what a job needs, those first who are expected to end first, and until when.
func (t *Teller) held(w *explain.Waiting) string {
	if len(w.Jobs) == 0 {
		return ""
	}
	holders := slices.Clone(w.Jobs)
	slices.SortStableFunc(holders, func(a, b sched.JobID) int { return cmp.Compare(t.end(a), t.end(b)) })
	var parts []string
	for _, id := range holders[:min(len(holders), most)] {
		part := fmt.Sprintf("%d held by %s", len(t.View.Job(id).Target), t.Name(id))
		if e := t.Forecast.Of(id); e != nil {
			part += " until " + t.Around(e.End)
		}
		parts = append(parts, part)
	}
	text := ", " + strings.Join(parts, ", ")
	if n := len(holders) - most; n > 0 {
		text += fmt.Sprintf(", and more by %d others", n)
	}
	if w.Until > 0 {
		text += "; one of them may be preempted from " + t.Time(w.Until) + " on"
	}
	return text
}

// end is when job id is expected to end.
func (t *Teller) end(id sched.JobID) sched.Time {
	if e := t.Forecast.Of(id); e != nil {
		return e.End.P50
	}
	return sched.Never
}

// names lists jobs.
func (t *Teller) names(jobs []sched.JobID) string {
	var words []string
	for _, id := range jobs[:min(len(jobs), most)] {
		words = append(words, t.Name(id))
	}
	if n := len(jobs) - most; n > 0 {
		words = append(words, fmt.Sprintf("%d more", n))
	}
	if n := len(words) - 1; n > 0 {
		return strings.Join(words[:n], ", ") + " and " + words[n]
	}
	return strings.Join(words, "")
}

// gpus lists GPUs.
func (t *Teller) gpus(list []sched.GPUID) string {
	var words []string
	for _, g := range list[:min(len(list), most)] {
		words = append(words, GPUName(t.View, g))
	}
	if n := len(list) - most; n > 0 {
		words = append(words, fmt.Sprintf("%d more", n))
	}
	return strings.Join(words, ", ")
}

// unusable says of GPUs why none of them may be used.
func (t *Teller) unusable(list []sched.GPUID) string {
	var words []string
	for _, g := range list[:min(len(list), most)] {
		words = append(words, GPUName(t.View, g)+" is "+unusable(t.View, g))
	}
	if n := len(list) - most; n > 0 {
		words = append(words, fmt.Sprintf("%d more %s not to be used", n, isAre(int32(n))))
	}
	if len(words) == 0 {
		return ""
	}
	return ": " + strings.Join(words, ", ")
}

// undrain says how those of the GPUs that a user drained may be used again.
func (t *Teller) undrain(list []sched.GPUID) string {
	var words []string
	for _, g := range list {
		gpu := &t.View.GPUs[g]
		if t.View.Nodes[gpu.Node].State == sched.NodeDraining {
			return "; `trainyard undrain` lets jobs start there again"
		}
		if gpu.State == sched.GPUWithheld {
			words = append(words, GPUName(t.View, g))
		}
	}
	if len(words) == 0 {
		return ""
	}
	return fmt.Sprintf("; `trainyard undrain %s` lets jobs start there again", strings.Join(words, " "))
}

// GPUName names a GPU as its driver does.
func GPUName(v *sched.View, g sched.GPUID) string {
	n := &v.Nodes[v.GPUs[g].Node]
	if n.Spec.Devices == nil {
		return strconv.Itoa(int(g))
	}
	return n.Spec.Devices[g-n.First]
}

// unusable says in a word or two why a GPU may not be used.
func unusable(v *sched.View, g sched.GPUID) string {
	gpu := &v.GPUs[g]
	switch {
	case gpu.State == sched.GPUForeign:
		return "used by others"
	case gpu.State == sched.GPUMissing:
		return "missing"
	case gpu.State == sched.GPUStuck:
		return "not freed by processes that ended"
	case gpu.State == sched.GPUWithheld:
		return "drained"
	case gpu.Quarantined:
		return "quarantined"
	case gpu.Rests != 0:
		return "resting after a failed start"
	case v.Nodes[gpu.Node].State == sched.NodeDraining:
		return "drained with its node"
	}
	return "down"
}

// ofType names the type of GPUs where there are several.
func (t *Teller) ofType(id sched.TypeID) string {
	if len(t.View.Types) < 2 || int(id) >= len(t.View.Types) {
		return ""
	}
	return " of type " + t.View.Types[id]
}

// Units counts GPUs or slots.
func (t *Teller) Units(n int) string {
	if n == 1 {
		return "1 " + t.Unit
	}
	return fmt.Sprintf("%d %ss", n, t.Unit)
}

// Time says a time for people: the time of day, with its date unless that is the View's.
func (t *Teller) Time(at sched.Time) string {
	now, then := t.Origin.Add(time.Duration(t.View.Now)), t.Origin.Add(time.Duration(at))
	clock := "15:04"
	if d := at.Sub(t.View.Now); d > -2*time.Minute && d < 2*time.Minute {
		clock = time.TimeOnly
	}
	if now.Format(time.DateOnly) != then.Format(time.DateOnly) {
		clock = "2 Jan 15:04"
	}
	return then.Format(clock)
}

// Around says an interval of time for people: "about 14:10 ± 20 min".
func (t *Teller) Around(s whatif.Span) string {
	switch {
	case s.P10 == sched.Never:
		return "a time that is not in sight"
	case s.P90 == sched.Never:
		return t.Time(s.P10) + " or later"
	}
	before, after := s.P50.Sub(s.P10), s.P90.Sub(s.P50)
	width := max(before, after)
	switch {
	case width < time.Second:
		return "about " + t.Time(s.P50)
	case width > 2*min(before, after) && width > time.Minute: // "about" would not do
		return fmt.Sprintf("some time from %s to %s", t.Time(s.P10), t.Time(s.P90))
	}
	return fmt.Sprintf("about %s ± %s", t.Time(s.P50), coarse(width))
}

// Rests says what the forecast rests on, "" if there is none.
func (t *Teller) Rests() string {
	f := t.Forecast
	const rough = 10 // of so few jobs no distribution is known
	switch {
	case f == nil:
		return ""
	case f.Ended == 0:
		return "no job that has ended: a guess"
	case f.Ended == 1:
		return "1 job that has ended: a rough guess"
	case f.Ended < rough:
		return fmt.Sprintf("%d jobs that have ended: a rough guess", f.Ended)
	}
	text := fmt.Sprintf("%d jobs that have ended", f.Ended)
	if f.Draws < 9 {
		text += "; there was no time to simulate more than a few futures"
	}
	return text
}

// coarse says a duration in one unit.
func coarse(d time.Duration) string {
	const day = 24 * time.Hour
	for _, u := range []struct {
		unit time.Duration
		word string
	}{{day, "days"}, {time.Hour, "h"}, {time.Minute, "min"}} {
		if d >= 2*u.unit {
			return fmt.Sprintf("%d %s", (d+u.unit/2)/u.unit, u.word)
		}
	}
	return fmt.Sprintf("%d s", (d+time.Second/2)/time.Second)
}

func isAre(n int32) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// verb puts a verb behind a subject of so many.
func verb(subject string, n int, one, many string) string {
	if n == 1 {
		return subject + " " + one
	}
	return subject + " " + many
}

func user(j *sched.Job) string {
	if j.Spec.User == "" {
		return "its user"
	}
	return "its user " + j.Spec.User
}

// Rule says in words by which rule a job lost its GPUs.
func (t *Teller) Rule(d *whatif.Displacement) string {
	switch {
	case d.Why == sched.WhyPreempted && d.By != sched.None:
		return "by " + t.Name(d.By) + ", which is before it"
	case d.Why == sched.NoReason:
		return "by a decision of " + t.System
	}
	return fmt.Sprintf("by a decision of %s (%v)", t.System, d.Why)
}
