package sched

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"
)

// Ensure that the JSON of a job stays what logs and records hold, field by field and in its order, and that a job comes
// back from it whole; of one that has nothing seldom, too.
func TestJobForm(t *testing.T) {
	file, err := os.ReadFile("testdata/job.json") // a value in each field, as version 2 of logs and records has it
	if err != nil {
		t.Fatal(err)
	}
	wholeJob := strings.TrimSpace(string(file))
	var whole Job
	if failed := json.Unmarshal([]byte(wholeJob), &whole); failed != nil {
		t.Fatal(failed)
	}
	for i := range reflect.TypeOf(whole).NumField() {
		if f := reflect.TypeOf(whole).Field(i); reflect.ValueOf(whole).Field(i).IsZero() {
			t.Errorf("%s was not read", f.Name)
		}
	}
	if b, failed := json.Marshal(whole); failed != nil || string(b) != wholeJob {
		t.Errorf("%v, the JSON is\n%s, want\n%s", failed, b, wholeJob)
	}
	plain := Job{Spec: &JobSpec{GPUs: Rigid(1)}, State: Waiting, FirstStart: None}
	b, err := json.Marshal([]Job{plain})
	var back []Job
	if err != nil || json.Unmarshal(b, &back) != nil || !reflect.DeepEqual(back, []Job{plain}) {
		t.Errorf("%v, %+v comes back, want %+v", err, back, plain)
	}
	for _, wrong := range []string{`{"Spec":null,"Speck":1}`, `{"Later":{"Wand":1}}`, `{"Loss":{"Lots":1}}`, `7`} {
		if json.Unmarshal([]byte(wrong), new(Job)) == nil {
			t.Errorf("%s was read, want an error", wrong)
		}
	}
}

// Ensure that a job is four lines of 64 bytes at most: a simulation has one for each job of its trace, and touches it
// at each event.
func TestJobIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Job{}); size > 256 {
		t.Errorf("a Job has %d bytes, want at most 256", size)
	}
}

// Ensure that a copy of a job keeps what it was copied with, that what is seldom takes no memory where it is nothing,
// and that saying it again allocates nothing.
func TestSeldom(t *testing.T) {
	var j Job
	j.SetBase(0)
	j.SetLater(nil)
	j.SetBlockedBy(0)
	j.SetLoss(Loss{})
	if j.seldom != nil {
		t.Errorf("nothing takes memory: %+v", j.seldom)
	}
	later := &Later{Want: 2}
	j.SetLater(later)
	j.SetBlockedBy(3)
	j.SetLoss(Loss{Work: 4, Base: 5})
	was := j
	was.Detach()
	j.SetLater(nil)
	j.SetBase(6)
	j.SetBlockedBy(2)
	if was.Later() != later || was.BlockedBy() != 3 || was.Loss() != (Loss{Work: 4, Base: 5}) {
		t.Errorf("a detached copy has %+v, want what it was copied with", was.few())
	}
	if n := testing.AllocsPerRun(10, func() { j.SetLater(nil); j.SetBase(6); j.SetBlockedBy(2) }); n > 0 {
		t.Errorf("%v allocations where nothing changes", n)
	}
	j.SetBlockedBy(0)
	j.SetLoss(Loss{})
	if j.seldom != nil {
		t.Errorf("nothing takes memory: %+v", j.seldom)
	}
}

// Ensure that a detached copy of a job keeps what few jobs have when the job goes on, and that room given to jobs is of
// each alone.
func TestDetach(t *testing.T) {
	var room Seldoms
	jobs := make([]Job, 200)
	for i := range jobs {
		room.Give(&jobs[i])
		jobs[i].SetBlockedBy(int32(i + 1))
	}
	seen := slices.Clone(jobs)
	for i := range seen {
		seen[i].Detach()
	}
	for i := range jobs {
		room.Give(&jobs[i]) // nothing, as it has some
		jobs[i].SetBase(time.Hour)
		jobs[i].SetBlockedBy(jobs[i].BlockedBy() + 1)
	}
	for i := range jobs {
		if a, b := jobs[i], seen[i]; a.BlockedBy() != int32(i+2) || b.BlockedBy() != int32(i+1) || b.Loss().Base != 0 {
			t.Fatalf("job %d is blocked by %d, its copy by %d with base %v, want %d, %d and 0", i, a.BlockedBy(),
				b.BlockedBy(), b.Loss().Base, i+2, i+1)
		}
	}
}
