package text

import (
	"fmt"
	"strings"
	"time"

	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/model/footprint"
	"github.com/trainyard/trainyard/sched"
)

// Vocabulary is what the sentences of one world have of their own. Its templates name what the Renderer fills in, see
// Renderer.fill.
type Vocabulary struct {
	Unit  string // what jobs hold: GPU or slot
	Owner string // of jobs: user or namespace

	figure  string // what gives a job a figure of its memory
	phrases map[phrase]string
	job     func(v *sched.View, id sched.JobID) string
	joined  func(words []string, more int) string // a list, of which more are left out
	clock   func(t, now time.Time) string
	are     func(n int32) string // so many, with the verb
	done    bool                 // a job that is done has a sentence as well: its outcome
}

// phrase is one template: a code, and which of its cases.
type phrase struct {
	code explain.Code
	is   string // "" = the only case
}

// Cases of codes.
const (
	never     = "never"     // WaitQuota: its user may never hold as many
	soon      = "soon"      // WaitUndecided: at once, or at a time that is not known
	cancelled = "cancelled" // WaitStops: for good
	goesOn    = "goes on"   // WaitStops: to go on elsewhere
	unstarted = "unstarted" // WaitRetry: it could not be started
	failed    = "failed"    // WaitRetry: its last attempt failed
)

// Machine is the vocabulary of one machine, whose jobs hold so-called units. Sentences show users which command helps.
func Machine(unit string) Vocabulary {
	return Vocabulary{Unit: unit, Owner: "user", phrases: machinePhrases, job: numbered, joined: andMore,
		figure: "state gpu_memory_gb, or let it run for 10 minutes", clock: shortClock, are: isFree}
}

var machinePhrases = map[phrase]string{
	{explain.WaitStarts, ""}:       "is about to run on {target}: its processes start",
	{explain.WaitStops, cancelled}: "was cancelled; its processes end",
	{explain.WaitStops, goesOn}:    "stops, to go on with {target}",
	{explain.WaitStops, ""}:        "stops, and then waits for its turn",
	{explain.WaitFreeing, ""}:      "is to run on {target}; {jobs have} to leave {gpus} first",
	{explain.WaitPaused, ""}:       "is paused by its user; `trainyard resume {id}` lets it wait for its turn",
	{explain.WaitAfter, ""}:        "depends on {jobs}, not done yet",
	{explain.WaitArray, ""}:        "waits for {jobs}: of its array {limit} may run at once",
	{explain.WaitUntil, ""}:        "is not to start before {until}, as its user wants",
	{explain.WaitRetry, unstarted}: "{failure}; it is tried again at {until}",
	{explain.WaitRetry, failed}:    "failed with {failure}; it is tried again at {until}, {retries}",
	{explain.WaitRetry, ""}:        "could not start, or lost its node; it is tried again at {until}",
	{explain.WaitTooWide, ""}:      "needs {needs}, and there {is} never more than {have}{of type}{unmeasured}",
	{explain.WaitQuota, ""}:        "needs {needs}, and {user} holds {have} of {limit} allowed: {jobs}{unmeasured}",
	{explain.WaitRented, ""}:       "needs {needs}, {have} {is} there; others may be rented{unmeasured}",
	{explain.WaitUnusable, ""}:     "needs {needs}, and {have} may be used{unusable}{undrain}{unmeasured}",
	{explain.WaitNeverFits, ""}: "needs {needs}, and would not fit if all were free: nodes, CPUs or memory do not " +
		"suit it{unmeasured}",
	{explain.WaitBehind, ""}: "needs {needs}, {are free}, but {first}, which needs {first allows}, is before " +
		"it and may not be passed{unmeasured}",
	{explain.WaitBusy, ""}: "needs {needs}, {are free}{held}{unmeasured}",
	{explain.WaitFragmented, ""}: "needs {needs}, {are free}, but not where they are wanted, or without the CPUs " +
		"and memory: at most {largest} on one node{unmeasured}",
	{explain.WaitReserved, ""}: "needs {needs}, {are free}, but reserved for {first}, which is before " +
		"it{unmeasured}",
	{explain.WaitUngranted, ""}: "needs {needs}, {are free}, but others make better use of them{unmeasured}",
	{explain.WaitUndecided, ""}: "needs {needs}, {are free}; {system} decides again at {until}{unmeasured}",
	{explain.WaitSystem, ""}:    "needs {needs}, {are free}; it waits for its turn{unmeasured}",
}

// Cluster is the vocabulary of a Kubernetes cluster: a namespace stands for a user, and a sentence has one reason with
// its numbers.
func Cluster() Vocabulary {
	return Vocabulary{Unit: "GPU", Owner: "namespace", phrases: clusterPhrases, job: Title, joined: commaMore,
		figure: "state sharing.memoryGiB", clock: Clock, are: areFree, done: true}
}

var clusterPhrases = map[phrase]string{
	{explain.NotWaiting, ""}:   "runs on {places}",
	{explain.WaitStarts, ""}:   "starts on {places}",
	{explain.WaitStops, ""}:    "its attempt is being stopped",
	{explain.WaitFreeing, ""}:  "waits until {jobs} has left its GPUs",
	{explain.WaitPaused, ""}:   Suspended,
	{explain.WaitAfter, ""}:    "waits for {jobs}",
	{explain.WaitArray, ""}:    "waits for {jobs}: of its array {limit} may run at once",
	{explain.WaitUntil, ""}:    "not to start before {until}",
	{explain.WaitRetry, ""}:    "it is tried again",
	{explain.WaitTooWide, ""}:  "needs {need}, there are never more than {have}",
	{explain.WaitQuota, never}: "needs {need}, its namespace may never hold more than {limit}",
	{explain.WaitQuota, ""}:    "needs {need}, its namespace holds {have} of {limit}",
	{explain.WaitRented, ""}:   "needs {need}, {are} there; more may be rented",
	{explain.WaitUnusable, ""}: "needs {need}, {have} may be used; others are down, drained, withheld or rest " +
		"after a failed start",
	{explain.WaitNeverFits, ""}:   "needs {need} placed as no empty cluster could",
	{explain.WaitBehind, ""}:      "behind {jobs}, which no one may pass",
	{explain.WaitBusy, ""}:        "needs {need}, {are free}{ahead}",
	{explain.WaitFragmented, ""}:  "needs {need}, {are free}, but no more than {largest} on one node",
	{explain.WaitReserved, ""}:    "its GPUs are reserved for {jobs}",
	{explain.WaitUngranted, ""}:   "{are free}, but others make more of what there is",
	{explain.WaitUndecided, soon}: "it fits, and waits for the next decision",
	{explain.WaitUndecided, ""}:   "it fits; the next decision is at {until}",
	{explain.WaitSystem, ""}:      "needs {need}, {are free}; the system has its own reasons",
}

// Suspended is the sentence about a job on a cluster whose user wants it to rest.
const Suspended = "suspended by its user"

// template returns the template of a code in the first of some cases that the vocabulary distinguishes; ok is false
// where it has none.
func (y *Vocabulary) template(c explain.Code, cases ...string) (template string, ok bool) {
	for _, is := range append(cases, "") {
		if template, ok = y.phrases[phrase{c, is}]; ok {
			return template, true
		}
	}
	return "", false
}

// Fact returns the text of a fact, with what its reader may do about it.
func (y *Vocabulary) Fact(text string) string {
	return strings.ReplaceAll(text, footprint.Missing, footprint.Missing+": "+y.figure)
}

// units counts units.
func (y *Vocabulary) units(n int) string {
	if n == 1 {
		return "1 " + y.Unit
	}
	return fmt.Sprintf("%d %ss", n, y.Unit)
}

// numbered names a job by its number, a task by those of its array and of itself in that, with its name where it has
// one.
func numbered(v *sched.View, id sched.JobID) string {
	spec := v.Job(id).Spec
	number := fmt.Sprintf("job %d", id)
	if a := &spec.Ties.Array; a.Size > 0 {
		number = fmt.Sprintf("job %d_%d", a.First(id), a.Index)
	}
	if spec.Name != "" {
		return fmt.Sprintf("%s (%s)", number, spec.Name)
	}
	return number
}

// Title names a job by its namespace and name.
func Title(v *sched.View, id sched.JobID) string {
	s := v.Job(id).Spec
	return s.User + "/" + s.Name
}

// andMore joins a list as in "a, b and c".
func andMore(words []string, more int) string {
	if more > 0 {
		words = append(words, fmt.Sprintf("%d more", more))
	}
	if n := len(words) - 1; n > 0 {
		return strings.Join(words[:n], ", ") + " and " + words[n]
	}
	return strings.Join(words, "")
}

// commaMore joins a list as in "a, b, c and 2 more".
func commaMore(words []string, more int) string {
	if more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(words, ", "), more)
	}
	return strings.Join(words, ", ")
}

// shortClock says the time of day, with seconds where it is near, and with the date unless that is now's.
func shortClock(t, now time.Time) string {
	clock := "15:04"
	if d := t.Sub(now); d > -2*time.Minute && d < 2*time.Minute {
		clock = time.TimeOnly
	}
	if now.Format(time.DateOnly) != t.Format(time.DateOnly) {
		clock = "2 Jan 15:04"
	}
	return t.Format(clock)
}

// Clock says when t is: on the clock, with the day where it is another than now's, in UTC, as whoever reads it may be
// anywhere.
func Clock(t, now time.Time) string {
	if t, now = t.UTC(), now.UTC(); t.Format(time.DateOnly) != now.Format(time.DateOnly) {
		return t.Format(time.DateTime + " UTC")
	}
	return t.Format(time.TimeOnly + " UTC")
}

// isFree counts with a verb, where none may be.
func isFree(n int32) string {
	if n == 0 {
		return "none is"
	}
	return fmt.Sprintf("%d %s", n, isAre(n))
}

// areFree counts with a verb.
func areFree(n int32) string { return fmt.Sprintf("%d %s", n, isAre(n)) }

func isAre(n int32) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
