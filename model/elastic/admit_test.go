package elastic

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// literalAdmit is the loop as the paper has it: a dynamic programme for each waiting job, over all jobs that take part.
func literalAdmit(running, waiting []Job, gpus int, mode Mode) (verdicts []Verdict) {
	var table Table
	part, blocked := slices.Clone(running), false
	for _, j := range waiting {
		table.Fill(append(slices.Clone(part), j), gpus)
		_, ok := table.At(len(part)+1, gpus)
		switch {
		case ok && !blocked:
			part = append(part, j)
			verdicts = append(verdicts, Enter)
		case mode == Drop:
			verdicts = append(verdicts, Reject)
		default:
			blocked = blocked || mode == Queue
			verdicts = append(verdicts, Wait)
		}
	}
	return verdicts
}

func TestAdmitTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	for range 500 {
		gpus := r.IntN(30)
		var running, waiting []Job
		held := 0
		for _, j := range randomJobs(r, 0, r.IntN(4), 6) {
			if least, ok := j.Least(); ok && held+least <= gpus {
				running, held = append(running, j), held+least
			}
		}
		var minima []int
		for _, j := range randomJobs(r, 0, r.IntN(10), 8) {
			if least, ok := j.Least(); ok {
				waiting, minima = append(waiting, j), append(minima, least)
			}
		}
		for mode := Queue; mode <= Backfill; mode++ {
			got, want := Admit(nil, held, minima, gpus, mode), literalAdmit(running, waiting, gpus, mode)
			if !slices.Equal(got, want) {
				t.Fatalf("mode %d: %v beside %d, waiting %v: %v, want %v", mode, gpus, held, minima, got, want)
			}
		}
	}
}

// Tests 5, 6 and 7 of the specification.
func TestAdmit(t *testing.T) {
	for _, c := range []struct {
		name   string
		held   int
		minima []int
		mode   Mode
		want   []Verdict
	}{
		{"a minimum of four holds all of four", 4, []int{1}, Queue, []Verdict{Wait}},
		{"and the newcomer is dropped", 4, []int{1}, Drop, []Verdict{Reject}},
		{"six arrive", 0, []int{1, 1, 1, 1, 1, 1}, Queue, []Verdict{Enter, Enter, Enter, Enter, Wait, Wait}},
		{"six arrive, or else", 0, []int{1, 1, 1, 1, 1, 1}, Drop, []Verdict{Enter, Enter, Enter, Enter, Reject, Reject}},
		{"one of four ends", 3, []int{1, 1}, Queue, []Verdict{Enter, Wait}},
		{"nobody overtakes", 2, []int{4, 1}, Queue, []Verdict{Wait, Wait}},
		{"the one in the way is rejected", 2, []int{4, 1}, Drop, []Verdict{Reject, Enter}},
		{"the one in the way is overtaken", 2, []int{4, 1, 2, 1}, Backfill, []Verdict{Wait, Enter, Wait, Enter}},
	} {
		if got := Admit(nil, c.held, c.minima, 4, c.mode); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	job := Job{S: []float64{0, 0, 0, 0, 1, 1.5}, Min: 1, Max: 8} // 256 samples at least, 64 on one GPU at most
	if least, ok := job.Least(); least != 4 || !ok {
		t.Errorf("least width %d, want 4", least)
	}
}
