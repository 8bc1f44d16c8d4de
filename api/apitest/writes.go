package apitest

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/api"
)

// made submits a job that waits, and returns what names it.
func (s *suite) made(t *testing.T, name string, how ...func(*api.Submission)) string {
	t.Helper()
	if s.Submit == nil {
		t.Skip("this host takes no jobs by the API")
	}
	in, job := s.Submit(name)
	for _, set := range how {
		set(&in)
	}
	doc, err := s.Client.Submit(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if doc.Schema != "trainyard.submitted/v1" || len(doc.Jobs) != 1 || doc.Jobs[0].ID < 0 && doc.Jobs[0].Ref != job {
		t.Fatalf("%+v, want one job with a number, or the ref %s", doc, job)
	}
	Eventually(t, "known", func(ctx context.Context) bool {
		j, err := s.Client.Job(ctx, job)
		if errors.Is(err, api.ErrEarly) && doc.Jobs[0].ID < 0 { // durable, and without a number so far
			return false
		}
		if err != nil || doc.Jobs[0].ID >= 0 && j.ID != doc.Jobs[0].ID {
			t.Fatalf("%+v, %v, want the job that was submitted: %+v", j, err, doc.Jobs[0])
		}
		return true
	})
	return job
}

// stands waits until a job stands so.
func (s *suite) stands(t *testing.T, job string, want ...string) {
	t.Helper()
	Eventually(t, job+" "+want[0], func(ctx context.Context) bool {
		j, err := s.Client.Job(ctx, job)
		if err != nil {
			t.Fatal(err)
		}
		return slices.Contains(want, j.State)
	})
}

// drop ends a job that the suite has made.
func (s *suite) drop(t *testing.T, job string) {
	t.Helper()
	if _, err := s.Client.Cancel(t.Context(), job); err != nil {
		t.Error(err)
	}
	s.stands(t, job, "done")
}

func (s *suite) submit(t *testing.T) {
	job := s.made(t, "submitted")
	s.stands(t, job, "waiting")
	s.drop(t, job)
	in, _ := s.Submit("dry")
	in.Dry = true
	doc, err := s.Client.Submit(t.Context(), in)
	if err != nil || !doc.Dry || len(doc.Jobs) != 1 || doc.Jobs[0].ID != -1 || doc.Jobs[0].Ref != "" {
		t.Errorf("dry: %+v, %v, want no number and no ref", doc, err)
	}
	in.File, in.Dry = ":", false
	if _, err := s.Client.Submit(t.Context(), in); !errors.Is(err, api.ErrMalformed) {
		t.Errorf("no jobs: %v", err)
	}
}

func (s *suite) pause(t *testing.T) {
	job := s.made(t, "paused")
	if _, err := s.Client.Pause(t.Context(), job); err != nil {
		t.Error(err)
	}
	Eventually(t, "paused", func(ctx context.Context) bool {
		doc, err := s.Client.Why(ctx, job, 0, 0)
		return err == nil && doc.Code == "paused"
	})
	s.drop(t, job)
	job = s.made(t, "paused-as-it-comes", func(in *api.Submission) { in.Paused = true })
	if j, err := s.Client.Job(t.Context(), job); err != nil || j.State != "held" {
		t.Errorf("%+v, %v, want it held from the start", j, err)
	}
	s.drop(t, job)
	s.refused(t, http.MethodPost, "/v1/jobs/no-such/pause", "", "no-job", http.StatusNotFound, api.ErrNoJob)
}

func (s *suite) resume(t *testing.T) {
	job := s.made(t, "resumed")
	if _, err := s.Client.Pause(t.Context(), job); err != nil {
		t.Error(err)
	}
	if _, err := s.Client.Resume(t.Context(), job); err != nil {
		t.Error(err)
	}
	Eventually(t, "resumed", func(ctx context.Context) bool {
		doc, err := s.Client.Why(ctx, job, 0, 0)
		return err == nil && doc.Code != "paused"
	})
	s.drop(t, job)
}

func (s *suite) resize(t *testing.T) {
	job := s.made(t, "resized")
	if _, err := s.Client.Resize(t.Context(), job, api.Resize{Min: 1, Max: 2}); err != nil {
		t.Error(err)
	}
	Eventually(t, "resized", func(ctx context.Context) bool {
		j, err := s.Client.Job(ctx, job)
		return err == nil && j.Min == 1 && j.Want == 2 && j.Max == 2
	})
	if _, err := s.Client.Resize(t.Context(), job, api.Resize{Max: -1}); !errors.Is(err, api.ErrMalformed) {
		t.Errorf("-1 GPUs: %v", err)
	}
	s.drop(t, job)
}

func (s *suite) requeue(t *testing.T) {
	job := s.made(t, "requeued")
	if _, err := s.Client.Requeue(t.Context(), job); err != nil {
		t.Error(err)
	}
	s.stands(t, job, "waiting")
	s.drop(t, job)
}

func (s *suite) cancel(t *testing.T) {
	job := s.made(t, "cancelled")
	s.drop(t, job)
	j, err := s.Client.Job(t.Context(), job)
	if err != nil || j.Outcome != "cancelled" {
		t.Errorf("%+v, %v", j, err)
	}
	if _, err = s.Client.Cancel(t.Context(), job); err != nil {
		t.Errorf("again: %v, want nothing", err)
	}
	_, err = s.Client.Pause(t.Context(), job)
	if !errors.Is(err, api.ErrDone) {
		t.Errorf("pause: %v, want done", err)
	}
}

// checkCommands does the same with two jobs, of which one is there.
func checkCommands(s *suite, t *testing.T) {
	job := s.made(t, "commanded")
	for _, command := range []string{"pause", "resume"} {
		list, wrong, err := api.CommandAll(t.Context(), s.Client, command, []string{"no-such", job})
		if err != nil || len(list) != 2 || !errors.Is(wrong[0], api.ErrNoJob) || wrong[1] != nil ||
			list[1].Name != "commanded" {
			t.Errorf("%s: %+v, %v, %v", command, list, wrong, err)
		}
	}
	s.drop(t, job)
	for command, want := range map[string]error{"cancel": nil, "pause": api.ErrDone} {
		list, wrong, err := api.CommandAll(t.Context(), s.Client, command, []string{job})
		if err != nil || !errors.Is(wrong[0], want) || want == nil && list[0].Outcome != "cancelled" {
			t.Errorf("%s of one that is cancelled: %+v, %v, %v", command, list, wrong, err)
		}
	}
	if _, _, err := api.CommandAll(t.Context(), s.Client, "eat", []string{job}); !errors.Is(err, api.ErrMalformed) {
		t.Errorf("%v, want not understood", err)
	}
}

func (s *suite) drainGPU(t *testing.T) {
	last := ""
	for _, on := range []bool{true, false} {
		doc, err := s.Client.DrainGPU(t.Context(), "0", on)
		if err != nil {
			t.Fatal(err)
		}
		if last = doc.GPUs[0].State; (last == "drained") != on {
			t.Errorf("drained %v: the GPU is %s", on, last)
		}
	}
}

// forgetGPU asks to forget one that is there, which no host does.
func (s *suite) forgetGPU(t *testing.T) {
	if _, err := s.Client.ForgetGPU(t.Context(), "0"); !errors.Is(err, api.ErrInUse) {
		t.Errorf("%v, want in use", err)
	}
	if _, err := s.Client.ForgetGPU(t.Context(), "no-such"); !errors.Is(err, api.ErrNoGPU) {
		t.Errorf("%v, want no such GPU", err)
	}
}

func (s *suite) drainNode(t *testing.T) {
	for _, on := range []bool{true, false} {
		if _, err := s.Client.DrainNode(t.Context(), s.Node, on); err != nil {
			t.Fatal(err)
		}
		Eventually(t, "drained", func(ctx context.Context) bool {
			doc, err := s.Client.Nodes(ctx)
			if err != nil {
				t.Fatal(err)
			}
			drained := 0
			for _, n := range doc.Nodes {
				if n.State == "draining" {
					drained++
				}
				if n.Name == s.Node && (n.State == "draining") != on {
					return false
				}
			}
			return drained == 1 == on
		})
	}
}

// clean asks what could be removed, which removes nothing.
func (s *suite) clean(t *testing.T) {
	doc, err := s.Client.Clean(t.Context(), api.Clean{Dry: true})
	if err != nil || !doc.Dry || doc.Schema != "trainyard.cleaned/v1" {
		t.Errorf("%+v, %v, want what would be removed", doc, err)
	}
}

func (s *suite) drain(t *testing.T) {
	for _, on := range []bool{true, false} {
		if doc, err := s.Client.Drain(t.Context(), on); err != nil || doc.Drained != on {
			t.Errorf("drained %v, want %v: %v", doc.Drained, on, err)
		}
	}
}
