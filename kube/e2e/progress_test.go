package e2e

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/controller"
	"github.com/trainyard/trainyard/kube/internal/fakenode"
	"github.com/trainyard/trainyard/kube/logs"
)

// Ensure that a log is followed from its start to its end, each line once, whatever breaks on the way: connections
// to the node, and the API server.
func TestLogsFollowed(t *testing.T) {
	t.Parallel()
	const lines = 3000
	r := newRig(t, 1, fakenode.Options{GPUs: 1, Run: func(p *fakenode.Process) int {
		for i := range lines {
			p.Print(fmt.Sprintf("line %d\n", i))
			time.Sleep(8 * time.Millisecond)
		}
		return 0
	}}, v1alpha1.SchedulerPolicySpec{System: "fifo", Progress: "none"})
	r.serve()
	r.create(r.job("talks", 1))
	r.until("talks", v1alpha1.Running)
	r.kill()
	pods, err := typedcorev1.NewForConfig(r.plane.Config())
	must(t, err)
	var mu sync.Mutex
	var reported strings.Builder
	var last time.Time
	var over bool
	has := func(text string) bool {
		mu.Lock()
		defer mu.Unlock()
		return strings.Contains(reported.String(), text)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var follow sync.WaitGroup
	follow.Go(func() {
		logs.New(pods).Follow(ctx, types.NamespacedName{Namespace: r.space, Name: "talks-1-0"}, "train",
			func(at time.Time, piece []byte) {
				mu.Lock()
				defer mu.Unlock()
				if reported.Write(piece); at.Before(last) {
					t.Errorf("%v after %v", at, last)
				}
				last = at
			}, func() {
				mu.Lock()
				defer mu.Unlock()
				over = true
			})
	})
	for i := range 4 {
		eventually(t, "more is reported", func() bool { return has(fmt.Sprintf("line %d\n", 1+100*i)) })
		r.fleet.CutLogs("node-000")
	}
	r.plane.StopAPIServer()
	must(t, r.plane.StartAPIServer(t.Context()))
	eventually(t, "all is reported", func() bool { return has(fmt.Sprintf("line %d\n", lines-1)) })
	eventually(t, "the end is reported", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return over
	})
	cancel()
	follow.Wait()
	var want strings.Builder
	for i := range lines {
		fmt.Fprintf(&want, "line %d\n", i)
	}
	if reported.String() != want.String() {
		t.Errorf("%d lines are reported, %d were written", strings.Count(reported.String(), "\n"), lines)
	}
}

// trainees are processes that train by steps, a hundred a second on each GPU, keep what they did, and report it. By the
// times of what they report they are never late, whatever else the machine does.
type trainees struct {
	mu    sync.Mutex
	steps map[string]int // by job
	total int
}

func (s *trainees) run(p *fakenode.Process) int {
	job := p.Pod.Labels[v1alpha1.LabelJob]
	for tick, at := time.NewTicker(10*time.Millisecond), time.Now(); ; at = at.Add(10 * time.Millisecond) {
		select {
		case <-tick.C:
		case <-p.Term:
			if p.Pod.Annotations["says"] != "" {
				p.Print(p.Pod.Annotations["says"])
			}
			return 0
		case <-p.Kill:
			return 137
		}
		s.mu.Lock()
		s.steps[job] = min(s.steps[job]+len(p.GPUs), s.total)
		n := s.steps[job]
		s.mu.Unlock()
		p.PrintAt(at, fmt.Sprintf("TRAINYARD step=%d total=%d epoch=%d\n", n, s.total, n/100))
		if n == s.total {
			p.Print("TRAINYARD done\n")
			return 0
		}
	}
}

// Ensure that what a job writes is its progress, across controllers: its steps, each epoch, and how fast it is, which
// is kept.
func TestProgress(t *testing.T) {
	t.Parallel()
	s := &trainees{steps: make(map[string]int), total: 3000}
	r := newRig(t, 1, fakenode.Options{GPUs: 4, Run: s.run}, v1alpha1.SchedulerPolicySpec{System: "eaco"})
	often := func(o *controller.ServeOptions) { o.Report = 200 * time.Millisecond }
	r.serve(often)
	r.create(r.job("learns", 2))
	reports := func(least int) {
		t.Helper()
		eventually(t, fmt.Sprintf("%d steps are reported", least), func() bool {
			var n, of int
			_, err := fmt.Sscanf(r.status("learns").Progress, "step %d of %d", &n, &of)
			return err == nil && n >= least && of == s.total
		})
	}
	reports(300)
	r.fleet.CutLogs("node-000")
	reports(800)
	pace := r.pace("learns")
	r.kill()
	r.serve(often)
	reports(1500)
	if again := r.pace("learns"); again == "" || reference(t, again) != reference(t, pace) {
		t.Errorf("the measure of its speed was %s, is %s", pace, again)
	}
	if x := reference(t, pace); x < 199 || x > 201 {
		t.Errorf("%v steps a second, want 200", x)
	}
	r.until("learns", v1alpha1.Succeeded)
	r.kill()
	last := -1.0
	for _, m := range regexp.MustCompile(`"event":"progressed".*?"steps":([0-9]+)`).FindAllStringSubmatch(
		r.log.String(), -1) {
		n, err := strconv.ParseFloat(m[1], 64)
		if must(t, err); n < last {
			t.Errorf("%v steps after %v", n, last)
		}
		last = n
	}
	if last < 0 {
		t.Errorf("the log has no progress")
	}
}

// pace is what is kept of the speed of a job.
func (r *rig) pace(name string) string {
	r.t.Helper()
	j := r.job(name, 1)
	must(r.t, r.api.Get(r.t.Context(), types.NamespacedName{Namespace: r.space, Name: name}, j))
	return j.Annotations["trainyard.dev/pace"]
}

func reference(t testing.TB, pace string) float64 {
	t.Helper()
	m := regexp.MustCompile(`"reference":([0-9.e+]+)`).FindStringSubmatch(pace)
	if m == nil {
		t.Fatalf("nothing is kept: %q", pace)
	}
	x, err := strconv.ParseFloat(m[1], 64)
	must(t, err)
	return x
}

// Ensure that a job which says, as it is asked to stop, that it has done all is not run again, and one that does not
// say so is.
func TestLastWords(t *testing.T) {
	t.Parallel()
	s := &trainees{steps: make(map[string]int), total: 1e6}
	r := newRig(t, 1, fakenode.Options{GPUs: 4, Run: s.run}, v1alpha1.SchedulerPolicySpec{System: "fifo-skip"})
	r.serve()
	for name, says := range map[string]string{"done": "TRAINYARD done", "saved": "TRAINYARD saved step=7\n"} {
		r.create(r.job(name, 1, func(j *v1alpha1.TrainingJob) {
			j.Spec.Template.Annotations = map[string]string{"says": says}
		}))
		r.until(name, v1alpha1.Running)
	}
	eventually(t, "both were heard", func() bool {
		return r.status("done").Progress != "" && r.status("saved").Progress != ""
	})
	r.suspend("done", true)
	r.suspend("saved", true)
	r.until("done", v1alpha1.Succeeded)
	r.until("saved", v1alpha1.Pending)
	r.suspend("saved", false)
	if st := r.until("saved", v1alpha1.Running); st.Attempt != 2 {
		t.Errorf("it runs again: %+v", st)
	}
}
