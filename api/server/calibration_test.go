package server

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/metrics/timeline"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that counts of random forecasts are those of a plain look at each: by system and lead time, early, inside,
// late, to come, and void; and that rows of lead times add up to that of all.
func TestCalibrationCounts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	second := sched.Time(time.Second)
	random := func(most int) sched.Time { return sched.Time(r.IntN(most)) * second }
	now, line := 20000*second, new(timeline.Timeline)
	jobs := make([]metrics.Job, 60)
	for i := range jobs {
		j := &jobs[i]
		j.Finish = sched.None
		for at := random(9000); r.IntN(3) > 0; at += random(3000) + second {
			line.Attempts = append(line.Attempts, timeline.Attempt{Job: sched.JobID(i), Up: at})
			j.Finish = at + random(2000)
		}
		j.Outcome = []sched.Outcome{sched.NoOutcome, sched.Finished, sched.Finished, sched.Failed,
			sched.Cancelled}[r.IntN(5)]
		if j.Finish == sched.None {
			j.Outcome = sched.NoOutcome
		}
	}
	list := make([]explain.Foretold, 3000)
	for i := range list {
		span := func(at sched.Time) explain.Span {
			s := explain.Span{P10: at + random(30), Unknown: r.IntN(9) == 0}
			s.P50 = s.P10 + random([]int{5, 100, 5000}[r.IntN(3)])
			if s.P90 = s.P50 + random(4000); r.IntN(9) == 0 {
				s.P90 = sched.Never
			}
			return s
		}
		f := explain.Foretold{At: random(15000), Job: sched.JobID(r.IntN(len(jobs))),
			System: []string{"las", "srtf"}[r.IntN(2)]}
		f.Start, f.End = span(f.At), span(f.At)
		if r.IntN(4) == 0 { // it was up
			f.Start = explain.Span{P10: f.At - second, P50: f.At - second, P90: f.At - second}
		}
		list[i] = f
	}
	j := judge{now: now, jobs: jobs, came: map[sched.JobID][]sched.Time{}}
	j.starts(line.Attempts)
	judged := 0
	for _, row := range j.rows(list) {
		var want api.Calibrating
		for _, f := range list {
			if row.System != "" && f.System != row.System {
				continue
			}
			job, span, at := &jobs[f.Job], f.End, sched.Time(sched.None)
			if row.Of == "start" {
				if span = f.Start; span.P90 <= f.At {
					continue
				}
				for _, a := range line.Attempts {
					if a.Job == f.Job && a.Up > f.At && at == sched.None {
						at = a.Up
					}
				}
			} else if job.Outcome == sched.Finished || job.Outcome == sched.Failed {
				at = job.Finish
			}
			if span.Unknown || span.P90 == sched.Never {
				if row.Lead == 0 {
					want.Void++
				}
				continue
			}
			lead, low := (span.P50 - f.At).Seconds(), 0.0
			if n := slices.Index(leads, row.Lead); n > 1 {
				low = leads[n-1]
			}
			if row.Lead > 0 && (lead > row.Lead || low > 0 && lead <= low) {
				continue
			}
			switch {
			case at == sched.None && job.Outcome != sched.NoOutcome:
				want.Void++
			case at == sched.None && now <= span.P90:
				want.Pending++
			case at == sched.None || at > span.P90:
				want.Late++
			case at < span.P10:
				want.Early++
			default:
				want.Inside++
			}
		}
		got := row
		if got.Judged != want.Early+want.Inside+want.Late || got.Early != want.Early || got.Inside != want.Inside ||
			got.Late != want.Late || got.Pending != want.Pending || got.Void != want.Void ||
			got.PIT[0] != want.Early || got.PIT[1]+got.PIT[2] != want.Inside || got.PIT[3] != want.Late {
			t.Errorf("%+v, want %+v", got, want)
		}
		if judged += got.Judged; row.Lead == 0 && got.Judged == 0 {
			t.Errorf("%s of %q: none is judged", row.Of, row.System)
		}
	}
	if judged == 0 {
		t.Error("nothing was judged")
	}
}

// Ensure that what was expected of a job when it was submitted, and what why says of it, is kept, one a job and minute,
// and that its coverage is that computed from the table and from what came.
func TestCalibrationOfWhy(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, nil)
	for range 12 { // of which it learns how long jobs take
		r.submit("jobs: [{name: past, command: ['true']}]")
	}
	r.decided()
	// Of a job about which no one asks there is one, too; not of one that ends before it was looked at.
	foretold := func(list []explain.Foretold, err error, id int) bool {
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(list, func(f explain.Foretold) bool { return int(f.Job) == id })
	}
	for end := time.Now().Add(time.Minute); ; {
		unasked := r.submit("jobs: [{name: unasked, command: [sleep, '1']}]")[0].ID
		if _, err := r.client.Wait(t.Context(), strconv.Itoa(unasked)); err != nil {
			t.Fatal(err)
		}
		list, err := r.m.Forecasts()
		if foretold(list, err, unasked) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("no forecast of a job that was submitted in %+v", list)
		}
	}
	jobs := r.submit("jobs: [{name: a, command: [sleep, '1']}, {name: b, command: ['true']}, " +
		"{name: c, command: ['true']}]")
	for range 3 {
		for _, job := range jobs {
			if _, err := r.client.Why(t.Context(), strconv.Itoa(job.ID), 3*time.Second, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, job := range jobs {
		if _, err := r.client.Wait(t.Context(), strconv.Itoa(job.ID)); err != nil {
			t.Fatal(err)
		}
	}
	resp, err := r.overSocket(true).Get("http://localhost/v1/calibration")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var doc api.Calibration
	if bad := json.NewDecoder(resp.Body).Decode(&doc); bad != nil {
		t.Fatal(bad)
	}
	table, err := r.m.Forecasts()
	if err != nil || len(table) == 0 || doc.Kept != len(table) {
		t.Fatalf("%d forecasts in the table, %d in the document, %v", len(table), doc.Kept, err)
	}
	known := map[sched.JobID]bool{}
	for _, f := range table {
		if known[f.Job] {
			t.Errorf("two forecasts of job %d within a minute", f.Job)
		}
		known[f.Job] = true
	}
	for _, job := range jobs {
		if !known[sched.JobID(job.ID)] {
			t.Errorf("no forecast of job %d, of which why was asked", job.ID)
		}
	}
	inside, judged := 0, 0
	_, came := r.m.Result()
	for _, f := range table {
		if f.End.Unknown || f.End.P90 == sched.Never {
			continue
		}
		judged++
		if end := came[f.Job].Finish; end >= f.End.P10 && end <= f.End.P90 {
			inside++
		}
	}
	for _, row := range doc.Rows {
		if row.Of == "end" && row.Lead == 0 && row.System == "" && (row.Judged != judged || row.Inside != inside) {
			t.Errorf("%+v, want %d of %d inside", row, inside, judged)
		}
	}
}

// Ensure that of hundreds of jobs that come one after the other, more than are foreseen at every moment, a forecast is
// kept of each, and one alone.
func TestForetoldOfMany(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, nil)
	const n = 110
	for k := range 3 {
		var list strings.Builder
		list.WriteString("defaults: {wall_time: 2h, command: [sleep, 1h]}\njobs:\n")
		for i := range n {
			fmt.Fprintf(&list, "- {name: a%d-%d}\n", k, i)
		}
		r.submit(list.String())
	}
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		kept, err := r.m.Forecasts()
		if err != nil {
			t.Fatal(err)
		}
		of := map[sched.JobID]int{}
		for _, f := range kept {
			of[f.Job]++
		}
		if len(of) == 3*n && len(kept) == 3*n {
			return
		}
		if len(kept) > 3*n || time.Now().After(end) {
			t.Fatalf("%d forecasts of %d jobs, want one of each of %d", len(kept), len(of), 3*n)
		}
	}
}
