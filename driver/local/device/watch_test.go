package device

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// at is an instant, so many seconds after another.
func at(seconds float64) time.Time {
	return time.Unix(1e9, 0).Add(time.Duration(seconds * float64(time.Second)))
}

// shows is a sample of one device, A.
func shows(seconds float64, r Reading) *Sample {
	return &Sample{At: at(seconds), Readings: map[string]Reading{"A": r}}
}

// users is a reading with processes of 4 GiB each.
func users(pids ...int) Reading {
	r := Reading{Joules: Unknown, Listed: true}
	for _, pid := range pids {
		r.UsedMiB += 4096
		r.Processes = append(r.Processes, Process{pid, 4096})
	}
	return r
}

// In these tests processes below 100 are ours, those from 1000 on are gone, and a job holds A or not.
func owners(held bool) Owners {
	return Owners{func(pid int) bool { return pid < 100 }, func(pid int) bool { return pid >= 1000 },
		func(string) bool { return held }}
}

func leaked(mib float64) Reading { return Reading{UsedMiB: mib, Joules: Unknown, Listed: true} }

// Ensure that a reading is judged as it should be, whether a job holds the device or not.
func TestJudge(t *testing.T) {
	const gib = 1024.
	hidden := leaked(70 * gib)
	hidden.Listed = false
	display := leaked(3 * gib)
	display.Display = true
	unsaid := users(7)
	unsaid.UsedMiB, unsaid.Processes[0].MiB = 70*gib, Unknown
	visitor := users(200)
	visitor.Processes[0].MiB = Unknown
	lost := users(200)
	lost.Lost = "GPU is lost"
	for _, c := range []struct {
		name      string
		r         Reading
		free, why string // free and why, where no one holds it; "" = in use
		held      string // state and why, where a job does
	}{
		{"idle", users(), "in use", "", "in use"},
		{"nothing known", Blank(), "in use", "", "in use"},
		{"ours", users(7, 8), "in use", "", "in use"},
		{"someone's", users(200), "foreign", "in use by process 200 (4.0 GiB)", "foreign"},
		{"someone's next to ours", users(7, 200, 201), "foreign", "in use by process 200 (4.0 GiB), process 201 " +
			"(4.0 GiB)", "foreign"},
		{"someone's, of unknown memory", visitor, "foreign", "in use by process 200", "foreign"},
		{"a little memory", leaked(gib), "in use", "", "in use"},
		{"memory of no one", leaked(gib + 1), "stuck", "1.0 GiB of its memory are in use by no process", "in use"},
		{"memory of someone, hidden", hidden, "stuck", "70.0 GiB of its memory are in use by no process", "in use"},
		{"memory of a display", display, "in use", "", "in use"},
		{"memory of ours, unsaid", unsaid, "in use", "", "in use"},
		{"a ghost", users(1000), "stuck", "4.0 GiB of its memory are in use by no process", "in use"},
		{"a ghost without memory", Reading{Listed: true, Processes: []Process{{1000, 0}}}, "stuck",
			"shows process 1000, which is gone", "in use"},
		{"lost", lost, "missing", "GPU is lost", "missing"},
	} {
		words := []string{"in use", "foreign", "missing", "stuck"}
		v := DefaultRule.judge(&c.r, owners(false), true)
		if words[v.State] != c.free || v.Why != c.why {
			t.Errorf("%s: %s, %q, want %s, %q", c.name, words[v.State], v.Why, c.free, c.why)
		}
		if v = DefaultRule.judge(&c.r, owners(true), false); words[v.State] != c.held {
			t.Errorf("%s, held: %s, want %s", c.name, words[v.State], c.held)
		}
	}
}

// Ensure that a state changes only once the reason has lasted, but at once at the first look and where a device is
// lost.
func TestHysteresis(t *testing.T) {
	const use, foreign, missing, stuck = sched.GPUInUse, sched.GPUForeign, sched.GPUMissing, sched.GPUStuck
	type step struct {
		at   float64
		r    Reading
		want sched.GPUState
		more bool // another look is wanted soon
	}
	dead := Blank()
	dead.Lost = "GPU is lost"
	for name, steps := range map[string][]step{
		"a short visit": {{0, users(), use, false}, {1, users(200), use, true}, {2, users(), use, false},
			{3.5, users(201), use, true}, {4, users(), use, false}},
		"someone stays": {{0, users(), use, false}, {1, users(200), use, true}, {2, users(201), use, true},
			{3, users(200), foreign, false}},
		"and leaves": {{0, users(200), foreign, false}, {1, users(), foreign, true},
			{2, users(200), foreign, false}, {3, users(), foreign, true}, {8, users(), use, false}},
		"held already at first": {{0, leaked(9e4), stuck, false}, {1, users(), stuck, true},
			{5.9, users(), stuck, true}, {6, users(), use, false}},
		"one reason after another": {{0, users(), use, false}, {1, users(200), use, true},
			{2.9, leaked(9e4), use, true}, {3, leaked(9e4), use, true}, {4.9, leaked(9e4), stuck, false}},
		"lost and back": {{0, users(), use, false}, {1, dead, missing, false}, {2, users(), missing, true},
			{7, users(), use, false}},
	} {
		w := NewWatch(DefaultRule, []Device{{Name: "A"}})
		for i, s := range steps {
			w.See(shows(s.at, s.r), owners(false))
			if got := w.Of(0); got.State != s.want || w.Pending() != s.more {
				t.Errorf("%s, step %d: %v, pending %v, want %v, %v", name, i, got.State, w.Pending(), s.want, s.more)
			}
		}
	}
	w := NewWatch(DefaultRule, []Device{{Name: "A"}})
	w.See(&Sample{At: at(0), Partial: true}, owners(false))
	if got := w.Of(0); got.State != use || !got.Seen.IsZero() {
		t.Errorf("not looked at: %+v, want nothing changed", got)
	}
	w.See(&Sample{At: at(1)}, owners(false))
	if got := w.Of(0); got.State != missing || got.Why != "it is not there" {
		t.Errorf("not there: %+v, want missing", got)
	}
}

// Ensure that memory held without work is seen, whoever holds it, and that a display does not count.
func TestHeldIdle(t *testing.T) {
	w := NewWatch(DefaultRule, []Device{{Name: "A"}})
	idle := func(seconds, use float64, r Reading) bool {
		r.Use = use
		w.See(shows(seconds, r), owners(true))
		s := w.Of(0)
		return s.HeldIdle(&w.Rule)
	}
	display := leaked(9e4)
	display.Display = true
	for _, c := range []struct {
		at, use float64
		r       Reading
		want    bool
	}{
		{0, 0, users(7), false}, {599, .02, users(7), false}, {600, 0, users(7), true}, {601, .5, users(7), false},
		{602, 0, users(200), false}, {1202, .01, users(200), true}, {1203, Unknown, users(200), false},
		{1204, 0, users(), false},
		{1205, 0, display, false}, {9999, 0, display, false},
	} {
		if got := idle(c.at, c.use, c.r); got != c.want {
			t.Errorf("at %v: held idle %v, want %v", c.at, got, c.want)
		}
	}
}

// Ensure that whatever was seen before, two looks at the same far enough apart leave the state that a watch started
// again has: there is nothing to save.
func TestNothingToSave(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	dead := Blank()
	dead.Lost = "x"
	kinds := []Reading{users(), users(7), users(200), users(1000), leaked(9e4), Blank(), dead}
	for range 500 {
		w := NewWatch(DefaultRule, []Device{{Name: "A"}})
		now := 0.
		for range rng.IntN(20) {
			now += 4 * rng.Float64()
			w.See(shows(now, kinds[rng.IntN(len(kinds))]), owners(rng.IntN(2) == 0))
		}
		last, held := kinds[rng.IntN(len(kinds))], rng.IntN(2) == 0
		w.See(shows(now, last), owners(held))
		w.See(shows(now+5, last), owners(held))
		again := NewWatch(DefaultRule, []Device{{Name: "A"}})
		again.See(shows(now+5, last), owners(held))
		if got, want := w.Of(0).Verdict, again.Of(0).Verdict; got != want {
			t.Fatalf("%+v after a history, %+v again, of %+v", got, want, last)
		}
	}
}

// Ensure that devices are free after a job as soon as they are seen free, and that the patience ends.
func TestCheck(t *testing.T) {
	gone := errors.New("no answer")
	shared := leaked(9e4)
	shared.Listed = false
	type step struct {
		at   float64
		s    *Sample
		err  error
		done bool
	}
	sees := func(at float64, r Reading, done bool) step { return step{at, shows(at, r), nil, done} }
	for _, c := range []struct {
		name  string
		held  bool
		steps []step
		want  string
	}{
		{"free", false, []step{sees(0, users(), true)}, "map[]"},
		{"nothing can be reported", false, []step{sees(0, Blank(), true)}, "map[]"},
		{"free in time", false, []step{sees(0, users(1000), false), sees(29, leaked(2000), false),
			sees(29.9, leaked(500), true)}, "map[]"},
		{"free at the last look", false, []step{sees(0, users(1000), false), sees(31, users(), true)}, "map[]"},
		{"never free", false, []step{sees(0, leaked(2048), false), sees(30, leaked(2048), true)},
			"map[A:{3 2.0 GiB of its memory are in use by no process, 30s after the job on it ended}]"},
		{"cannot be seen", false, []step{{0, nil, gone, false}, {30, nil, gone, true}},
			"map[A:{3 no answer, 30s after the job on it ended}]"},
		{"seen at last", false, []step{{0, nil, gone, false}, sees(3, users(), true)}, "map[]"},
		{"not looked at", false,
			[]step{{0, &Sample{Partial: true}, nil, false}, {30, &Sample{Partial: true}, nil, true}},
			"map[A:{3 it could not be looked at, 30s after the job on it ended}]"},
		{"lost", false, []step{{0, &Sample{}, nil, true}}, "map[A:{2 it is not there}]"},
		{"someone came", false, []step{sees(0, users(1000), false), sees(1, users(200), true)},
			"map[A:{1 in use by process 200 (4.0 GiB)}]"},
		{"another job is there", true, []step{sees(0, users(7), true)}, "map[]"},
		{"another job is there, and memory of no one", true,
			[]step{sees(0, users(7, 1000), false), sees(9, users(7), true)}, "map[]"},
		{"another job is there, and who has memory is hidden", true, []step{sees(0, shared, true)}, "map[]"},
	} {
		check := NewCheck(DefaultRule, []string{"A"}, at(0))
		for i, s := range c.steps {
			if done := check.See(s.s, s.err, at(s.at), owners(c.held)); done != s.done {
				t.Errorf("%s, step %d: over %v, want %v", c.name, i, done, s.done)
			}
		}
		if got := fmt.Sprint(check.Found()); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// Ensure that a check of several devices waits for all of them, and that each counts as it was when it was found free.
func TestCheckSeveral(t *testing.T) {
	check := NewCheck(DefaultRule, []string{"A", "B"}, at(0))
	s := &Sample{Readings: map[string]Reading{"A": users(), "B": users(1000)}}
	if check.See(s, nil, at(1), owners(false)) {
		t.Error("over, want B waited for")
	}
	s.Readings["A"], s.Readings["B"] = users(200), users()
	if !check.See(s, nil, at(2), owners(false)) || len(check.Found()) > 0 {
		t.Errorf("found %v, want it over and nothing", check.Found())
	}
	if !NewCheck(DefaultRule, nil, at(0)).See(s, nil, at(0), owners(false)) {
		t.Error("a check of nothing is not over")
	}
}

// Ensure that energy is that of the counter, else of the readings of power, and that use is a mean over time.
func TestMeter(t *testing.T) {
	reading := func(watts, joules, use, mib float64) Reading {
		r := Blank()
		r.Watts, r.Joules, r.Use, r.UsedMiB = watts, joules, use, mib
		return r
	}
	for _, c := range []struct {
		name    string
		samples []*Sample
		want    Mean
	}{
		{"one look", []*Sample{shows(0, reading(300, Unknown, .5, 100))}, Mean{300, .5, 100}},
		{"power", []*Sample{shows(0, reading(100, Unknown, 0, 5)), shows(10, reading(300, Unknown, 1, 9)),
			shows(40, reading(300, Unknown, 1, 7))},
			Mean{(200*10 + 300*30) / 40., (.5*10 + 30) / 40, 9}},
		{"counter", []*Sample{shows(0, reading(100, 5000, 0, 0)), shows(10, reading(100, 9000, 0, 0))},
			Mean{400, 0, 0}},
		{"counter that falls", []*Sample{shows(0, reading(100, 5000, 0, 0)), shows(10, reading(100, 0, 0, 0)),
			shows(20, reading(100, 3000, 0, 0))},
			Mean{200, 0, 0}},
		{"counter that comes late", []*Sample{shows(0, reading(100, Unknown, 0, 0)), shows(10, reading(100, 7, 0, 0))},
			Mean{100, 0, 0}},
		{"nothing", []*Sample{shows(0, Blank()), shows(10, Blank())}, Mean{Unknown, Unknown, Unknown}},
		{"the same instant", []*Sample{shows(0, reading(100, Unknown, 0, 0)), shows(0, reading(200, Unknown, 1, 0))},
			Mean{200, 1, 0}},
	} {
		var m Meter
		for _, s := range c.samples {
			m.See(s)
		}
		if got := m.Take(); !maps.Equal(got, map[string]Mean{"A": c.want}) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if again := m.Take(); len(again) > 0 {
			t.Errorf("%s: %v taken twice", c.name, again)
		}
	}
}

// Ensure that energy adds up over any division into periods: what is taken and the time it took give all of the
// counter.
func TestMeterAddsUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var m Meter
		now, joules, reported, since := 0., 0., 0., 0.
		r := Blank()
		r.Joules = 0
		m.See(shows(0, r))
		m.Take()
		for range 1 + rng.IntN(30) {
			now, joules = now+1+float64(rng.IntN(9)), joules+float64(rng.IntN(1000))
			r.Joules = joules
			m.See(shows(now, r))
			if rng.IntN(3) == 0 {
				reported, since = reported+m.Take()["A"].Watts*(now-since), now
			}
		}
		if last, ok := m.Take()["A"]; ok {
			reported += last.Watts * (now - since)
		}
		if diff := reported - joules; diff > 1e-6 || diff < -1e-6 {
			t.Fatalf("reported %v J, want %v", reported, joules)
		}
	}
}

// Ensure that figures of several devices are put together, and unknown where one is.
func TestPowerAndUse(t *testing.T) {
	means := map[string]Mean{"A": {100, .5, 2048}, "B": {250, 1, 1024}, "C": {Unknown, Unknown, Unknown}}
	if w := Power(means, []string{"A", "B"}); w != 350 {
		t.Errorf("%v W, want 350", w)
	}
	for _, names := range [][]string{{"A", "C"}, {"A", "D"}, nil} {
		if w := Power(means, names); w != 0 {
			t.Errorf("%v: %v W, want 0, which is unknown", names, w)
		}
	}
	if use, mem := Use(means, []string{"A", "B", "C"}); use != .75 || mem != 2 {
		t.Errorf("use %v, memory %v GB, want 0.75, 2", use, mem)
	}
	if use, mem := Use(means, []string{"C"}); use != 0 || mem != 0 {
		t.Errorf("use %v, memory %v GB, want 0, 0", use, mem)
	}
}

// Ensure that devices of a type stand together, in the order in which they were found.
func TestGrouped(t *testing.T) {
	list := []Device{{Name: "1", Type: "b"}, {Name: "2", Type: "a"}, {Name: "3", Type: "b"}, {Name: "4", Type: "a"}}
	var names []string
	for _, d := range Grouped(list) {
		names = append(names, d.Name)
	}
	if got := strings.Join(names, ""); got != "1324" || !slices.Equal(Types(list), []string{"b", "a"}) {
		t.Errorf("%s of types %v, want 1324 of b, a", got, Types(list))
	}
}
