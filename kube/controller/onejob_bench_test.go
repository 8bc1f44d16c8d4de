package controller

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
)

// batchGPUs is how many GPUs a node of BenchmarkBatch has, and a job of it takes.
const batchGPUs = 8

// BenchmarkBatch is what a batch of one changed job costs this process, where so many jobs run as there are nodes and
// all others wait: the decision, and all that is done to write it but the requests themselves. One job in turn is
// suspended by its user or let go on. CPU ms are of the whole process, the collection of garbage included.
func BenchmarkBatch(b *testing.B) {
	for _, c := range []struct{ nodes, jobs int }{{500, 5_000}, {1_000, 10_000}, {6_250, 50_000}} {
		b.Run(fmt.Sprintf("nodes=%d/jobs=%d", c.nodes, c.jobs), func(b *testing.B) {
			s, v := busyStore(b, c.nodes, c.jobs)
			d, id := sched.Desired{}, sched.JobID(c.jobs-1)
			batch := func() {
				v.Now, v.Version = v.Now.Add(time.Millisecond), v.Version+1
				j := &v.Jobs[id]
				e := sched.Event{Time: v.Now, Kind: sched.JobCommanded, Job: id, Node: sched.None, Pool: sched.None,
					Code: int32(sched.PauseJob)}
				if j.Paused = !j.Paused; !j.Paused {
					e.Code = int32(sched.ResumeJob)
				}
				if j.State = sched.Waiting; j.Paused {
					j.State = sched.Held
				}
				s.dec.Observe(v, &e)
				s.Log(v, &e)
				d = sched.Desired{}
				s.dec.Decide(v, &d)
				if err := s.EndBatch(); err != nil {
					b.Fatal(err)
				}
			}
			batch() // which asks for all
			runtime.GC()
			looks, used := s.tally.looks, processTime(b)
			for b.Loop() {
				batch()
			}
			n := float64(b.N)
			b.ReportMetric(float64((processTime(b)-used).Microseconds())/1e3/n, "cpu-ms/op")
			b.ReportMetric(float64(s.tally.looks-looks)/n, "looks/op")
			if len(d.Jobs) > 0 {
				b.Fatal("there is room for jobs that wait")
			}
		})
	}
}

// busyStore returns the store of a leader whose GPUs are all in use, and its View.
func busyStore(b *testing.B, nodes, jobs int) (*store, *sched.View) {
	b.Helper()
	v := sched.View{Types: []string{"H100"}, Nodes: make([]sched.Node, nodes), Jobs: make([]sched.Job, jobs),
		GPUs: make([]sched.GPU, nodes*batchGPUs)}
	for n := range v.Nodes {
		v.Nodes[n] = sched.Node{Spec: sched.NodeSpec{Name: fmt.Sprint("n", n), GPUs: batchGPUs, Pool: sched.None},
			State: sched.NodeUp, Target: sched.NodeUp, First: sched.GPUID(n * batchGPUs)}
	}
	for i := range v.Jobs {
		j := &v.Jobs[i]
		*j = sched.Job{State: sched.Waiting, Spec: &sched.JobSpec{User: "lab", Name: fmt.Sprint("job-", i), Task: "uid",
			GPUs: sched.Rigid(batchGPUs)}, LastStart: -1}
		if i < nodes {
			for g := range batchGPUs {
				j.GPUs = append(j.GPUs, sched.GPUID(i*batchGPUs+g))
			}
			j.Target, j.State, j.Attempt, j.Attempts, j.Up, j.Rate = j.GPUs, sched.Active, sched.Running, 1, true, 1
		}
	}
	h := eventlog.Header{System: system.Default, Types: v.Types, GPUs: len(v.GPUs), NodeGPUs: batchGPUs}
	sys, err := system.Live(&h, system.Knowledge{})
	if err != nil {
		b.Fatal(err)
	}
	state, err := engine.Restore(h, v)
	if err != nil {
		b.Fatal(err)
	}
	d := newDesk(b, interceptor.Funcs{
		SubResourcePatch: func(_ context.Context, _ client.Client, _ string, o client.Object, _ client.Patch,
			_ ...client.SubResourcePatchOption) error {
			o.SetResourceVersion("1")
			return nil
		},
		SubResourceUpdate: func(context.Context, client.Client, string, client.Object,
			...client.SubResourceUpdateOption) error {
			return nil
		}})
	s := d.store
	s.v, s.dec, s.news.report, s.rounds.due = state.View(), sys.Decider, func(...note) {}, sched.Never
	s.policy.Status.Origin = &metav1.Time{Time: time.Now()}
	for i := range jobs {
		s.jobs[sched.JobID(i)] = &saved{version: "1", wait: noWait, held: s.v.Jobs[i].GPUs, target: s.v.Jobs[i].GPUs}
		s.live = append(s.live, sched.JobID(i))
	}
	return s, s.v
}

// processTime returns the processor time that this process has taken.
func processTime(b *testing.B) time.Duration {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
