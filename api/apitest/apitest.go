// Package apitest holds every host to the same contract: one suite of tests, run against one machine and against a
// cluster.
package apitest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
)

// Patience is how long the suite waits for what must come, on however busy a machine.
const Patience = time.Minute

// World is a host that answers, with jobs as the suite needs them. Jobs are named by what the host takes as {job}.
type World struct {
	Client *api.Client // of someone who may do all
	Kind   string      // api.Machine or api.Cluster

	Running string // a job that runs until the world ends, and wrote Output in its first attempt
	Waiting string // a job that waits for GPUs
	Done    string // a job that finished
	Name    string // of Running, as users name jobs here
	Output  string // of several lines; "" = logs are not served
	Node    string // on which nothing but Running is needed
	Width   int    // of Running

	// Submit makes one job of that name that waits, and NAME is what {job} takes. nil = nothing is submitted.
	Submit func(name string) (submission api.Submission, job string)
}

// suite is one run.
type suite struct {
	World
	doc description
}

// description is what a host publishes of itself.
type description struct {
	OpenAPI string
	Paths   map[string]map[string]struct{ OperationID string }
}

// check is what the suite asks of an operation that a host serves.
type check struct {
	operation string
	run       func(*suite, *testing.T)
}

// checks are all operations of the contract. An operation of a host that is not among them fails the suite.
var checks = []check{
	{"openapi", (*suite).openapi}, {"metrics", (*suite).metrics}, {"info", (*suite).info},
	{"nodes", (*suite).nodes}, {"jobs", (*suite).jobs}, {"table", checkTable}, {"job", (*suite).job},
	{"why", (*suite).why},
	{"wait", (*suite).wait}, {"logs", (*suite).logs}, {"events", (*suite).events}, {"log", (*suite).log},
	{"explain", (*suite).explain}, {"submit", (*suite).submit}, {"pause", (*suite).pause}, {"resume", (*suite).resume},
	{"edit", func(s *suite, t *testing.T) { editSuite{s}.edit(t) }},
	{"priority", func(s *suite, t *testing.T) { editSuite{s}.priority(t) }},
	{"resize", (*suite).resize}, {"requeue", (*suite).requeue}, {"cancel", (*suite).cancel},
	{"commands", checkCommands},
	{"drain-gpu", (*suite).drainGPU}, {"undrain-gpu", (*suite).drainGPU},
	{"drain-node", (*suite).drainNode}, {"undrain-node", (*suite).drainNode},
	{"forget-gpu", (*suite).forgetGPU}, {"signal", func(s *suite, t *testing.T) { editSuite{s}.signal(t) }},
	{"drain", (*suite).drain}, {"undrain", (*suite).drain}, {"clean", (*suite).clean},
	{"history", pastCheck(pastSuite.history)}, {"losses", pastCheck(pastSuite.losses)},
	{"attempts", pastCheck(pastSuite.attempts)}, {"board", pastCheck(pastSuite.board)},
	{"price", pastCheck(pastSuite.price)},
	{"users", pastCheck(pastSuite.users)}, {"usage", pastCheck(pastSuite.usage)},
	{"series", pastCheck(pastSuite.series)},
	{"forecast", pastCheck(pastSuite.forecast)}, {"remedy", pastCheck(pastSuite.remedy)},
	{"whatif", pastCheck(pastSuite.whatif)}, {"whatif-state", pastCheck(pastSuite.whatif)},
	{"whatif-cancel", pastCheck(pastSuite.whatif)}, {"calibration", pastCheck(pastSuite.calibration)},
}

// Run holds the host that open starts to the contract.
func Run(t *testing.T, open func(*testing.T) World) {
	s := &suite{World: open(t)}
	s.document(t, "/openapi.json", &s.doc)
	info, err := s.Client.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	served := func(operation string) bool { return slices.Contains(info.Can, operation) }
	for _, c := range checks {
		t.Run(c.operation, func(t *testing.T) {
			if served(c.operation) {
				c.run(s, t)
			} else {
				s.notHere(t, c.operation)
			}
		})
	}
	t.Run("problems", s.problems)
	s.known(t)
}

// known fails where a host has operations that the suite does not know, or lacks some.
func (s *suite) known(t *testing.T) {
	t.Helper()
	var there, want []string
	for _, methods := range s.doc.Paths {
		for _, op := range methods {
			there = append(there, op.OperationID)
		}
	}
	for _, c := range checks {
		want = append(want, c.operation)
	}
	slices.Sort(there)
	slices.Sort(want)
	if !slices.Equal(there, want) {
		t.Errorf("operations %v, want %v", there, want)
	}
}

// document asks for a document.
func (s *suite) document(t *testing.T, path string, doc any) {
	t.Helper()
	resp, err := s.Client.Do(t.Context(), http.MethodGet, path, nil, nil)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(doc); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// text asks for something that is no document.
func (s *suite) text(t *testing.T, path string, header http.Header) string {
	t.Helper()
	resp, err := s.Client.Do(t.Context(), http.MethodGet, path, nil, header)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return string(b)
}

// refused asks for what must come to a problem of that code.
func (s *suite) refused(t *testing.T, method, path, body, code string, status int, kind error) {
	t.Helper()
	_ = s.problem(t, method, path, body, code, status, kind)
}

// problem is refused, and returns the problem.
func (s *suite) problem(t *testing.T, method, path, body, code string, status int, kind error) *api.Problem {
	t.Helper()
	var b []byte
	if body != "" {
		b = []byte(body)
	}
	resp, err := s.Client.Do(t.Context(), method, path, b, nil)
	if err == nil {
		_ = resp.Body.Close()
		t.Errorf("%s %s: answered, want a problem %q", method, path, code)
		return &api.Problem{}
	}
	p := (*api.Problem)(nil)
	if !errors.As(err, &p) {
		t.Errorf("%s %s: %v, want a problem %q", method, path, err, code)
		return &api.Problem{}
	}
	if p.Code != code || p.Status != status || p.Detail == "" || p.Title == "" || !errors.Is(err, kind) {
		t.Errorf("%s %s: %+v, want code %q, status %d, error %v", method, path, p, code, status, kind)
	}
	return p
}

// notHere checks how an operation is refused that a host does not serve.
func (s *suite) notHere(t *testing.T, operation string) {
	t.Helper()
	found := false
	for path, methods := range s.doc.Paths {
		for method, op := range methods {
			if op.OperationID != operation {
				continue
			}
			found = true
			p := s.problem(t, methodOf[method], filled(s, path), "", "not-here", http.StatusNotImplemented,
				api.ErrNotHere)
			if p.Instead == "" {
				t.Errorf("%s: nothing is named to use instead", operation)
			}
		}
	}
	if !found {
		t.Errorf("%s is not described", operation)
	}
}

var methodOf = map[string]string{"get": http.MethodGet, "post": http.MethodPost}

// Eventually waits until f is true.
func Eventually(t *testing.T, what string, f func(context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	for !f(ctx) {
		select {
		case <-ctx.Done():
			t.Fatalf("not %s in %v", what, Patience)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
