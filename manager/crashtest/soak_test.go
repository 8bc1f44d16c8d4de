package crashtest

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/internal/testsize"
)

// soakJobs is how many jobs a folder has in the end, and soakLives how many daemons serve it, one after the other.
var (
	soakJobs  = testsize.Flag("soak-jobs", 320, 20000, "jobs that go through a folder")
	soakLives = testsize.Flag("soak-lives", 8, 40, "daemons that serve it, one after the other")
)

// perTurn is how many jobs go through a daemon between two looks at it.
const perTurn = 10

// What may grow, by job. A job that is done stays known: its figures take memory and room in the log.
const (
	mostGoroutines = 0.01
	mostFiles      = 0.01
	mostRSS        = 16 << 10 // bytes
	mostLog        = 2 << 10  // bytes
)

// sample is a point of a line.
type sample struct{ x, y float64 }

// slope is the slope of a line through samples, with its 95 % interval.
type slope struct{ at, low, high float64 }

// fit fits a line by least squares. params is how many were fitted before: means that were taken off.
func fit(list []sample, params int) slope {
	n := float64(len(list))
	var mx, my, xx, xy float64
	for _, s := range list {
		mx, my = mx+s.x/n, my+s.y/n
	}
	for _, s := range list {
		xx, xy = xx+(s.x-mx)*(s.x-mx), xy+(s.x-mx)*(s.y-my)
	}
	b, rest := xy/xx, 0.0
	for _, s := range list {
		d := s.y - my - b*(s.x-mx)
		rest += d * d
	}
	df := n - 2 - float64(params)
	student := 1.96 + 2.37/df + 2.8/(df*df) // 97.5 % of Student's distribution, within 2 % from three on
	err := student * math.Sqrt(rest/df/xx)
	return slope{b, b - err, b + err}
}

// centred takes the means off samples of one life: what a daemon has from its start on is no growth.
func centred(list []sample) []sample {
	var mx, my float64
	for _, s := range list {
		mx, my = mx+s.x/float64(len(list)), my+s.y/float64(len(list))
	}
	out := make([]sample, len(list))
	for i, s := range list {
		out[i] = sample{s.x - mx, s.y - my}
	}
	return out
}

// Ensure that a slope and its interval are those of a line, and that noise alone has none.
func TestFit(t *testing.T) {
	if s := fit([]sample{{0, 1}, {1, 3}, {2, 5}, {3, 7}, {4, 9}}, 0); s.at != 2 || s.high-s.low > 1e-9 {
		t.Errorf("%+v, want 2", s)
	}
	// By hand: residuals -0.2, 0.6, -0.6, 0.2 around 0.2 x; 97.5 % of Student with 2 is 4.30 by table, 3.85 here.
	s := fit([]sample{{0, 0}, {1, 1}, {2, 0}, {3, 1}}, 0)
	if math.Abs(s.at-0.2) > 1e-9 || s.low > -0.8 || s.low < -1.02 {
		t.Errorf("%+v, want 0.2 and an interval from -0.9 to -1 on", s)
	}
	if c := centred([]sample{{1, 5}, {3, 7}}); c[0] != (sample{-1, -1}) || c[1] != (sample{1, 1}) {
		t.Errorf("%v", c)
	}
}

// soak is a folder through which many jobs go.
type soak struct {
	*daemons
	jobs       int // known
	files      []sample
	lives      int
	goroutines []sample // at the end of a life, by the jobs that it had
	rss        []sample // the same, by the jobs known
	log        []sample // bytes of a backup, by the jobs known
}

// turn has jobs go through a daemon: most end by themselves, some are cancelled as they wait, one is requeued and
// cancelled as it runs. Meanwhile readers come and go.
func (s *soak) turn() {
	s.t.Helper()
	c := s.dial()
	ctx, stop := context.WithCancel(s.t.Context())
	var readers sync.WaitGroup
	readers.Go(func() { _ = c.Events(ctx, 0, func(uint64, []byte) error { return nil }) }) // until it is stopped
	n := s.jobs
	s.submit(fmt.Sprintf("jobs: [{name: t%d, count: %d, command: ['true']}, {name: w%d, count: 2, command: ['true'], "+
		"submit: 10h}, {name: r%d, command: [sleep, 1h], grace: 1s}]", n, perTurn-3, n, n))
	s.jobs += perTurn
	long := fmt.Sprintf("r%d", n)
	readers.Go(func() {
		_, _ = c.Logs(ctx, long, api.LogOptions{Follow: true}, func(api.Output) error { return nil }) // the same
	})
	s.until(long, "running")
	for i := range 2 {
		if _, err := c.Cancel(s.t.Context(), fmt.Sprint(n+perTurn-2+i)); err != nil {
			s.t.Error(err)
		}
	}
	if _, err := c.Requeue(s.t.Context(), long); err != nil {
		s.t.Error(err)
	}
	s.attempt(long, 2)
	if _, err := c.Cancel(s.t.Context(), long); err != nil {
		s.t.Error(err)
	}
	for i := range perTurn {
		if _, err := c.Wait(s.t.Context(), fmt.Sprint(n+i)); err != nil {
			s.t.Error(err)
		}
	}
	stop()
	readers.Wait()
}

// live has a daemon serve so many turns, looks at it after each, and ends it by SIGQUIT, upon which it lists its
// goroutines.
func (s *soak) live(turns int) {
	s.t.Helper()
	l := s.up()
	var files []sample
	for n := range turns {
		s.turn()
		if n > 0 { // the first opens what stays open
			files = append(files, sample{float64(n * perTurn), s.quiet(l)})
		}
	}
	if len(files) > 1 {
		s.files = append(s.files, centred(files)...)
		s.lives++
	}
	s.rss = append(s.rss, sample{float64(s.jobs), 1024 * 1024 * residentMiB(s.t, l.cmd.Process.Pid)})
	file := filepath.Join(s.dir, fmt.Sprintf("%d.backup", s.jobs))
	if code, said := command(s.t, s.dir, "backup", "--state", "state", file); code != 0 {
		s.t.Fatalf("backup: code %d\n%s", code, said)
	}
	info, err := os.Stat(file)
	if err != nil {
		s.t.Fatal(err)
	}
	s.log = append(s.log, sample{float64(s.jobs), float64(info.Size())})
	_ = os.Remove(file)
	l.signal(syscall.SIGQUIT)
	if !l.within(patience) {
		s.t.Fatal("it does not end")
	}
	count := strings.Count("\n"+l.stderr.String(), "\ngoroutine ")
	if count < 5 {
		s.t.Fatalf("%d goroutines:\n%s", count, &l.stderr)
	}
	s.goroutines = append(s.goroutines, sample{float64(turns * perTurn), float64(count)})
}

// quiet returns how many files a daemon has open, once they are as few as at the last look or become no fewer.
func (s *soak) quiet(l *life) float64 {
	s.t.Helper()
	least := math.MaxInt
	for calm := 0; calm < 10; calm++ { // connections of readers that left are closed a moment later
		list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", l.cmd.Process.Pid))
		if err != nil {
			s.t.Fatal(err)
		}
		if len(list) < least {
			least, calm = len(list), 0
		}
		time.Sleep(10 * time.Millisecond)
	}
	return float64(least)
}

// Promise 24: a daemon through which jobs go, with cancels, requeues and readers that come and go, through deaths of
// the daemon, has no more goroutines and open files after many jobs than after few, and memory and log grow by what a
// known job takes alone. Slopes count as too steep where their whole 95 % interval is.
func TestPromise24NothingGrows(t *testing.T) {
	t.Setenv("GOGC", "20") // of the daemons: what is resident is what is in use, and little garbage
	s := &soak{daemons: newDaemons(t, 4)}
	lives := max(soakLives.N(), 4)
	turns := max(soakJobs.N()/perTurn/lives, 2)
	for n := range lives {
		s.live(max(2, turns+(n%4-1)*turns/2)) // of different lengths, in no order
	}
	for _, x := range []struct {
		name string
		got  slope
		most float64
	}{
		{"goroutines", fit(s.goroutines, 0), mostGoroutines},
		{"open files", fit(s.files, s.lives-1), mostFiles},
		{"bytes of memory", fit(s.rss, 0), mostRSS},
		{"bytes of log", fit(s.log, 0), mostLog},
	} {
		t.Logf("%s a job: %.4g, 95 %% from %.4g to %.4g, want at most %.4g", x.name, x.got.at, x.got.low, x.got.high,
			x.most)
		if !(x.got.low <= x.most) {
			t.Errorf("%s grow: %+v a job, want at most %.4g", x.name, x.got, x.most)
		}
	}
	t.Logf("%d jobs through %d daemons; goroutines %v, memory %v", s.jobs, lives, s.goroutines, s.rss)
}
