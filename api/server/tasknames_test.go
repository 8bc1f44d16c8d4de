package server

import (
	"errors"
	"testing"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/manager/jobfile"
)

// Ensure that a task of an array goes by the name that lists show of it, in requests and in what others wait for:
// before a job that its user called so, and whatever other array has tasks of the same names.
func TestTasksByNumbers(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, nil)
	submit := func(file string) error {
		list, err := jobfile.ParseJobs([]byte(file), "f.yaml")
		if err == nil {
			_, err = r.m.Submit(t.Context(), list)
		}
		return err
	}
	for _, file := range []string{`jobs: [{name: a, command: ['true'], array: "3,7", submit: 10h}]`,
		`jobs: [{name: a, command: ['true'], array: "3,7", submit: 10h}]`,
		`jobs: [{name: '2_7', command: ['true'], submit: 10h, after: [ok:0_7]}]`} {
		if err := submit(file); err != nil {
			t.Fatal(err)
		}
	}
	if doc, err := r.client.Cancel(t.Context(), "2_7"); err != nil || doc.ID != 3 {
		t.Errorf("2_7 is job %d, %v, want 3", doc.ID, err)
	}
	if doc, err := r.client.Cancel(t.Context(), "0_7"); err != nil || doc.ID != 1 {
		t.Errorf("0_7 is job %d, %v, want 1", doc.ID, err)
	}
	if doc, err := r.client.Job(t.Context(), "4"); err != nil || doc.Outcome != "rejected" {
		t.Errorf("what waits for 0_7 is %s, %v, want it rejected", doc.Outcome, err)
	}
	if _, err := r.client.Job(t.Context(), "0_4"); !errors.Is(err, api.ErrNoJob) {
		t.Errorf("0_4: %v, want no job", err)
	}
	if err := submit(`jobs: [{command: ['true'], after: [0_4]}]`); err == nil {
		t.Error("a job waits for 0_4")
	}
}
