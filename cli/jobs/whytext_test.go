package jobs

import (
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
)

// Ensure that why says of a job that is done when that was, how long it ran, on what and how often it started.
func TestWhyEnded(t *testing.T) {
	now := time.Now()
	at := now.UTC().Format(time.RFC3339Nano)
	for _, c := range []struct {
		job  api.Job
		want string
	}{
		{api.Job{Ended: at, Started: at, Want: 2, Min: 2, Max: 2, RunSec: 200, GPUSeconds: 400, Attempt: 1},
			"; it ran 3m20s on 2 slots, in 1 attempt"},
		{api.Job{Ended: at, Started: at, Want: 1, Min: 1, Max: 1, RunSec: 7, GPUSeconds: 7, Attempt: 3},
			"; it ran 7s on 1 slot, in 3 attempts"},
		{api.Job{Ended: at, Started: at, Want: 4, Min: 1, Max: 4, RunSec: 10, GPUSeconds: 25, Attempt: 2},
			"; it ran 10s on 2.5 slots on average, in 2 attempts"},
		{api.Job{Ended: at, Started: at, Want: 4, Min: 1, Max: 4, Attempt: 1},
			"; it ran 0s on 1-4 slots, in 1 attempt"},
		{api.Job{Ended: at, Want: 1, Min: 1, Max: 1}, "; it never ran"},
	} {
		if got := endedText(&c.job, "slot", now); got != now.Format(time.TimeOnly)+c.want {
			t.Errorf("%s, want it to end with %q", got, c.want)
		}
	}
	doc := api.Why{Job: api.Job{ID: 3, Name: "a", State: "done", Ended: at, Started: at, Want: 1, Min: 1, Max: 1,
		RunSec: 7, Attempt: 1}, Sentence: "is done: finished", Unit: "slot"}
	want := "job 3 (a) is done: finished.\nended     " + now.Format(time.TimeOnly) +
		"; it ran 7s on 1 slot, in 1 attempt\n"
	if got := whyText(&doc, 80, now); got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
	stopped := api.Job{ID: 3, Name: "a", State: "waiting", Attempt: 1, Text: "saved (step 1200)\x1b"}
	doc = api.Why{Job: stopped, Sentence: "waits"}
	want = "job 3 (a) waits.\nstopped   saved (step 1200)"
	if got := whyText(&doc, 80, now); !strings.HasPrefix(got, want) || strings.Contains(got, "\x1b") {
		t.Errorf("%q, want %q", got, want)
	}
}

// Ensure that one is one: of figures, and of names that are written as a number.
func TestOneIsOne(t *testing.T) {
	list := []api.Figure{{Name: "fewest", Value: 1, Unit: "GPUs"}, {Name: "widest-now", Value: 2, Unit: "GPUs"},
		{Name: "attained-service", Value: 1, Unit: "GPU-seconds"}}
	if got := figuresText(list, "slot"); got != "fewest 1 slot; widest now 2 slots; attained service 1 slot-seconds" {
		t.Error(got)
	}
	older := 0
	for n, want := range map[int]string{4: "so it is with 1 more name\n", 5: "so it is with 2 more names\n"} {
		doc := api.Submitted{Jobs: make([]api.Estimate, n)}
		for i := range doc.Jobs {
			doc.Jobs[i].Older = &older
		}
		if got := sameNames(&doc); !strings.HasSuffix(got, want) {
			t.Errorf("%s, want it to end with %q", got, want)
		}
	}
}

// Ensure that a program whose name is a number makes a job with a name that is none.
func TestNumberProgram(t *testing.T) {
	f := handIn{gpus: "1"}
	s, err := f.inline(newSubmit(), []string{"/opt/" + strings.Repeat("7", 100)})
	if err != nil || !strings.Contains(s.File, `"name":"job-`+strings.Repeat("7", 60)+`"`) {
		t.Errorf("%s, %v", s.File, err)
	}
}

// Ensure that why prints no text that a job or a device wrote over more than a line, and nothing in it that a terminal
// would follow.
func TestWhyIsShort(t *testing.T) {
	long := "boom \x1b]0;title\x07\n" + strings.Repeat("x", 1<<20) + "\x1b[31m" + strings.Repeat("é y\n", 1<<18)
	doc := api.Why{Job: api.Job{ID: 3, Name: "a", State: "waiting", Failure: &api.Failure{Attempt: 1, Text: long,
		Tail: []string{strings.Repeat("\x1b[31mred", 1000), strings.Repeat("é", 1000)}}},
		Sentence: "failed with " + long + "; retry 1 of 2", Unit: "slot", Remark: "short"}
	const width = 80
	got := whyText(&doc, width, time.Now())
	if len(got) > 4000 || strings.Count(got, "\n") > 12 || strings.Contains(got, "title") ||
		!strings.Contains(got, "retry 1 of 2") || !strings.Contains(got, "boom") {
		t.Errorf("%d bytes, %d lines: %.2000q", len(got), strings.Count(got, "\n"), got)
	}
	doc.Job.Failure.Text, doc.Sentence = "exit code 7", "failed with exit code 7; retry 1 of 2"
	want := "job 3 (a) failed with exit code 7; retry 1 of 2.\n"
	if got := whyText(&doc, width, time.Now()); !strings.HasPrefix(got, want) {
		t.Error(got)
	}
}
