package apitest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"testing"

	"github.com/trainyard/trainyard/api"
)

// pastSuite asks about what happened.
type pastSuite struct{ *suite }

// pastCheck is a check of it.
func pastCheck(run func(pastSuite, *testing.T)) func(*suite, *testing.T) {
	return func(s *suite, t *testing.T) { run(pastSuite{s}, t) }
}

func (s pastSuite) history(t *testing.T) {
	var doc struct {
		Schema, Origin, Jobs, System string
		Seq                          uint64
		Now                          float64 `json:"now_s"`
		Head                         struct {
			Schema  string
			Systems []struct{ Name string }
		}
	}
	s.document(t, "/v1/history", &doc)
	if doc.Schema != "trainyard.history/v1" || doc.Head.Schema != "trainyard.report/v1" || doc.Seq == 0 ||
		doc.Now <= 0 || len(doc.Head.Systems) != 1 || doc.Jobs == "" || doc.System == "" {
		t.Errorf("%+v, want a head of one system, and columns", doc)
	}
}

func (s pastSuite) losses(t *testing.T) {
	s.ranges(t, "/v1/losses?")
	doc, err := api.FiguresOf(s.Client).Losses(t.Context(), api.Range{})
	if err != nil {
		t.Fatal(err)
	}
	sum, held, users := 0.0, 0.0, 0.0
	for class, hours := range doc.By {
		sum += hours
		switch class {
		case "useful", "redone", "coming-up", "stopping":
			held += hours
		}
	}
	for _, u := range doc.Users {
		users += u.Useful + u.Redone + u.ComingUp + u.Stopping
	}
	if doc.Schema != "trainyard.losses/v1" || doc.Hours <= 0 || math.Abs(sum-doc.Hours) > 1e-9 ||
		math.Abs(users-held) > 1e-9 {
		t.Errorf("%+v: classes sum to %v of %v GPU-hours, users to %v of %v", doc, sum, doc.Hours, users, held)
	}
}

func (s pastSuite) attempts(t *testing.T) {
	doc, err := api.FiguresOf(s.Client).Attempts(t.Context(), s.Running)
	if err != nil {
		t.Fatal(err)
	}
	n := len(doc.Attempts)
	if doc.Schema != "trainyard.attempts/v1" || n == 0 {
		t.Fatalf("%+v, want attempts", doc)
	}
	if a := doc.Attempts[n-1]; a.Number != n || a.Ordered == "" || a.Up == "" || a.Ended != "" ||
		len(a.GPUs) != s.Width {
		t.Errorf("%+v, want one that is up on %d GPUs and has not ended", a, s.Width)
	}
	s.document(t, "/v1/jobs/"+url.PathEscape(s.Waiting)+"/attempts", &doc)
	if len(doc.Attempts) > 0 {
		t.Errorf("a job that never started has attempts %+v", doc.Attempts)
	}
	s.refused(t, http.MethodGet, "/v1/jobs/999999/attempts", "", "no-job", http.StatusNotFound, api.ErrNoJob)
}

// errSeen ends a stream of which enough was seen.
var errSeen = errors.New("seen")

// boardFrom shows the events of a stream until show has seen enough.
func (s pastSuite) boardFrom(t *testing.T, from string, show func(kind string, b *api.Board) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	resp, err := s.Client.Do(ctx, http.MethodGet, "/v1/board"+from, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	err = api.ReadEvents(resp.Body, func(e api.StreamEvent) error {
		var b api.Board
		if e.Data == nil {
			return nil
		}
		if bad := json.Unmarshal(e.Data, &b); bad != nil {
			return bad
		}
		if e.ID != strconv.FormatUint(b.Seq, 10) {
			t.Errorf("event %s has a board of %d", e.ID, b.Seq)
		}
		if show(e.Kind, &b) {
			return errSeen
		}
		return nil
	})
	if !errors.Is(err, errSeen) {
		t.Errorf("the stream ended: %v", err)
	}
}

// board follows a board while a job changes, and compares what comes of the deltas with a new board.
func (s pastSuite) board(t *testing.T) {
	s.boardOfClient(t)
	first := true
	rows := map[int]api.Row{}
	s.boardFrom(t, "", func(kind string, b *api.Board) bool {
		if first != (kind == "board") {
			t.Errorf("event %q, first %t", kind, first)
		}
		cancelled := false
		for _, r := range b.Jobs {
			rows[r.ID] = r
			cancelled = cancelled || r.Name == "board" && r.State == "done" && r.Outcome == "cancelled"
		}
		if !first {
			return cancelled
		}
		first = false
		if len(b.GPUs) == 0 || len(b.Nodes) == 0 || b.Tiles.Busy < s.Width || b.Tiles.Waiting == 0 {
			t.Errorf("%+v, want GPUs, nodes, %d of them busy, and jobs that wait", b, s.Width)
		}
		return !s.change(t)
	})
	s.boardFrom(t, "?from=0", func(kind string, b *api.Board) bool {
		if len(b.Jobs) != len(rows) {
			t.Errorf("%s of %d jobs, want %d", kind, len(b.Jobs), len(rows))
		}
		for _, r := range b.Jobs {
			if rows[r.ID].State != r.State || rows[r.ID].Outcome != r.Outcome {
				t.Errorf("job %d: %+v, by deltas %+v", r.ID, r, rows[r.ID])
			}
		}
		return true
	})
	s.refused(t, http.MethodGet, "/v1/board?from=x", "", "malformed", http.StatusBadRequest, api.ErrMalformed)
}

// change submits a job named board, and cancels it; false: none can be submitted.
func (s pastSuite) change(t *testing.T) bool {
	if s.Submit == nil {
		return false
	}
	submission, job := s.Submit("board")
	if _, err := s.Client.Submit(t.Context(), submission); err != nil {
		t.Fatal(err)
	}
	Eventually(t, "known", func(ctx context.Context) bool {
		_, err := s.Client.Cancel(ctx, job)
		return err == nil
	})
	return true
}

// boardOfClient has the client follow a board, of which the first is whole.
func (s pastSuite) boardOfClient(t *testing.T) {
	t.Helper()
	err := api.FiguresOf(s.Client).Board(t.Context(), func(whole bool, b *api.Board) error {
		if !whole || len(b.Jobs) == 0 {
			t.Errorf("whole %t, %d jobs, want a board first", whole, len(b.Jobs))
		}
		return io.EOF
	})
	if err != nil {
		t.Error(err)
	}
}
