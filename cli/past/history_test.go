package past

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
	"github.com/trainyard/trainyard/whatif/whatiftest"
)

func read(t *testing.T, log string) *History {
	t.Helper()
	return readAt(t, log, 0)
}

func readAt(t *testing.T, log string, now sched.Time) *History {
	t.Helper()
	r, err := eventlog.NewReader(strings.NewReader(log), "log")
	if err != nil {
		t.Fatal(err)
	}
	h, err := ReadHistory(r, now, nil)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Ensure that a recorded simulation, read from its log and simulated again under the same system, gives the same
// figures: whatever restarts, starts and stops took is measured.
func TestTheSameSystemGivesTheSameFigures(t *testing.T) {
	preempted := int64(0)
	for seed := range uint64(40) {
		for _, name := range []string{"fifo", "fifo-skip", "las", "srtf", "tiresias-las"} {
			w, r := whatiftest.NewWorld(seed), rand.New(rand.NewPCG(seed, 4))
			w.Cluster.Failures.MTBF, w.Cluster.Pools, w.Header.Pools, w.Sleep = 0, nil, nil, ""
			w.Runtime = sim.Runtime{StartDelay: time.Duration(r.IntN(4)) * time.Second,
				StopDelay: time.Duration(r.IntN(3)) * time.Second,
				Restart:   time.Duration(1+r.IntN(5)) * time.Second}
			// so that no one is rejected: those are not simulated, and the books would differ
			w.Cluster.Nodes[0].GPUs = 4
			w.Scores = whatiftest.ScoresOf(w.Cluster.MostGPUs(), r)
			for i := range w.Trace.Jobs {
				w.Trace.Jobs[i].Spec.Model = "" // known models go slower on two nodes
				w.Trace.Jobs[i].Spec.GPUs = sched.Rigid(int(w.Trace.Jobs[i].Spec.GPUs.Want))
			}
			h := read(t, w.Record(t, name, sched.Never))
			c := Candidate{System: name}
			if name == "las" {
				c.Settings = map[string]string{"quantum": "30"}
				h.Header.Settings = map[string]string{"quantum": "30"}
				if h.Measured.Restarts == 0 { // the default is longer than the quantum
					c.Settings["restart_overhead"] = "1"
				}
			}
			rows, err := h.Compare(t.Context(), []Candidate{c})
			if err != nil || rows[1].Err != nil {
				t.Fatal(err, rows[1].Err)
			}
			preempted += rows[0].Preemptions
			want := rows[0]
			want.Recorded, want.Settings, want.Error = false, c.Settings, &Difference{}
			if got := fmt.Sprintf("%+v %+v", rows[1],
				*rows[1].Error); strip(got) != strip(fmt.Sprintf("%+v %+v", want, *want.Error)) {
				t.Fatalf("seed %d, %s: measured %+v\nrecorded  %+v\nsimulated %s", seed, name, h.Measured, want, got)
			}
		}
	}
	if preempted == 0 {
		t.Error("no one was ever preempted")
	}
}

// strip takes addresses out.
func strip(s string) string {
	i := strings.Index(s, "0x")
	if i < 0 {
		return s
	}
	return s[:i] + strings.TrimLeft(s[i:], "0x123456789abcdef")
}

// Ensure that of a record that breaks off, those that ran are simulated and not counted, and those that never did are
// left out, with what waited for them.
func TestHistoryBreaksOff(t *testing.T) {
	s := (&whatiftest.Scene{System: "fifo"}).Node(1, 0).Job(10,
		sched.JobSpec{GPUs: sched.Rigid(1), User: "u", Model: "m"}).Job(50, sched.JobSpec{GPUs: sched.Rigid(1)}).
		Job(10, sched.JobSpec{GPUs: sched.Rigid(1)}).Job(10,
		sched.JobSpec{GPUs: sched.Rigid(1), After: []sched.JobID{0, 2}})
	w, _ := s.Moment(t)
	w.Trace.Jobs[1].Spec.Name = "j0"
	w.Trace.Jobs = append(w.Trace.Jobs, trace.Job{Spec: sched.JobSpec{Name: "late", Submit: 30e9, GPUs: sched.Rigid(1)},
		Duration: 1})
	log := w.Record(t, "fifo", 30e9)
	if later := readAt(t, log, 40e9); later.Trace.Jobs[1].Duration != 30*time.Second || later.Recorded.Busy != 1 ||
		later.Recorded.MeanJCT != 10 {
		t.Errorf("ten seconds later %v of work, busy for %v, mean JCT %v, want 30 s, 1, 10",
			later.Trace.Jobs[1].Duration, later.Recorded.Busy, later.Recorded.MeanJCT)
	}
	h := read(t, log)
	if h.Ended != 1 || h.Censored != 1 || h.NeverRan != 3 || len(h.Trace.Jobs) != 2 {
		t.Fatalf("%d ended, %d censored, %d never ran, %d in the trace", h.Ended, h.Censored, h.NeverRan,
			len(h.Trace.Jobs))
	}
	a, b := &h.Trace.Jobs[0], &h.Trace.Jobs[1]
	if a.Duration != 10*time.Second || a.Spec.User != "u" || a.Spec.Model != "m" || b.Duration != 20*time.Second ||
		b.Spec.Name != "j0#1" || b.Spec.Submit != 1e9 {
		t.Errorf("%+v\n%+v", a, b)
	}
	rows, err := h.Compare(t.Context(), []Candidate{{System: "srtf"}, {System: "nothing"}, h.Itself()})
	if err != nil || len(rows) != 4 {
		t.Fatal(rows, err)
	}
	if !rows[0].Recorded || rows[0].Jobs != 1 || rows[0].MeanJCT != 10 || rows[1].Jobs != 1 || rows[1].MeanJCT != 10 ||
		rows[1].Error != nil {
		t.Errorf("%+v", rows)
	}
	if rows[0].Busy != 1 || rows[1].Busy != 1 {
		t.Errorf("busy for %v recorded, %v simulated, want 1: the second job has worked since the first ended",
			rows[0].Busy, rows[1].Busy)
	}
	if rows[2].Err == nil || rows[3].Error == nil || rows[3].Error.PerJob != 0 {
		t.Errorf("%+v", rows[2:])
	}
}

// Ensure that jobs that waited for how others end, and arrays of which some tasks never ran, are simulated as what ran:
// numbers of the trace are not those of the log.
func TestHistoryOfTies(t *testing.T) {
	task := func(place int32, from sched.Time) sched.JobSpec {
		return sched.JobSpec{GPUs: sched.Rigid(1), NotBef: from,
			Ties: sched.Ties{Array: sched.Array{Place: place, Index: place + 5, Size: 3, AtOnce: 2}}}
	}
	far := 1000 * sched.Time(time.Second)
	s := (&whatiftest.Scene{System: "fifo-skip"}).Node(1, 0).
		Job(10, sched.JobSpec{GPUs: sched.Rigid(1), NotBef: far}).Job(10, sched.JobSpec{GPUs: sched.Rigid(1)}).
		Job(5, sched.JobSpec{GPUs: sched.Rigid(1), After: []sched.JobID{1},
			Ties: sched.Ties{AfterOK: []sched.JobID{1}}}).
		Job(5, task(0, far)).Job(5, task(1, 0)).Job(5, task(2, 0)).
		JobAt(90, 1, sched.JobSpec{GPUs: sched.Rigid(1)}) // with it the record ends
	w, _ := s.Moment(t)
	h := read(t, w.Record(t, "fifo-skip", 90*sched.Time(time.Second)))
	if len(h.Trace.Jobs) != 5 || h.NeverRan != 2 {
		t.Fatalf("%d jobs ran, %d never, want 5, 2", len(h.Trace.Jobs), h.NeverRan)
	}
	if tied := &h.Trace.Jobs[1].Spec; len(tied.After) != 1 || tied.After[0] != 0 || len(tied.Ties.AfterOK) != 0 {
		t.Errorf("the second that ran waits for %v, which must finish: %v; want 0, none", tied.After, tied.Ties.AfterOK)
	}
	for i := range int32(2) {
		want := sched.Array{Place: i, Index: 6 + i, Size: 2, AtOnce: 2}
		if got := h.Trace.Jobs[2+i].Spec.Ties.Array; got != want {
			t.Errorf("task %+v, want %+v", got, want)
		}
	}
	rows, err := h.Compare(t.Context(), []Candidate{h.Itself(), {System: "srtf"}})
	if err != nil || rows[1].Err != nil || rows[1].Jobs != 4 || rows[2].Err != nil || rows[2].Jobs != 4 {
		t.Errorf("%+v, %v", rows, err)
	}
}

// Ensure that the work of jobs that never reported any is the time of their last attempt.
func TestSilentJobs(t *testing.T) {
	s := (&whatiftest.Scene{System: "fifo"}).Node(1, 0).Job(10, sched.JobSpec{GPUs: sched.Rigid(1)})
	log := strings.ReplaceAll(s.Log(t), `"work":10`, `"work":0`)
	if h := read(t, log); h.Trace.Jobs[0].Duration != 10*time.Second {
		t.Errorf("%v, want 10 s", h.Trace.Jobs[0].Duration)
	}
}

// Ensure that what cannot be made a history of is an error that says why.
func TestNoHistory(t *testing.T) {
	log := (&whatiftest.Scene{System: "fifo"}).Node(1, 0).Job(10, sched.JobSpec{GPUs: sched.Rigid(1)}).Log(t)
	lines := strings.SplitAfter(log, "\n")
	for want, text := range map[string]string{"the log has no nodes": lines[0],
		"no job of 0 in the log has run": lines[0] + lines[1], "want a newline": log[:len(log)-1]} {
		r, err := eventlog.NewReader(strings.NewReader(text), "log")
		if err != nil {
			t.Fatal(err)
		}
		if _, err = ReadHistory(r, 0, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Ensure that jobs which were asked for the ends of their epochs, as they shared GPUs, and never reported one are known
// as such: their simulation reports none either.
func TestMute(t *testing.T) {
	spec := &sched.JobSpec{Share: sched.ShareAllow, Epochs: 10}
	v := &sched.View{Jobs: []sched.Job{{Spec: spec, GPUs: []sched.GPUID{0}}, {Spec: spec, GPUs: []sched.GPUID{0, 1}},
		{Spec: spec, GPUs: []sched.GPUID{2}}}}
	o := &overheads{shared: make(map[sched.JobID]bool), epochs: make(map[sched.JobID]bool)}
	for id := range v.Jobs {
		o.Log(v, &sched.Event{Kind: sched.AttemptStarted, Job: sched.JobID(id), Attempt: 1})
	}
	o.Log(v, &sched.Event{Kind: sched.EpochEnded, Job: 1, Attempt: 1, Value: 1})
	for id, want := range []bool{true, false, false} {
		if got := o.mute(sched.JobID(id)); got != want {
			t.Errorf("job %d is mute: %v, want %v", id, got, want)
		}
	}
}
