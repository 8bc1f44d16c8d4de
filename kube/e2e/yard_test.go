package e2e

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/controller"
	"github.com/trainyard/trainyard/kube/internal/controlplane"
	"github.com/trainyard/trainyard/kube/internal/fakenode"
	"github.com/trainyard/trainyard/kube/record"
)

var yardJobs = flag.Int("jobs", 0, "jobs of BenchmarkYard; 0: ten for each node")

// Sizes of a yard.
const (
	templateBytes = 4 << 10
	someChanges   = 10 // jobs that are changed one after the other
	widths        = 3  // of jobs: 1, 2 and 4 GPUs, as many of each
)

// yard is a cluster of quiet nodes with many jobs: half of these are over, others run on all GPUs, for good, and the
// rest waits. Whoever leads acts as "first", and as "second" after it.
type yard struct {
	*rig

	nodes, jobs int
	next        int // number of the next job that is changed; those of lower numbers are left
	leads       string
	leader      *controlplane.Program
}

// newYard returns a yard without a leader, and with what a folder has that keep made, if one is named.
func newYard(t testing.TB, folder string) *yard {
	return &yard{rig: newRigOn(t, controlplane.Options{Audit: true, NodeGrace: 24 * time.Hour, Data: folder}, 0,
		fakenode.Options{GPUs: gpusOfNode, Quiet: true}, v1alpha1.SchedulerPolicySpec{Mode: v1alpha1.Direct,
			Limits:   v1alpha1.Limits{JobsPerNamespace: 1_000_000},
			Settings: map[string]string{"min_run": "86400"}})}
}

// grow has so many nodes and jobs be there in all. No one leads meanwhile: jobs that are over must not be seen before.
func (y *yard) grow(nodes, jobs int) {
	y.t.Helper()
	must(y.t, y.fleet.Add(y.t.Context(), fakenode.Names("node", nodes)[y.nodes:]...))
	y.fleet.WaitReady(y.t)
	y.times(jobs-y.jobs, func(i int) error {
		i += y.jobs
		j := y.job(fmt.Sprint("job-", i), 1<<(i/2%widths), func(j *v1alpha1.TrainingJob) {
			j.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "WHAT", Value: long(templateBytes)}}
		})
		if err := y.api.Create(y.t.Context(), j); err != nil || i%2 == 0 {
			return err
		}
		j.Status.Phase, j.Status.Reason = v1alpha1.Failed, "it was turned away" // so that it is over, at one write
		return y.api.Status().Update(y.t.Context(), j)
	})
	y.nodes, y.jobs, y.next = nodes, jobs, (jobs-1)/2*2
}

// join has one more controller take part, as a user of this name.
func (y *yard) join(user string) *controlplane.Program {
	w := world{rig: y.rig}
	return y.launchAs(user, w.kubeconfigOf(user), "--leader-elect")
}

// lead has a controller lead, and waits until it has given all GPUs to jobs, and reported all that it has to.
func (y *yard) lead() {
	y.t.Helper()
	y.leader, y.leads = y.join("first"), "first"
	y.untilSaid(y.leader, "msg=leading")
	full := fmt.Sprintf("%d of %[1]d", y.nodes*gpusOfNode)
	var last [3]int
	for since := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		st := y.policy().Status
		now := [...]int{int(st.Running), int(st.Waiting), y.fleet.Running()}
		if st.GPUs == full && now[0] <= now[2] && now[0]+now[1] == y.jobs-y.jobs/2 {
			return
		}
		y.revive()
		if now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) > patience {
			y.t.Fatalf("%s GPUs are in use, %d jobs run, %d wait, %d processes, and no other within %v; want %s, "+
				"%d jobs", st.GPUs, now[0], now[1], now[2], patience, full, y.jobs-y.jobs/2)
		}
	}
}

// revive starts the leader again, as a Deployment does, where it ended because it could not renew its lease in time.
func (y *yard) revive() {
	select {
	case <-y.leader.Done():
		y.leader = y.join(y.leads)
	default:
	}
}

// untilSaid waits for a program to log something.
func (y *yard) untilSaid(p *controlplane.Program, text string) {
	y.t.Helper()
	eventually(y.t, text, func() bool {
		log, err := os.ReadFile(p.Log)
		return err == nil && strings.Contains(string(log), text)
	})
}

// change has the user of a job that waits suspend it, of the last one that did not, and waits until that is decided.
func (y *yard) change() {
	y.t.Helper()
	for y.status(y.changed(0)).Phase != v1alpha1.Pending {
		y.next -= 2
	}
	name := y.changed(0)
	y.next -= 2
	y.suspend(name, true)
	eventually(y.t, "it is decided that "+name+" is suspended", func() bool {
		y.revive()
		rec, err := record.Read(y.status(name).Record)
		return err == nil && rec.Job.Paused
	})
}

// changed returns the name of the job that is changed next, or was changed so many changes ago.
func (y *yard) changed(ago int) string { return fmt.Sprint("job-", y.next+2*ago) }

// figures is what a yard takes.
type figures struct {
	nodes, jobs      int
	lists, shards    int           // of a leader, in all of some batches of one changed job
	vain             int           // its reads of jobs there, and writes that were refused
	writes           float64       // in one, of the job and of events
	cpu              time.Duration // of the leader, in one
	ofJob, ofNode    int           // bytes that the API keeps beyond what users wrote
	leader, follower int64         // bytes of memory
	failover, taken  time.Duration // until the follower has decided, and its processor time for that
}

// measure measures a yard that has a leader.
func (y *yard) measure() figures {
	y.t.Helper()
	follower := y.join("second")
	y.untilSaid(follower, "Attempting to acquire leader lease")
	y.change() // the first batch looks at all jobs
	f := figures{nodes: y.nodes, jobs: y.jobs}
	y.batches(&f)
	y.bytes(&f)
	f.leader, f.follower = memoryOf(y.t, y.leader, "VmRSS"), memoryOf(y.t, follower, "VmRSS")
	used, since := y.cpuOf(strconv.Itoa(follower.Pid())), time.Now()
	y.leader.Kill()
	y.leader, y.leads = follower, "second"
	y.change()
	f.failover, f.taken = time.Since(since), y.cpuOf(strconv.Itoa(follower.Pid()))-used
	return f
}

// batches changes some jobs one after the other.
func (y *yard) batches(f *figures) {
	y.t.Helper()
	before, used := len(y.plane.Requests(y.t)), y.cpuOf(strconv.Itoa(y.leader.Pid()))
	mine := make(map[string]bool)
	for range someChanges {
		y.change()
		mine[y.changed(1)] = true
	}
	f.cpu = (y.cpuOf(strconv.Itoa(y.leader.Pid())) - used) / someChanges
	writes := 0
	for _, r := range y.plane.Requests(y.t)[before:] {
		job, _, _ := strings.Cut(r.Name, ".") // what follows is of an event
		switch {
		case r.User != y.leads:
		case r.Verb == "list":
			f.lists++
		case strings.HasPrefix(r.Resource, "trainingjobs") && (r.Code == http.StatusConflict || r.Verb == "get"):
			f.vain++
		case !r.Writes():
		case r.Resource == "configmaps" && strings.HasPrefix(r.Name, controller.ClusterMap):
			f.shards++
		case mine[job]:
			writes++
		}
	}
	f.writes = float64(writes) / someChanges
}

// bytes counts how much the API keeps of a job that waits beyond what its user wrote, and of a node and the system's
// memory in ConfigMaps for each node.
func (y *yard) bytes(f *figures) {
	y.t.Helper()
	st := y.status(y.changed(1))
	f.ofJob = len(st.Record) + len(st.Reason) + len(st.Memory)
	var list corev1.ConfigMapList
	must(y.t, y.api.List(y.t.Context(), &list))
	for i := range list.Items {
		if m := &list.Items[i]; m.Namespace == "trainyard" && strings.HasPrefix(m.Name, "trainyard-") {
			for _, data := range m.BinaryData {
				f.ofNode += len(data)
			}
		}
	}
	f.ofNode /= y.nodes
}

// compare holds a batch to what it may take whatever the size of a yard is, and what a larger one takes to what a
// smaller one does: by counts, as times depend on what else the machine does.
func compare(t testing.TB, all []figures) {
	t.Helper()
	for _, f := range all {
		small := &all[0]
		t.Logf("%d nodes, %d jobs: %d lists, %d writes of nodes in %d batches of one job, %.1f other writes in each; "+
			"%d bytes a job, %d a node", f.nodes, f.jobs, f.lists, f.shards, someChanges, f.writes, f.ofJob, f.ofNode)
		if f.vain > someChanges/2 { // one of a job that is changed as it is written is
			t.Errorf("%d reads of jobs and writes that were refused, want hardly any", f.vain)
		}
		if f.lists+f.shards > 0 || f.writes > 4 || f.writes > small.writes+1 {
			t.Errorf("want no list and no write of a node, at most 4 others, and no more than fewer take: %.1f",
				small.writes)
		}
		if f.ofJob > small.ofJob+100 || f.ofNode > small.ofNode+100 {
			t.Errorf("want about as many bytes as with fewer, %d and %d", small.ofJob, small.ofNode)
		}
	}
}

// Ensure that a batch of one changed job lists nothing, writes no node and no more objects where there are more nodes
// and jobs, that neither a job nor a node takes more bytes there, and that another leader goes on.
func TestYard(t *testing.T) {
	t.Parallel()
	y := newYard(t, "")
	var all []figures
	for _, nodes := range []int{8, 32} {
		y.grow(nodes, 10*nodes)
		y.lead()
		all = append(all, y.measure())
		y.leader.Kill()
	}
	compare(t, all)
}

// BenchmarkYard measures a leader and its follower with half of -nodes and -jobs, and with all, next to the bars of
// docs/inside/benchmarks.md. A yard is made once, below bin/kube, and copied.
func BenchmarkYard(b *testing.B) {
	total := *yardJobs
	if total == 0 {
		total = 10 * *fillNodes
	}
	var all []figures
	for part := 2; part > 0; part-- {
		nodes, jobs := *fillNodes/part, total/part
		name := fmt.Sprintf("yard-%d-%d", nodes, jobs)
		folder := filepath.Join(filepath.Dir(controlplane.Binaries(b)), name)
		if _, err := os.Stat(folder); err != nil {
			made := b.Run("make-"+name, func(b *testing.B) {
				for b.Loop() {
					y := newYard(b, "")
					y.grow(nodes, jobs)
					y.lead()
					y.leader.Kill()
					y.plane.Save(b, folder)
				}
			})
			if !made {
				return
			}
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				y := newYard(b, folder)
				y.nodes, y.jobs, y.next = nodes, jobs, (jobs-1)/2*2
				must(b, y.fleet.Adopt(b.Context(), fakenode.Names("node", nodes)...))
				y.lead()
				f := y.measure()
				f.report(b)
				all = append(all, f)
				compare(b, []figures{all[0], f})
			}
		})
	}
}

// report writes figures next to their bars.
func (f *figures) report(b *testing.B) {
	for _, m := range []struct {
		is, bar float64
		unit    string
	}{
		{float64(f.leader) / (1 << 20), 2048, "leader-MiB"},
		{float64(f.follower) / (1 << 20), 1536, "follower-MiB"},
		{f.failover.Seconds(), 60, "failover-s"},
		{f.taken.Seconds(), 30, "failover-cpu-s"},
		{f.cpu.Seconds() * 1e3, 5, "batch-cpu-ms"},
		{float64(f.lists), 0, "batch-lists"},
	} {
		b.ReportMetric(m.is, m.unit)
		met := "met"
		if m.is > m.bar {
			met = "MISSED"
		}
		b.Logf("%-15s %8.1f, bar %6.0f: %s", m.unit, m.is, m.bar, met)
	}
	b.ReportMetric(f.writes, "batch-writes")
}
