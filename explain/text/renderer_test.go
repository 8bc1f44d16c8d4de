package text_test

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/explain/text"
	"github.com/trainyard/trainyard/model/footprint"
	"github.com/trainyard/trainyard/sched"
)

const minute = sched.Time(time.Minute)

// stage is a machine of 8 slots on which bert (1) and gpt (2) run; the others of its jobs wait, or are said to.
func stage() text.Renderer {
	job := func(name, user string, gpus int, target ...sched.GPUID) sched.Job {
		j := sched.Job{Spec: &sched.JobSpec{Name: name, User: user, GPUs: sched.Rigid(gpus)}, State: sched.Waiting,
			Target: target, GPUs: target}
		if len(target) > 0 {
			j.State, j.Attempt = sched.Active, sched.Running
		}
		return j
	}
	v := &sched.View{Now: 10 * minute, Jobs: []sched.Job{job("resnet", "ann", 4), job("bert", "bob", 3, 0, 1, 2),
		job("gpt", "ann", 2, 3, 4), job("", "", 1), job("", "", 1, 5)},
		Nodes: []sched.Node{{Spec: sched.NodeSpec{GPUs: 8,
			Devices: strings.Fields("slot-0 slot-1 slot-2 slot-3 slot-4 slot-5 slot-6 slot-7")}}},
		GPUs: make([]sched.GPU, 8)}
	for g, s := range []sched.GPUState{sched.GPUInUse, sched.GPUForeign, sched.GPUMissing, sched.GPUStuck,
		sched.GPUWithheld} {
		v.GPUs[g].State = s
	}
	v.GPUs[5].Quarantined = true
	span := func(p10, p50, p90 sched.Time) explain.Span { return explain.Span{P10: p10, P50: p50, P90: p90} }
	return text.Renderer{Vocabulary: text.Machine("slot"), View: v, System: "las",
		Origin: time.Date(2026, 5, 4, 13, 0, 0, 0, time.UTC),
		Forecast: &explain.Forecast{Jobs: []explain.Estimate{{Job: 1, End: span(50*minute, 70*minute, 90*minute)},
			{Job: 2, End: span(20*minute, 30*minute, sched.Never)}}}}
}

// Ensure that every constraint is reported in a sentence with its numbers, the very words.
func TestSentences(t *testing.T) {
	reported := map[explain.Code]bool{explain.NotWaiting: true}
	at := func(f func(j *sched.Job)) func(*text.Renderer) {
		return func(t *text.Renderer) { f(&t.View.Jobs[0]) }
	}
	ends := func(last text.Failure, f func(j *sched.Job)) func(*text.Renderer) {
		return func(t *text.Renderer) {
			f(&t.View.Jobs[0])
			t.Last = func(sched.JobID) text.Failure { return last }
		}
	}
	for _, c := range []struct {
		w    explain.Waiting
		with func(*text.Renderer)
		want string
	}{
		{explain.Waiting{}, nil, ""},
		{explain.Waiting{Code: explain.WaitStarts}, at(func(j *sched.Job) { j.Target = []sched.GPUID{6, 7} }),
			"is about to run on 2 slots: its processes start"},
		{explain.Waiting{Code: explain.WaitStops}, at(func(j *sched.Job) { j.Cancel = true }),
			"was cancelled; its processes end"},
		{explain.Waiting{Code: explain.WaitStops}, at(func(j *sched.Job) { j.Target = []sched.GPUID{6} }),
			"stops, to go on with 1 slot"},
		{explain.Waiting{Code: explain.WaitStops}, nil, "stops, and then waits for its turn"},
		{explain.Waiting{Code: explain.WaitFreeing, Jobs: []sched.JobID{1}, GPUs: []sched.GPUID{0, 1}},
			at(func(j *sched.Job) { j.Target = []sched.GPUID{0, 1, 6, 7} }),
			"is to run on 4 slots; job 1 (bert) has to leave slot-0, slot-1 first"},
		{explain.Waiting{Code: explain.WaitFreeing, Jobs: []sched.JobID{1, 2}, GPUs: []sched.GPUID{0, 1, 2, 3, 4}},
			at(func(j *sched.Job) { j.Target = []sched.GPUID{0, 1, 2, 3, 4} }),
			"is to run on 5 slots; job 1 (bert) and job 2 (gpt) have to leave slot-0, slot-1, slot-2, 2 more first"},
		{explain.Waiting{Code: explain.WaitPaused}, nil, "is paused by its user; `trainyard resume 0` lets it wait " +
			"for its turn"},
		{explain.Waiting{Code: explain.WaitAfter, Jobs: []sched.JobID{1, 2, 3, 4}}, nil,
			"depends on job 1 (bert), job 2 (gpt), job 3 and 1 more, not done yet"},
		{explain.Waiting{Code: explain.WaitArray, Limit: 2, Jobs: []sched.JobID{1, 2}}, nil,
			"waits for job 1 (bert) and job 2 (gpt): of its array 2 may run at once"},
		{explain.Waiting{Code: explain.WaitUntil, Until: 70 * minute}, nil, "is not to start before 14:10, as its " +
			"user wants"},
		{explain.Waiting{Code: explain.WaitRetry, Until: 10*minute + 30e9}, nil, "could not start, or lost its node; " +
			"it is tried again at 13:10:30"},
		{explain.Waiting{Code: explain.WaitRetry, Until: 70 * minute},
			ends(text.Failure{Text: "exit code 75"}, func(j *sched.Job) { j.Failures, j.Spec.Retries = 1, 2 }),
			"failed with exit code 75; it is tried again at 14:10, retry 1 of 2"},
		{explain.Waiting{Code: explain.WaitRetry, Until: 70 * minute},
			ends(text.Failure{Starts: 2, Text: "could not be started: device slot-1 is in use"}, func(*sched.Job) {}),
			"could not be started: device slot-1 is in use; it is tried again at 14:10"},
		{explain.Waiting{Code: explain.WaitBusy, Need: 2, Have: 1, Jobs: []sched.JobID{4}},
			at(func(j *sched.Job) { j.Spec.GPUs = sched.Range{Min: 2, Want: 4, Max: 4} }),
			"needs 2 of 2-4 slots, 1 is free, 1 held by job 4"},
		{explain.Waiting{Code: explain.WaitUngranted, Need: 4, Have: 7, Unmeasured: true},
			at(func(j *sched.Job) { j.Spec.GPUs = sched.Range{Min: 2, Want: 4, Max: 4} }),
			"needs 4 of 2-4 slots, 7 are free, but others make better use of them; las gives it 4 or none: speeds at " +
				"other widths are learned by `model`, and it names none"},
		{explain.Waiting{Code: explain.WaitUngranted, Need: 4, Have: 7, Unmeasured: true},
			at(func(j *sched.Job) { j.Spec.Model, j.Spec.GPUs = "m", sched.Range{Min: 2, Want: 4, Max: 4} }),
			"needs 4 of 2-4 slots, 7 are free, but others make better use of them; las gives it 4 or none: nothing " +
				"is known of its speed at other widths"},
		{explain.Waiting{Code: explain.WaitUnusable, Need: 4, Have: 0, GPUs: []sched.GPUID{0}},
			func(t *text.Renderer) { t.View.Nodes[0].State = sched.NodeDraining },
			"needs 4 slots, and 0 may be used: slot-0 is drained with its node; `trainyard undrain` lets jobs start " +
				"there again"},
		{explain.Waiting{Code: explain.WaitTooWide, Need: 9, Have: 8}, nil, "needs 9 slots, and there are never more " +
			"than 8"},
		{explain.Waiting{Code: explain.WaitTooWide, Need: 9, Have: 1, Type: 1},
			func(t *text.Renderer) { t.View.Types = []string{"v100", "h100"} },
			"needs 9 slots, and there is never more than 1 of type h100"},
		{explain.Waiting{Code: explain.WaitTooWide, Need: 9, Have: 1, Type: 1},
			func(t *text.Renderer) {
				t.View.Types, t.View.Jobs[0].Spec.Types = []string{"v100", "h100"}, sched.TypeSet(0).With(1)
			},
			"needs 9 slots of type h100, and there is never more than 1 of type h100"},
		{explain.Waiting{Code: explain.WaitQuota, Need: 4, Have: 2, Limit: 3, Jobs: []sched.JobID{2}}, nil,
			"needs 4 slots, and its user ann holds 2 of 3 allowed: job 2 (gpt)"},
		{explain.Waiting{Code: explain.WaitRented, Need: 10, Have: 8}, nil, "needs 10 slots, 8 are there; others may " +
			"be rented"},
		{explain.Waiting{Code: explain.WaitUnusable, Need: 6, Have: 3, GPUs: []sched.GPUID{1, 2, 3, 4, 5}}, nil,
			"needs 6 slots, and 3 may be used: slot-1 is used by others, slot-2 is missing, slot-3 is not freed by " +
				"processes that ended, 2 more are not to be used; `trainyard undrain slot-4` lets jobs start there " +
				"again"},
		{explain.Waiting{Code: explain.WaitUnusable, Need: 6, Have: 3, GPUs: []sched.GPUID{1, 2, 3, 5}}, nil,
			"needs 6 slots, and 3 may be used: slot-1 is used by others, slot-2 is missing, slot-3 is not freed by " +
				"processes that ended, 1 more is not to be used"},
		{explain.Waiting{Code: explain.WaitUnusable, Need: 7, Have: 6, GPUs: []sched.GPUID{4, 5}}, nil,
			"needs 7 slots, and 6 may be used: slot-4 is drained, slot-5 is quarantined; `trainyard undrain slot-4` " +
				"lets jobs start there again"},
		{explain.Waiting{Code: explain.WaitUnusable, Need: 7, Have: 6}, nil, "needs 7 slots, and 6 may be used"},
		{explain.Waiting{Code: explain.WaitNeverFits, Need: 5, Have: 8}, nil, "needs 5 slots, and would not fit if " +
			"all were free: nodes, CPUs or memory do not suit it"},
		{explain.Waiting{Code: explain.WaitBehind, Need: 1, Have: 2, Jobs: []sched.JobID{0}}, nil,
			"needs 1 slot, 2 are free, but job 0 (resnet), which needs 4 slots, is before it and may not be passed"},
		{explain.Waiting{Code: explain.WaitBusy, Need: 4, Have: 3, Jobs: []sched.JobID{1}}, nil,
			"needs 4 slots, 3 are free, 3 held by job 1 (bert) until about 14:10 ± 20 min"},
		{explain.Waiting{Code: explain.WaitBusy, Need: 4, Have: 1, Jobs: []sched.JobID{4, 1, 2}, Until: 12 * minute},
			nil,
			"needs 4 slots, 1 is free, 2 held by job 2 (gpt) until 13:20 or later, 3 held by job 1 (bert) until " +
				"about 14:10 ± 20 min, 1 held by job 4; " +
				"one of them may be preempted from 13:12 on"},
		{explain.Waiting{Code: explain.WaitBusy, Need: 4}, nil, "needs 4 slots, none is free"},
		{explain.Waiting{Code: explain.WaitFragmented, Need: 3, Have: 3, Largest: 2}, nil,
			"needs 3 slots, 3 are free, but not where they are wanted, or without the CPUs and memory: at most 2 on " +
				"one node"},
		{explain.Waiting{Code: explain.WaitReserved, Need: 2, Have: 2, Jobs: []sched.JobID{0}}, nil,
			"needs 2 slots, 2 are free, but reserved for job 0 (resnet), which is before it"},
		{explain.Waiting{Code: explain.WaitUngranted, Need: 2, Have: 7}, nil, "needs 2 slots, 7 are free, but others " +
			"make better use of them"},
		{explain.Waiting{Code: explain.WaitUndecided, Need: 2, Have: 7, Until: 15 * minute}, nil,
			"needs 2 slots, 7 are free; las decides again at 13:15"},
		{explain.Waiting{Code: explain.WaitSystem, Need: 2, Have: 4}, nil, "needs 2 slots, 4 are free; it waits for " +
			"its turn"},
	} {
		s := stage()
		if c.with != nil {
			c.with(&s)
		}
		reported[c.w.Code] = true
		if got := s.Sentence(0, &c.w); got != c.want {
			t.Errorf("%v:\n%s, want\n%s", c.w.Code, got, c.want)
		}
	}
	for code := explain.NotWaiting; !strings.HasPrefix(code.String(), "wait-"); code++ {
		if !reported[code] {
			t.Errorf("%v has no words", code)
		}
	}
}

// Ensure that it says what a forecast rests on, and how little that is.
func TestRests(t *testing.T) {
	s := stage()
	for _, c := range []struct {
		f    *explain.Forecast
		want string
	}{
		{nil, ""},
		{&explain.Forecast{Draws: 20}, "no job that has ended: a guess"},
		{&explain.Forecast{Draws: 20, Ended: 1}, "1 job that has ended: a rough guess"},
		{&explain.Forecast{Draws: 20, Ended: 9}, "9 jobs that have ended: a rough guess"},
		{&explain.Forecast{Draws: 20, Ended: 70}, "70 jobs that have ended"},
		{&explain.Forecast{Draws: 3, Ended: 70}, "70 jobs that have ended; there was no time to simulate more than a " +
			"few futures"},
	} {
		if s.Forecast = c.f; s.Rests() != c.want {
			t.Errorf("%q, want %q", s.Rests(), c.want)
		}
	}
}

// Ensure that times are reported as exactly as they are known.
func TestAround(t *testing.T) {
	s := stage()
	for _, c := range []struct {
		p10, p50, p90 sched.Time
		want          string
	}{
		{70 * minute, 70 * minute, 70 * minute, "about 14:10"},
		{60 * minute, 70 * minute, 80 * minute, "about 14:10 ± 10 min"},
		{30 * minute, 40 * minute, 200 * minute, "some time from 13:30 to 16:20"},
		{11 * minute, 11*minute + 5e9, 11*minute + 8e9, "about 13:11:05 ± 5 s"},
		{20 * 60 * minute, 26 * 60 * minute, 34 * 60 * minute, "about 5 May 15:00 ± 8 h"},
		{70 * minute, 80 * minute, sched.Never, "14:10 or later"},
		{sched.Never, sched.Never, sched.Never, "a time that is unknown"},
	} {
		if got := s.Around(explain.Span{P10: c.p10, P50: c.p50, P90: c.p90}); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// Ensure that reasons give times by the clock, with the day where it is another, and count one GPU as one.
func TestReason(t *testing.T) {
	const hour = sched.Time(time.Hour)
	origin := time.Date(2026, 11, 22, 15, 0, 30, 0, time.FixedZone("CET", 3600))
	v := &sched.View{Now: hour, Jobs: []sched.Job{{Spec: &sched.JobSpec{User: "lab", Name: "a"}, State: sched.Waiting}}}
	for want, w := range map[string]explain.Waiting{
		"it fits; the next decision is at 15:05:30 UTC": {
			Code: explain.WaitUndecided, Until: hour + 300e9},
		"it fits; the next decision is at 2026-11-23 00:00:30 UTC": {
			Code: explain.WaitUndecided, Until: 10 * hour},
		"it fits, and waits for the next decision": {
			Code: explain.WaitUndecided},
		"not to start before 16:00:30 UTC": {
			Code: explain.WaitUntil, Until: 2 * hour},
		"needs 1 GPU, 0 are free": {
			Code: explain.WaitBusy, Need: 1},
		"needs 2 GPUs, 1 is free; 2 jobs rank before it": {
			Code: explain.WaitBusy, Need: 2, Have: 1, Ahead: []sched.JobID{0, 0}},
		"needs 1 GPU, 0 may be used; others are down, drained, withheld or rest after a failed start": {
			Code: explain.WaitUnusable, Need: 1},
		"needs 2 GPUs, its namespace holds 6 of 6": {
			Code: explain.WaitQuota, Need: 2, Have: 6, Limit: 6},
		"needs 8 GPUs, its namespace may never hold more than 6": {
			Code: explain.WaitQuota, Need: 8, Limit: 6},
		"3 are free, but others make more of what there is": {
			Code: explain.WaitUngranted, Have: 3},
	} {
		r := text.Renderer{Vocabulary: text.Cluster(), View: v, Origin: origin}
		if got := r.Sentence(0, &w); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// everyCode is a job on which each code can be said, with numbers that show which blank of a template is which.
func everyCode(y text.Vocabulary) (*text.Renderer, explain.Waiting) {
	r := stage()
	r.Vocabulary, r.Forecast = y, nil
	for i := range r.View.Jobs {
		j := &r.View.Jobs[i]
		j.Spec.Name, j.Spec.User = "abcde"[i:i+1], "lab"
	}
	r.View.Nodes[0].Spec.Name = "n"
	r.View.Jobs[0].GPUs = []sched.GPUID{6, 7}
	return &r, explain.Waiting{Need: 4, Have: 3, Limit: 5, Largest: 2, Until: 70 * minute, Jobs: []sched.JobID{1, 2},
		GPUs: []sched.GPUID{3, 4}, Ahead: []sched.JobID{1, 2}}
}

// Ensure that each code has its sentence in both vocabularies, the very words of testdata/codes.txt.
func TestEveryCode(t *testing.T) {
	golden, err := os.ReadFile("testdata/codes.txt")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for code := explain.NotWaiting; !strings.HasPrefix(code.String(), "wait-"); code++ {
		fmt.Fprintf(&b, "%s\n", cmp.Or(code.String(), "not waiting"))
		for _, y := range []text.Vocabulary{text.Machine("slot"), text.Cluster()} {
			r, w := everyCode(y)
			w.Code = code
			said := r.Sentence(0, &w)
			if said == code.String() && said != "" {
				t.Errorf("%v has no sentence for %ss of a %s", code, y.Unit, y.Owner)
			}
			fmt.Fprintf(&b, "  %s: %s\n", y.Owner, said)
		}
	}
	if b.String() != string(golden) {
		t.Errorf("testdata/codes.txt is not what is said:\n%s", b.String())
	}
}

// Ensure that a job without a figure of its memory hears what gives it one where it runs.
func TestFact(t *testing.T) {
	machine, cluster := text.Machine("GPU"), text.Cluster()
	for _, c := range []struct {
		words *text.Vocabulary
		want  string
	}{
		{&machine, "state gpu_memory_gb, or let it run for 10 minutes"}, {&cluster, "state sharing.memoryGiB"},
	} {
		if got := c.words.Fact("bert: " + footprint.Missing); got != "bert: "+footprint.Missing+": "+c.want {
			t.Errorf("%q", got)
		}
		if got := c.words.Fact("20 GB, stated"); got != "20 GB, stated" {
			t.Errorf("%q", got)
		}
	}
}
