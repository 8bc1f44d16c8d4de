package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"
	"time"
)

// job is what of a job is looked at, as `trainyard ps --json` has it.
type job struct {
	Name      string  `json:"name"`
	State     string  `json:"state"`
	Outcome   string  `json:"outcome"`
	Text      string  `json:"text"`
	Attempt   int     `json:"attempt"`
	Started   string  `json:"started"`
	RunSec    float64 `json:"run_s"`
	LostSec   float64 `json:"lost_s"`
	Protected bool    `json:"protected"`
}

// tally is what the scenes and the log show.
type tally struct {
	acknowledged     []string // name and number of the jobs that were submitted under kills
	stepsLost        int
	foreseen, inside int
	disk             bool // the scene of the full disk was played, and went well
	replays          bool

	jobs        []job // all of the manager, in the end
	twice       int   // GPUs given to a job while another held them
	quarantined int   // events and files that doctor says were quarantined
}

// event is what of a line of the log is looked at.
type event struct {
	Event  string `json:"event"`
	Job    int    `json:"job"`
	Action string `json:"action"`
	GPUs   []int  `json:"gpus"`
}

// read counts, by a fold of its own, GPUs that were given twice.
func (t *tally) read(log string) error {
	target, holds := make(map[int][]int), make(map[int]int)
	for _, line := range strings.Split(strings.TrimSpace(log), "\n")[1:] {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return fmt.Errorf("log: %w", err)
		}
		switch {
		case e.Event == "decided":
			target[e.Job] = e.GPUs
		case e.Event == "ordered" && e.Action == "start":
			for _, g := range target[e.Job] {
				if _, held := holds[g]; held {
					t.twice++
				}
				holds[g] = e.Job
			}
		case e.Event == "ended", e.Event == "start-failed":
			maps.DeleteFunc(holds, func(_, job int) bool { return job == e.Job })
		}
	}
	return nil
}

// print prints the table. Its error says what of it is wrong.
func (t *tally) print(w io.Writer, start time.Time) error {
	finished, lost, twice, forOthers := 0, 0, 0, 0.0
	names := make(map[string]int)
	for i := range t.jobs {
		j := &t.jobs[i]
		names[j.Name]++
		if j.Outcome == "finished" {
			finished++
		}
		if !j.Protected {
			continue
		}
		forOthers += j.LostSec
	}
	for _, a := range t.acknowledged {
		name, number, _ := strings.Cut(a, " ")
		id, _ := strconv.Atoi(number)
		if id >= len(t.jobs) || t.jobs[id].Name != name || t.jobs[id].Outcome != "finished" {
			lost++
		}
		if names[name] > 1 {
			twice++
		}
	}
	fmt.Fprintf(w, "\n%-40s %d\n%-40s %d\n", "jobs", len(t.jobs), "finished", finished)
	rows := []struct {
		what  string
		value any
		good  bool
	}{
		{"acknowledged under kills", len(t.acknowledged), len(t.acknowledged) > 0},
		{"of them lost", lost, lost == 0},
		{"of them run twice", twice, twice == 0},
		{"steps lost by a preemption, at most", t.stepsLost, t.stepsLost <= 1},
		{"work of jobs that do not save, lost (s)", forOthers, forOthers == 0},
		{"starts foreseen in their 80 % intervals", fmt.Sprintf("%d of %d", t.inside, t.foreseen), true},
		{"events quarantined", t.quarantined, t.quarantined == 0},
		{"GPUs given twice", t.twice, t.twice == 0},
		{"the log decides again alike", t.replays, t.replays},
	}
	bad := 0
	for _, r := range rows {
		fmt.Fprintf(w, "%-40s %v\n", r.what, r.value)
		if !r.good {
			bad++
		}
	}
	fmt.Fprintf(w, "%-40s %.0f s\n", "took", time.Since(start).Seconds())
	if bad > 0 {
		return fmt.Errorf("%d rows of the table are wrong", bad)
	}
	return nil
}
