package crashtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/internal/testsize"
)

// verbKills is the size of the campaign against all verbs.
var verbKills = testsize.Flag("verb-kills", 5, 60, "times that a daemon is killed under a mix of verbs")

// expected is what a job may be by what was acknowledged: several values where a request was not answered.
type expected struct {
	runs     bool // else it is not to start for hours
	id       int  // -1 = not acknowledged yet
	priority map[int]bool
	width    map[int]bool
	paused   map[bool]bool
	over     map[bool]bool // it was cancelled
}

// mixed is a folder under a mix of verbs, and what is expected of its jobs.
type mixed struct {
	*daemons
	rand  *rand.Rand
	jobs  map[string]*expected
	names []string       // in the order of their submission
	acked map[string]int // by verb
}

// only is a set of one value.
func only[T comparable](x T) map[T]bool { return map[T]bool{x: true} }

// hand submits a job of the mix, once, by its key.
func (m *mixed) hand(ctx context.Context, name string) error {
	j := m.jobs[name]
	more := "submit: 10h"
	if j.runs {
		more = "preemptible: true, grace: 10s"
	}
	file := fmt.Sprintf("jobs: [{name: %s, gpus: 1, %s, command: [sh, -c, 'until [ -e go ]; do sleep 0.05; done']}]",
		name, more)
	doc, err := m.dial().SubmitOnce(ctx, m.submission(file), "key-"+name, api.Retry{})
	if err != nil {
		return err
	}
	if len(doc.Jobs) != 1 || j.id >= 0 {
		m.t.Errorf("%s: submitted as %+v", name, doc.Jobs)
	}
	j.id = doc.Jobs[0].ID
	return nil
}

// verb is one request, by name, and what holds of a job once it is acknowledged.
type verb struct {
	name string
	ask  func(ctx context.Context, c *api.Client, job string) error
	// may adds to what is expected, where the request may have been heard; does makes it sure
	may, does func(j *expected)
}

// verbs returns the verbs, with values by random.
func (m *mixed) verbs() []verb {
	n := 1 + m.rand.IntN(1000)
	width := 1 + m.rand.IntN(4)
	none := func(*expected) {}
	post := func(do func(*api.Client, context.Context, string) (api.Job, error)) func(context.Context, *api.Client,
		string) error {
		return func(ctx context.Context, c *api.Client, job string) error {
			_, err := do(c, ctx, job)
			return err
		}
	}
	return []verb{
		{"priority", func(ctx context.Context, c *api.Client, job string) error {
			_, err := api.EditsOf(c).Prioritize(ctx, job, api.Priority{Priority: &n})
			return err
		}, func(j *expected) { j.priority[n] = true }, func(j *expected) { j.priority = only(n) }},
		{"edit", func(ctx context.Context, c *api.Client, job string) error {
			_, err := api.EditsOf(c).Edit(ctx, job, api.SeenJob{}, api.Edit{
				Keys: fmt.Sprintf("{gpus: %d, priority: %d}", width, n)})
			return err
		}, func(j *expected) { j.priority[n], j.width[width] = true, true },
			func(j *expected) { j.priority, j.width = only(n), only(width) }},
		{"pause", post((*api.Client).Pause), func(j *expected) { j.paused[true] = true },
			func(j *expected) { j.paused = only(true) }},
		{"resume", post((*api.Client).Resume), func(j *expected) { j.paused[false] = true },
			func(j *expected) { j.paused = only(false) }},
		{"requeue", post((*api.Client).Requeue), none, none},
		{"cancel", post((*api.Client).Cancel), func(j *expected) { j.over[true] = true },
			func(j *expected) { j.over = only(true) }},
		{"clean", func(ctx context.Context, c *api.Client, _ string) error {
			_, err := c.Clean(ctx, api.Clean{})
			return err
		}, none, none},
	}
}

// step makes one request. It reports whether it was answered.
func (m *mixed) step(ctx context.Context) bool {
	if len(m.names) < 4 || m.rand.IntN(4) == 0 {
		name := fmt.Sprintf("m%d", len(m.names))
		m.names = append(m.names, name)
		m.jobs[name] = &expected{runs: m.rand.IntN(2) == 0, id: -1, priority: only(0), width: only(1),
			paused: only(false), over: only(false)}
		return m.heard("submit", m.hand(ctx, name))
	}
	name := m.names[m.rand.IntN(len(m.names))]
	j := m.jobs[name]
	list := m.verbs()
	v := list[m.rand.IntN(len(list))]
	if v.name == "edit" && j.runs || v.name == "cancel" && m.rand.IntN(3) > 0 {
		v = list[0] // the width of one that runs changes with its next attempt
	}
	err := v.ask(ctx, m.dial(), strconv.Itoa(j.id))
	switch {
	case err == nil:
		v.does(j)
	case lost(err):
		v.may(j)
	}
	return m.heard(v.name, err)
}

// lost reports whether a request may have been heard or not.
func lost(err error) bool { return unanswered(err) || errors.Is(err, api.ErrUnknown) }

// heard counts what was acknowledged, and reports whether the request was answered.
func (m *mixed) heard(verb string, err error) bool {
	if err == nil {
		m.acked[verb]++
	}
	return err == nil || !lost(err)
}

// live has a daemon live under the mix until it is killed at a random moment.
func (m *mixed) live() {
	l := m.up()
	for _, name := range m.names {
		if m.jobs[name].id < 0 { // it may be there: by its key it is there once
			must(m.t, m.hand(m.t.Context(), name))
		}
	}
	m.check()
	kill := time.AfterFunc(50*time.Millisecond+time.Duration(m.rand.Int64N(int64(400*time.Millisecond))), func() {
		l.signal(syscall.SIGKILL)
	})
	defer kill.Stop()
	ctx, stop := context.WithTimeout(m.t.Context(), patience)
	defer stop()
	for answered := true; answered && ctx.Err() == nil; {
		answered = m.step(ctx)
	}
	if !l.within(patience) {
		m.t.Fatal("the daemon does not die")
	}
}

// listed are the jobs as `ps --json` has them.
func (m *mixed) listed() []api.Job {
	m.t.Helper()
	code, said := command(m.t, m.dir, "ps", "--all", "--json", "--state", "state")
	var doc api.Jobs
	if bad := json.Unmarshal([]byte(said), &doc); code != 0 || bad != nil {
		m.t.Fatalf("ps: exit code %d, %v, %s", code, bad, said)
	}
	return doc.Jobs
}

// check compares the jobs that are there with what is expected of them.
func (m *mixed) check() {
	m.t.Helper()
	list := m.listed()
	if len(list) != len(m.names) {
		m.t.Errorf("%d jobs, want %d: each once", len(list), len(m.names))
	}
	for i := range list {
		got, j := &list[i], m.jobs[list[i].Name]
		switch {
		case j == nil || j.id != got.ID:
			m.t.Errorf("job %d (%s) was submitted as %+v", got.ID, got.Name, j)
			continue
		case !j.priority[got.Priority] || !j.width[got.Want]:
			m.t.Errorf("job %d has priority %d and asks for %d, want one of %v and %v", got.ID, got.Priority, got.Want,
				slices.Sorted(maps.Keys(j.priority)), slices.Sorted(maps.Keys(j.width)))
		case !j.over[got.Outcome == "cancelled"] && (got.State == "done" || !j.over[false] && got.State != "stopping"):
			m.t.Errorf("job %d is %s %s, cancelled: %v", got.ID, got.State, got.Outcome, j.over)
		case (got.State == "waiting" || got.State == "held") && !j.paused[strings.Contains(got.Why, "paused")]:
			m.t.Errorf("job %d is %s: %q, paused: %v", got.ID, got.State, got.Why, j.paused)
		}
	}
}

// Ensure that a mix of all verbs under kills of the daemon loses nothing that was acknowledged, does nothing twice, and
// leaves a log that replays.
func TestVerbsUnderKills(t *testing.T) {
	m := &mixed{daemons: newDaemons(t, 4), rand: rand.New(rand.NewPCG(24, 6)), jobs: make(map[string]*expected),
		acked: make(map[string]int)}
	for range verbKills.N() {
		if m.live(); t.Failed() {
			return
		}
	}
	l := m.up()
	for _, name := range m.names {
		if m.jobs[name].id < 0 {
			must(t, m.hand(t.Context(), name))
		}
	}
	m.check()
	m.let("go")
	for _, name := range m.names {
		if j := m.job(strconv.Itoa(m.jobs[name].id)); j.State != "done" {
			_, err := m.dial().Cancel(t.Context(), strconv.Itoa(j.ID))
			if err != nil && m.job(strconv.Itoa(j.ID)).State != "done" {
				t.Errorf("job %d: %v", j.ID, err)
			}
		}
		m.until(strconv.Itoa(m.jobs[name].id), "done")
	}
	for _, v := range append(m.verbs(), verb{name: "submit"}) {
		if m.acked[v.name] == 0 {
			t.Errorf("%s was never acknowledged: %v", v.name, m.acked)
		}
	}
	m.keepLog()
	m.end(l)
	readLog(t, m.dir).check(t)
	if code, said := command(t, m.dir, "replay", "events.jsonl"); code != 0 {
		t.Errorf("replay: exit code %d, %s", code, said)
	}
}
