package crashtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/internal/testsize"
)

const sigterm = syscall.SIGTERM

// servedKills is the size of the campaign against daemons; the promise is of 10,000.
var servedKills = testsize.Flag("kills", 60, 1000, "times that a daemon under load is killed")

// The load of a daemon.
const (
	clients     = 4
	perFolder   = 200                   // kills; a log of more is long to replay
	pauseMost   = 40 * time.Millisecond // between two requests of a client
	everyReal   = 12                    // submission of a client has jobs that run; the others wait for long
	everyCancel = 5                     // request of a client cancels a job that waits
)

// promised is what one daemon was made to promise and what is left of it in the end.
type outside struct {
	mu        sync.Mutex
	jobs      map[int]string  // acknowledged, by number
	lists     [][]string      // names of jobs that were submitted together
	cancelled map[string]bool // acknowledged, by name
	real      []string        // names of those acknowledged that run
}

// served is a folder at the end of a campaign, with all that was seen from outside.
type served struct {
	*daemons
	outside
	rand  *rand.Rand
	kills int
	at    map[string]int // kills at failpoints
	end   map[string]api.Job
	log   *eventLog
}

// campaignServed kills daemons of a new folder n times, while clients submit jobs and cancel others, and has a last
// one end those that run.
func campaignServed(t *testing.T, n int, seed uint64) *served {
	s := &served{daemons: newDaemons(t, 4, "--set", "*.min_run=0", "--set", "*.thresholds=0.2"),
		rand: rand.New(rand.NewPCG(seed, 7)), at: make(map[string]int)}
	s.jobs, s.cancelled = make(map[int]string), make(map[string]bool)
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	for c := range clients {
		load.Go(func() { s.client(ctx, c, rand.New(rand.NewPCG(seed, uint64(c)))) })
	}
	for s.kills < n && !t.Failed() {
		s.shoot()
	}
	stop()
	load.Wait()
	s.finish()
	s.log = readLog(t, s.dir)
	return s
}

// shoot has a daemon live until it dies, at a failpoint or a random moment.
func (s *served) shoot() {
	armed, after := "", time.Duration(s.rand.Int64N(int64(longest)))
	if s.kills%2 == 0 {
		all := slices.Concat(mailPoints, points)
		point := all[s.kills/2%len(all)]
		armed, after = fmt.Sprintf("%s:%d", point, 1+s.rand.IntN(3)), 2*longest
		if slices.Contains(once, point) {
			armed = point + ":1"
		}
	}
	l := s.serve(armed)
	l.within(after)
	l.kill()
	if !l.shot() {
		s.t.Fatalf("a daemon ended by itself with code %d, armed with %q:\n%s", l.cmd.ProcessState.ExitCode(), armed,
			&l.stderr)
	}
	if s.kills++; !l.killed {
		s.at[strings.SplitN(armed, ":", 2)[0]]++
	}
}

// client submits lists of jobs and cancels some, and keeps what was acknowledged. A request that is not answered is
// forgotten.
func (s *served) client(ctx context.Context, number int, r *rand.Rand) {
	var c *api.Client
	defer func() {
		if c != nil {
			_ = c.Close()
		}
	}()
	for n := 0; ctx.Err() == nil; n++ {
		time.Sleep(time.Duration(r.Int64N(int64(pauseMost))))
		if c == nil {
			var err error
			if c, err = api.Dial(string(s.state)); err != nil {
				c = nil
				continue // there is no folder yet
			}
		}
		prefix := fmt.Sprintf("c%d-%d", number, n)
		var err error
		switch {
		case n%everyCancel == 1:
			err = s.cancel(ctx, c, r)
		case n%everyReal == 0:
			err = s.handIn(ctx, c, []string{prefix}, s.training(prefix, r), true)
		default:
			names := make([]string, 1+r.IntN(3))
			var file strings.Builder
			file.WriteString("defaults: {command: [sleep, 1h], submit: 10h}\njobs:\n")
			for i := range names {
				names[i] = fmt.Sprintf("%s-%d", prefix, i)
				fmt.Fprintf(&file, "  - name: %s\n", names[i])
			}
			err = s.handIn(ctx, c, names, file.String(), false)
		}
		if err != nil && ctx.Err() == nil && !unanswered(err) && !errors.Is(err, fs.ErrNotExist) {
			s.t.Errorf("client %d: %v", number, err)
			return
		}
	}
}

// training is the job file of a trainer that runs for a moment, on one slot or two; one in four fails.
func (s *served) training(name string, r *rand.Rand) string {
	args := train(3 + r.IntN(20))
	if r.IntN(4) == 0 {
		args = append(args, "--fail-at", "2")
	}
	return fmt.Sprintf("jobs: [{name: %s, gpus: %d, grace: 300ms, %s, command: ['%s']}]", name, 1+r.IntN(2),
		s.ledgerEnv(), strings.Join(args, "', '"))
}

func (s *served) handIn(ctx context.Context, c *api.Client, names []string, file string, runs bool) error {
	s.mu.Lock()
	s.lists = append(s.lists, names)
	s.mu.Unlock()
	doc, err := c.Submit(ctx, s.submission(file))
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, j := range doc.Jobs {
		if was, taken := s.jobs[j.ID]; taken || j.Name != names[i] {
			s.t.Errorf("job %s is acknowledged as %d %s, which is %q already", names[i], j.ID, j.Name, was)
		}
		s.jobs[j.ID] = j.Name
	}
	if runs {
		s.real = append(s.real, names...)
	}
	return nil
}

// cancel cancels one of the jobs that wait.
func (s *served) cancel(ctx context.Context, c *api.Client, r *rand.Rand) error {
	s.mu.Lock()
	if len(s.lists) == 0 {
		s.mu.Unlock()
		return nil
	}
	list := s.lists[r.IntN(len(s.lists))]
	name := list[r.IntN(len(list))]
	s.mu.Unlock()
	_, err := c.Cancel(ctx, name)
	if errors.Is(err, api.ErrNoJob) || errors.Is(err, api.ErrDone) {
		return nil // never acknowledged, or it ran and is over
	}
	if err == nil {
		s.mu.Lock()
		s.cancelled[name] = true
		s.mu.Unlock()
	}
	return err
}

// finish has a last daemon end what runs, and reads what there is.
func (s *served) finish() {
	l := s.up()
	s.end = make(map[string]api.Job)
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		clear(s.end)
		doc, err := s.dial().Jobs(s.t.Context(), api.Filter{})
		if err != nil {
			s.t.Fatalf("%v\n%s", err, &l.stderr)
		}
		busy := 0
		for _, j := range doc.Jobs {
			if other, twice := s.end[j.Name]; twice { // each name was submitted once
				s.t.Errorf("job %s is there as %d and as %d", j.Name, other.ID, j.ID)
			}
			s.end[j.Name] = j
			if j.State != "done" && j.State != "held" {
				busy++
			}
		}
		if busy == 0 {
			break
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%d jobs do not end", busy)
		}
	}
	s.keepLog()
	s.daemons.end(l)
}
