package apitest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/api"
)

// editSuite changes jobs that were submitted.
type editSuite struct{ *suite }

func (s editSuite) edit(t *testing.T) {
	job := s.made(t, "edited")
	e := api.EditsOf(s.Client)
	seen, err := e.See(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := e.Edit(t.Context(), job, seen, api.Edit{Keys: "{model: m, grace: 7s}"})
	if err != nil || doc.Schema != "trainyard.edited/v1" || doc.Job.Model != "m" || len(doc.Next) > 0 ||
		!slices.Equal(doc.Now, []string{"grace", "model"}) {
		t.Errorf("%+v, %v", doc, err)
	}
	if j, bad := s.Client.Job(t.Context(), job); bad != nil || j.Keys == nil || j.Keys.Grace != "7s" {
		t.Errorf("%+v, %v, want keys with the grace of 7s", j, bad)
	}
	for _, keys := range []string{"", "[]", "{model: x, colour: red}", "{name: other}", "{grace: 0s}",
		"{command: []}"} {
		if _, err = e.Edit(t.Context(), job, api.SeenJob{}, api.Edit{Keys: keys}); !errors.Is(err, api.ErrMalformed) {
			t.Errorf("%q: %v", keys, err)
		}
	}
	if _, err = s.Client.Pause(t.Context(), job); err != nil {
		t.Error(err)
	}
	if _, err = e.Edit(t.Context(), job, seen, api.Edit{Keys: "model: n"}); !errors.Is(err, api.ErrChanged) {
		t.Errorf("of one that was paused since it was seen: %v", err)
	}
	s.drop(t, job)
	if _, err = e.Edit(t.Context(), job, api.SeenJob{}, api.Edit{Keys: "model: n"}); !errors.Is(err, api.ErrDone) {
		t.Errorf("of one that is done: %v", err)
	}
}

// signal sends one to a job that waits, which no host does.
func (s editSuite) signal(t *testing.T) {
	job, e := s.made(t, "signalled"), api.EditsOf(s.Client)
	if _, err := e.Signal(t.Context(), job, api.Signal{Name: "USR1"}); !errors.Is(err, api.ErrRefused) {
		t.Errorf("%v, want refused", err)
	}
	s.drop(t, job)
	if _, err := e.Signal(t.Context(), job, api.Signal{Name: "USR1"}); !errors.Is(err, api.ErrDone) {
		t.Errorf("of one that is done: %v", err)
	}
}

func (s editSuite) priority(t *testing.T) {
	job, e := s.made(t, "prioritized"), api.EditsOf(s.Client)
	lower, two := -3, 2
	for _, to := range []api.Priority{{Priority: &lower}, {Priority: &two}, {Below: s.Waiting}, {Above: s.Waiting}} {
		if _, err := e.Prioritize(t.Context(), job, to); err != nil {
			t.Errorf("%+v: %v", to, err)
		}
		Eventually(t, "prioritized", func(ctx context.Context) bool {
			mine, err := s.Client.Job(ctx, job)
			its, failed := s.Client.Job(ctx, s.Waiting)
			return err == nil && failed == nil && (to.Priority == nil || mine.Priority == *to.Priority) &&
				(to.Above == "" || mine.Priority > its.Priority) && (to.Below == "" || mine.Priority < its.Priority)
		})
	}
	for _, to := range []api.Priority{{}, {Priority: &two, Above: s.Waiting}, {Above: job}} {
		if _, err := e.Prioritize(t.Context(), job, to); !errors.Is(err, api.ErrMalformed) {
			t.Errorf("%+v: %v", to, err)
		}
	}
	if _, err := e.Prioritize(t.Context(), job, api.Priority{Above: "no-such"}); !errors.Is(err, api.ErrNoJob) {
		t.Errorf("above one that is not there: %v", err)
	}
	s.drop(t, job)
}
