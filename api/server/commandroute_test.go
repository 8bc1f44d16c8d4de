package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/api/site"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that of many jobs those of another user are refused one by one, those done already too, and the others done
// with; and that a request about many is under no condition of one.
func TestCommandsAreOfOwnJobs(t *testing.T) {
	t.Parallel()
	ann := ""
	r := newRig(t, 1, func(r *rig) {
		network(t)(r)
		ann = r.token("u", "ann", api.User)
	})
	bobs := strconv.Itoa(r.submit("jobs: [{command: [x], user: bob, name: of-bob, submit: 1h}]")[0].ID)
	c := r.dial(ann)
	var own []string
	for range 3 {
		doc, err := c.Submit(t.Context(), api.Submission{File: "jobs: [{command: [x], submit: 1h}]", Dir: "/"})
		if err != nil {
			t.Fatal(err)
		}
		own = append(own, strconv.Itoa(doc.Jobs[0].ID))
	}
	if _, err := c.Cancel(t.Context(), own[2]); err != nil {
		t.Fatal(err)
	}
	jobs := []string{own[0], bobs, "no-such", own[1], own[2]}
	list, wrong, err := api.CommandAll(t.Context(), c, "pause", jobs)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []error{nil, api.ErrForbidden, api.ErrNoJob, nil, api.ErrDone} {
		if !errors.Is(wrong[i], want) || want == nil && (wrong[i] != nil || list[i].State != "held" ||
			strconv.Itoa(list[i].ID) != jobs[i]) {
			t.Errorf("job %s: %+v, %v, want %v", jobs[i], list[i], wrong[i], want)
		}
	}
	if j, bad := r.client.Job(t.Context(), bobs); bad != nil || j.Outcome != "" {
		t.Errorf("bob's job is %+v, %v", j, bad)
	}
	status, text := r.ask(http.MethodPost, "/v1/commands", ann, `{"command": "pause", "jobs": ["`+own[0]+`"]}`,
		func(q *http.Request) { q.Header.Set("If-Match", "*") })
	if status != http.StatusBadRequest || !strings.Contains(text, "If-Match") {
		t.Errorf("under a condition: %d %s", status, text)
	}
}

// batchSite notes with which jobs the same is done in one batch.
type batchSite struct {
	site.Site
	jobs []sched.JobID
}

func (s *batchSite) CommandAll(_ context.Context, jobs []sched.JobID, _ sched.Command) ([]error, error) {
	s.jobs = append(s.jobs, jobs...)
	return make([]error, len(jobs)), nil
}

// Ensure that a job that a request names often has it done once, and is answered for as often as it is named; and that
// no request is about too many.
func TestCommandsOncePerJob(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, nil)
	r.submit("jobs: [{command: [x], name: a, submit: 1h, count: 1500}]")
	names := []string{"0", "1499", "0", "a", "nothing", "0"}
	for i := range 1500 {
		names = append(names, strconv.Itoa(i))
	}
	world := &batchSite{Site: r.server.o.Site}
	s := Server{o: Options{Host: r.m, Site: world, Meter: r.server.o.Meter}}
	ctx := context.WithValue(t.Context(), callerKey{}, caller{who: api.Who{Name: "root", Role: api.Admin}})
	doc, err := commander{&s}.all(ctx, &commandsInput{api.Commanding{Command: "pause", Jobs: names}})
	if slices.Sort(world.jobs); err != nil || len(world.jobs) != 1500 || len(slices.Compact(world.jobs)) != 1500 {
		t.Errorf("done with %d jobs, %v, want 1500", len(world.jobs), err)
	}
	if len(doc.Jobs) != len(names) {
		t.Fatalf("%d are answered for, want %d", len(doc.Jobs), len(names))
	}
	for i, name := range names {
		one := &doc.Jobs[i]
		if id, bad := strconv.Atoi(name); bad == nil && (one.Job == nil || one.Job.ID != id) ||
			bad != nil && one.Problem == nil { // a is the name of many
			t.Errorf("%s: %+v", name, one)
		}
	}
	many := `{"command":"pause","jobs":["0"` + strings.Repeat(`,"0"`, 100_000) + `]}`
	if _, err = r.client.Do(t.Context(), http.MethodPost, "/v1/commands", []byte(many), nil); !errors.Is(err,
		api.ErrMalformed) {
		t.Errorf("100,001 jobs: %v, want not understood", err)
	}
}

// singleSite does it with one job at a time, and the time is over once it did with so many.
type singleSite struct {
	site.Site
	all   chan struct{} // closed once as many are under way as are to be
	count atomic.Int64
	over  context.CancelFunc
}

func (s *singleSite) Command(context.Context, api.Who, sched.JobID, sched.Command) error {
	if s.count.Add(1) == commandsAtOnce {
		s.over()
		close(s.all)
	}
	<-s.all
	return nil
}

// Ensure that where there are no batches several jobs are dealt with at a time, and that those with which it was done
// are answered for once the time is over, as are the others.
func TestCommandsUntilTimeIsOver(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, nil)
	r.submit("jobs: [{command: [x], submit: 1h, count: 100}]")
	ctx, over := context.WithCancel(t.Context())
	defer over()
	world := &singleSite{Site: r.server.o.Site, all: make(chan struct{}), over: over}
	s := Server{o: Options{Host: r.m, Site: world, Meter: r.server.o.Meter}}
	var names []string
	for i := range 100 {
		names = append(names, strconv.Itoa(i))
	}
	ctx = context.WithValue(ctx, callerKey{}, caller{who: api.Who{Name: "root", Role: api.Admin}})
	doc, err := commander{&s}.all(ctx, &commandsInput{api.Commanding{Command: "pause", Jobs: names}})
	if err != nil || len(doc.Jobs) != len(names) {
		t.Fatalf("%d are answered for, %v", len(doc.Jobs), err)
	}
	for i := range doc.Jobs {
		one := &doc.Jobs[i]
		if done := i < commandsAtOnce; done != (one.Job != nil) || done == (one.Problem != nil) {
			t.Errorf("job %d: %+v", i, one)
		}
	}
}
