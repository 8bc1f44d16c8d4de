package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/controller"
	"github.com/trainyard/trainyard/kube/internal/controlplane"
	"github.com/trainyard/trainyard/kube/internal/fakenode"
)

var (
	fillNodes  = flag.Int("nodes", 50, "nodes of 8 GPUs of BenchmarkFill and BenchmarkYard; 500 for published figures")
	fillBefore = flag.Bool("before", false, "BenchmarkFill hands all jobs in before the controller starts, and "+
		"counts from that start")
	fillInside = flag.Bool("inside", false, "BenchmarkFill has the controller in its own process, for profiles")
)

// Sizes of BenchmarkFill.
const (
	gpusOfNode = 8
	submitters = 16 // at a time
	reclaims   = 11
)

// BenchmarkFill fills nodes with one-GPU jobs through the controller, pinned and direct, with gangs of eight, and, for
// comparison, with plain pods by kube-scheduler alone, and with pods that get exact GPUs from no one's decision: what
// is written of those no placement can do without. Each has a control plane of its own: from the first job submitted to
// the last pod that runs. With all GPUs in use it has jobs take one from another: reclaim-ms is the median from the
// submission of such a job to its pod running; processes save at once.
func BenchmarkFill(b *testing.B) {
	bare := func(place func(r *rig, i int) error) func(*testing.B) {
		return func(b *testing.B) { fill(b, "", 1, place) }
	}
	jobs := func(mode v1alpha1.Mode, width int) func(*testing.B) {
		return func(b *testing.B) {
			fill(b, mode, width, func(r *rig, i int) error {
				return r.api.Create(b.Context(), r.job(fmt.Sprint("job-", i), int32(width)))
			})
		}
	}
	b.Run("pods", bare(func(r *rig, i int) error { return r.api.Create(b.Context(), r.pod(i)) }))
	b.Run("bare-pinned", bare(func(r *rig, i int) error { return r.placePinned(b.Context(), i) }))
	b.Run("bare-direct", bare(func(r *rig, i int) error { return r.placeDirect(b.Context(), i) }))
	b.Run("pinned", jobs(v1alpha1.Pinned, 1))
	b.Run("direct", jobs(v1alpha1.Direct, 1))
	b.Run("gangs", jobs(v1alpha1.Pinned, gpusOfNode))
}

// fill has all GPUs used by what submit makes, each of a width. The controller takes part if there is a mode.
func fill(b *testing.B, mode v1alpha1.Mode, width int, submit func(r *rig, i int) error) {
	for b.Loop() {
		b.StopTimer()
		r := newRig(b, *fillNodes, fakenode.Options{GPUs: gpusOfNode, Heartbeat: 30 * time.Second},
			v1alpha1.SchedulerPolicySpec{System: "las", Mode: mode,
				Settings: map[string]string{"min_run": "0", "preempt_limit": "0"}})
		n := *fillNodes * gpusOfNode / width
		program := (*controlplane.Program)(nil)
		first := func() {
			if mode != "" {
				program = r.begin()
			}
		}
		then := func() { r.times(n, func(i int) error { return submit(r, i) }) }
		if *fillBefore && mode != "" {
			first, then = then, first
		}
		first()
		began, cpu := time.Now(), r.cpu()
		b.StartTimer()
		then()
		r.untilRunning(n)
		b.StopTimer()
		b.ReportMetric(float64(n)/time.Since(began).Seconds(), "placements/s")
		var all time.Duration
		for name, now := range r.cpu() {
			used := now - cpu[name]
			all += used
			b.ReportMetric(used.Seconds()*1e3/float64(n), name+"-ms/job")
		}
		b.ReportMetric(all.Seconds()*1e3/float64(n), "all-cpu-ms/job")
		if mode != "" && width == 1 {
			b.ReportMetric(float64(r.reclaim().Milliseconds()), "reclaim-ms")
		}
		if program != nil {
			b.ReportMetric(float64(memoryOf(b, program, "VmHWM"))/(1<<20), "peak-MiB")
			program.Kill()
		}
		r.kill()
		b.StartTimer()
	}
}

// begin starts the controller, and waits until it knows all nodes.
func (r *rig) begin() (p *controlplane.Program) {
	if *fillInside {
		r.serve(func(o *controller.ServeOptions) { o.Record = nil })
	} else {
		p = r.launch()
	}
	eventually(r.t, "the controller knows the nodes", func() bool {
		return strings.HasSuffix(r.policy().Status.GPUs, fmt.Sprint(" of ", *fillNodes*gpusOfNode))
	})
	eventually(r.t, "the garbage collector knows the new definitions", func() bool {
		return r.watches("trainingjobs") > 1
	})
	return p
}

// watches counts those who watch a kind of object.
func (r *rig) watches(plural string) (n int) {
	r.t.Helper()
	raw, err := r.plane.Client().Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "apiserver_longrunning_requests{") &&
			strings.Contains(line, `resource="`+plural+`"`) {
			count, err := strconv.Atoi(strings.TrimSpace(line[strings.LastIndex(line, " "):]))
			if err != nil {
				r.t.Fatal(err)
			}
			n += count
		}
	}
	return n
}

// times does something n times, several at a time.
func (r *rig) times(n int, do func(i int) error) {
	var group sync.WaitGroup
	limit := make(chan struct{}, submitters)
	for i := range n {
		limit <- struct{}{}
		group.Go(func() {
			defer func() { <-limit }()
			if err := do(i); err != nil {
				r.t.Error(err)
			}
		})
	}
	group.Wait()
}

// untilRunning waits until n pods are reported as running. It watches: a list of thousands again and again would slow
// what is measured.
func (r *rig) untilRunning(n int) {
	r.t.Helper()
	running, stop := r.running()
	defer stop()
	for i := range n {
		select {
		case <-running:
		case <-time.After(patience):
			r.t.Fatalf("%d of %d pods run, and no other within %v", i, n, patience)
		}
	}
}

// running returns the name of every pod that runs, until stop is called.
func (r *rig) running() (names <-chan string, stop func()) {
	all := make(chan string, 1<<20)
	ctx, cancel := context.WithCancel(r.t.Context())
	set := func(o *metav1.ListOptions) { o.FieldSelector = "status.phase=" + string(corev1.PodRunning) }
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewFilteredListWatchFromClient(r.plane.Client().CoreV1().RESTClient(), "pods", r.space,
			set),
		ObjectType: &corev1.Pod{},
		Handler:    cache.ResourceEventHandlerFuncs{AddFunc: func(o any) { all <- o.(*corev1.Pod).Name }},
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		informer.RunWithContext(ctx)
	}()
	return all, func() {
		cancel()
		<-done
	}
}

// reclaim has jobs take a GPU one after the other, and returns the median of the times.
func (r *rig) reclaim() time.Duration {
	running, stop := r.running()
	defer stop()
	var took []time.Duration
	for i := range reclaims {
		name := fmt.Sprint("late-", i)
		began := time.Now()
		r.create(r.job(name, 1))
		for pod := ""; pod != name+"-1-0"; { // those that ran before come first
			pod = <-running
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took[reclaims/2]
}

// cpu returns the processor time that the programs of the control plane, the controller and the benchmark took, by
// name. They are those that the folder names of the control plane.
func (r *rig) cpu() map[string]time.Duration {
	used := make(map[string]time.Duration)
	folder := filepath.Dir(r.plane.Kubeconfig())
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		r.t.Fatal(err)
	}
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(line), folder) &&
			filepath.Base(filepath.Dir(file)) != strconv.Itoa(os.Getpid()) {
			continue // it ended meanwhile, or is another's
		}
		program, _, _ := strings.Cut(string(line), "\x00")
		used[filepath.Base(program)] += r.cpuOf(filepath.Base(filepath.Dir(file)))
	}
	return used
}

// cpuOf returns the processor time that a process took; 0 if it has ended.
func (r *rig) cpuOf(pid string) (used time.Duration) {
	stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	for _, ticks := range strings.Fields(rest)[11:13] { // utime and stime, in hundredths of a second
		n, err := strconv.Atoi(ticks)
		if err != nil {
			r.t.Fatal(err)
		}
		used += time.Duration(n) * 10 * time.Millisecond
	}
	return used
}

// memoryOf returns what the kernel says of the memory of a program, in bytes: VmHWM is the most that it had at once,
// VmRSS what it has.
func memoryOf(t testing.TB, p *controlplane.Program, what string) (bytes int64) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if _, err := fmt.Sscanf(line, what+": %d kB", &bytes); err == nil {
			return bytes << 10
		}
	}
	t.Fatalf("no %s in the status of a process", what)
	return 0
}
