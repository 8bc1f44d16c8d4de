package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/record"
	"github.com/trainyard/trainyard/memory"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// simulated is a driver that plays a trace.
type simulated struct{ *sim.Driver }

func (simulated) Close() {}

// rig is a fake API with the objects of a trace, whose writes fail on request.
type rig struct {
	t        *testing.T
	api      client.WithWatch
	trace    *trace.Trace
	writes   atomic.Int64 // left until the controller dies; below 0 = it does not
	reported map[string]int
	log      bytes.Buffer   // of all leaders
	alter    func(*Options) // of the next leader; nil: nothing
}

// errDied is what a controller that has died gets for an answer.
var errDied = errors.New("died")

func newRig(t *testing.T, system string, settings map[string]string, jobs int, seed uint64) *rig {
	r := &rig{t: t, trace: trace.Generate(trace.Generator{Jobs: jobs, Seed: seed, GPUs: 16, Load: 1.1})}
	objects := []client.Object{&v1alpha1.SchedulerPolicy{ObjectMeta: metav1.ObjectMeta{Name: PolicyName},
		Spec: v1alpha1.SchedulerPolicySpec{System: system, Settings: settings, Mode: v1alpha1.Visible}}}
	for i := range r.trace.Jobs {
		s := &r.trace.Jobs[i].Spec
		s.User, s.Name, s.Task = "lab", "j"+s.Name, "uid-"+s.Name
		s.Preempt = sched.AlwaysPreempt
		s.Submit += sched.Time(i) // never two at one instant: the trace numbers them
		objects = append(objects,
			&v1alpha1.TrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: s.User, Name: s.Name,
				UID: types.UID(s.Task)},
				Spec: v1alpha1.TrainingJobSpec{GPUs: v1alpha1.Width{Min: s.GPUs.Min}}})
	}
	for i := range 4 {
		objects = append(objects,
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i),
				Annotations: map[string]string{v1alpha1.AnnotationGPUs: "a,b,c,d"}}})
	}
	r.api = fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(objects...).WithStatusSubresource(
		&v1alpha1.TrainingJob{}, &v1alpha1.SchedulerPolicy{}).Build()
	r.writes.Store(-1)
	r.reported = make(map[string]int)
	return r
}

// client is the API as one controller sees it.
func (r *rig) client() client.Client {
	var dead atomic.Bool
	write := func() error {
		if n := r.writes.Add(-1); n == 0 || dead.Load() {
			dead.Store(true)
			return errDied
		} else if n < 0 {
			r.writes.Store(-1)
		}
		return nil
	}
	return interceptor.NewClient(r.api, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := write(); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if err := write(); err != nil {
				return err
			}
			return c.Update(ctx, o, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object,
			opts ...client.SubResourceUpdateOption) error {
			if err := write(); err != nil {
				return err
			}
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption) error {
			if err := write(); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
}

// driver plays the trace.
func (r *rig) driver() Driver {
	r.t.Helper()
	shape, err := cluster.Load("4x4")
	if err != nil {
		r.t.Fatal(err)
	}
	d, err := sim.New(r.trace, shape,
		sim.Options{Runtime: sim.Runtime{Restart: 30 * time.Second, StartDelay: time.Second,
			StopDelay: 2 * time.Second}})
	if err != nil {
		r.t.Fatal(err)
	}
	return simulated{d}
}

// lead has a controller lead until the trace is played or it dies.
func (r *rig) lead() error {
	r.t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	return r.controller().Run(ctx)
}

// controller returns one that is about to lead.
func (r *rig) controller() *Controller {
	o := Options{Client: r.client(), Reader: r.api, Namespace: "trainyard", Clock: time.Now,
		Log: slog.New(slog.DiscardHandler), Record: &r.log,
		Held: func() error { return nil }, fatal: func(err error) bool { return errors.Is(err, errDied) },
		report: r.report, shardNodes: 1,
		every:  time.Hour,
		Driver: func(Setup) (Driver, error) { return r.driver(), nil }}
	if r.alter != nil {
		r.alter(&o)
	}
	return New(o)
}

// Ensure that a controller that dies at any write is succeeded by one that goes on: no job is lost, none runs on the
// GPUs of another, and all are done in the end. So it is where versions before shards take their turns, where what is
// kept of nodes is in shards of other sizes, and where the memory of the system is in several ConfigMaps.
func TestDiesAtAnyWrite(t *testing.T) {
	for _, c := range []struct {
		system   string
		settings map[string]string
	}{
		{"tiresias-las", map[string]string{"promote_knob": "0"}}, {"srtf", nil}, {"fifo-easy", nil}, {"elastic", nil},
	} {
		t.Run(c.system, func(t *testing.T) {
			r, deaths := newRig(t, c.system, c.settings, 30, 5), 0
			draw := rand.New(rand.NewPCG(3, 4))
			r.alter = func(o *Options) {
				o.RecordSchema = []int{0, 0, 2}[draw.IntN(3)]
				o.shardNodes, o.maxBlob = 1<<draw.IntN(3), []int{0, 0, 2000}[draw.IntN(3)]
			}
			for {
				r.writes.Store(1 + draw.Int64N(60))
				err := r.lead()
				if err == nil {
					break
				}
				if !errors.Is(err, errDied) {
					t.Fatal(err)
				}
				deaths++
			}
			if deaths < 3 {
				t.Errorf("%d deaths, want more: nothing is tested", deaths)
			}
			r.allSucceeded()
			if n := replayed(t, r.log.Bytes()); n < 2 { // some die before they decide anything
				t.Errorf("the log has %d parts after %d deaths", n, deaths)
			}
			if strings.Contains(r.log.String(), "while no one led") {
				t.Error("jobs are missed that are there")
			}
			if n := r.reported["Finished"]; n < len(r.trace.Jobs)-deaths {
				t.Errorf("%d ends reported after %d deaths", n, deaths)
			}
		})
	}
}

// say checks that nothing is reported twice, by whomever: no attempt starts twice, and no job ends twice.
func (r *rig) report(notes ...note) {
	for _, n := range notes {
		r.reported[n.reason]++
		if n.reason != reportedStarted && n.reason != reportedFinished {
			continue
		}
		what, _, _ := strings.Cut(n.text, " runs")
		if n.reason == reportedFinished {
			what = ""
		}
		if key := n.about.Name + n.reason + what; r.reported[key] > 0 {
			r.t.Errorf("reported twice: %s of %s: %s", n.reason, n.about.Name, n.text)
		} else {
			r.reported[key] = 1
		}
	}
}

// allSucceeded checks what the API says in the end.
func (r *rig) allSucceeded() {
	r.t.Helper()
	var list v1alpha1.TrainingJobList
	if err := r.api.List(context.Background(), &list); err != nil {
		r.t.Fatal(err)
	}
	for i := range list.Items {
		j := &list.Items[i]
		if j.Status.Phase != v1alpha1.Succeeded || len(j.Status.Allocation) > 0 {
			r.t.Errorf("job %s: phase %q, %v: %s", j.Name, j.Status.Phase, j.Status.Allocation, j.Status.Record)
		}
	}
}

// looking is a driver that has the state looked at whenever it is asked for more: all that was decided until then is
// durable.
type looking struct {
	sched.Driver

	look func()
}

func (l looking) Next(ctx context.Context, until sched.Time) ([]sched.Event, error) {
	l.look()
	return l.Driver.Next(ctx, until)
}

// Ensure that at the end of every batch the API has the whole state, and all that the system remembers.
func TestLoadsWhatWasStored(t *testing.T) {
	for _, system := range []string{"tiresias-las", "tiresias-gittins", "elastic", "eaco"} {
		t.Run(system, func(t *testing.T) {
			r, looks := newRig(t, system, nil, 20, 8), 0
			c := New(Options{Client: r.api, Reader: r.api, Namespace: "trainyard", Clock: time.Now, shardNodes: 1,
				Log:  slog.New(slog.DiscardHandler),
				Held: func() error { return nil }})
			live, err := c.start(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			look := func() {
				if looks++; looks%7 > 0 {
					return
				}
				watcher := *c
				watcher.o.Observe = true
				stored, failed := watcher.start(context.Background())
				if failed != nil {
					t.Fatal(failed)
				}
				if stored.renewed != "" {
					t.Fatal(stored.renewed)
				}
				same(t, stored, live)
				recounted(t, live.store)
			}
			err = engine.Run(context.Background(), live.state, looking{r.driver(), look}, live.dec,
				engine.Options{Sinks: []eventlog.Sink{live.store}})
			if err != nil || looks < 20 {
				t.Error(looks, err)
			}
		})
	}
}

// recounted checks that what a store counts of what events touch is what all jobs and GPUs come to.
func recounted(t *testing.T, s *store) {
	t.Helper()
	var all tally
	all.settle(s.v)
	if is := &s.tally; is.jobs != all.jobs || is.phases != all.phases || is.gpus != all.gpus ||
		!reflect.DeepEqual(is.tenants, all.tenants) {
		t.Fatalf("%v, %v and %v are counted, %v shared; want %v, %v and %v, %v", is.jobs, is.phases, is.gpus,
			is.tenants, all.jobs, all.phases, all.gpus, all.tenants)
	}
	for id := range s.v.Jobs {
		if s.v.Jobs[id].State != sched.Done && !slices.Contains(s.live, sched.JobID(id)) {
			t.Fatalf("job %d is not done, and is not listed", id)
		}
	}
}

func same(t *testing.T, got, want *started) {
	t.Helper()
	a, b := got.state.View(), want.state.View()
	for id := range b.Jobs {
		x, y := record.Of(a, sched.JobID(id), 1), record.Of(b, sched.JobID(id), 1)
		if x.Version, y.Version = 0, 0; x.String() != y.String() {
			t.Fatalf("job %d is stored as\n%v\nwant\n%v", id, x.String(), y.String())
		}
	}
	if x, y := spread(a), spread(b); x != y {
		t.Fatalf("nodes are stored as\n%s\nwant\n%s", x, y)
	}
	m, n := memory.Save(a, got.dec), memory.Save(b, want.dec)
	if !bytes.Equal(m.Rest, n.Rest) {
		t.Fatalf("memory is stored as\n%q\nwant\n%q", m.Rest, n.Rest)
	}
	for id := range n.Jobs {
		if b.Jobs[id].State != sched.Done && !bytes.Equal(m.Jobs[id], n.Jobs[id]) {
			t.Fatalf("of job %d is remembered\n%q\nwant\n%q", id, m.Jobs[id], n.Jobs[id])
		}
	}
}

// spread is what of the nodes and GPUs of a View no one can count again.
func spread(v *sched.View) string {
	var b strings.Builder
	for i := range v.Nodes {
		n := v.Nodes[i]
		n.Busy, n.Watts = 0, 0
		fmt.Fprintf(&b, "%+v\n", n)
	}
	for i := range v.GPUs {
		g := &v.GPUs[i]
		fmt.Fprintln(&b, g.Node, g.State, g.Quarantined, g.Blamed, g.Rests)
	}
	return b.String()
}

// Ensure that a leader whose place another has taken writes no version any more.
func TestFenced(t *testing.T) {
	r := newRig(t, "fifo", nil, 20, 1)
	var taken bool
	old := r.client()
	steal := interceptor.NewClient(old.(client.WithWatch), interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object,
			opts ...client.SubResourceUpdateOption) error {
			if p, ok := o.(*v1alpha1.SchedulerPolicy); ok && p.Status.Version > 20 && !taken {
				taken = true
				var now v1alpha1.SchedulerPolicy
				if err := r.api.Get(ctx, types.NamespacedName{Name: PolicyName}, &now); err != nil {
					t.Error(err)
				}
				now.Status.Leader++
				if err := r.api.Status().Update(ctx, &now); err != nil {
					t.Error(err)
				}
			}
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
	})
	c := New(Options{Client: steal, Reader: r.api, Namespace: "trainyard", Clock: time.Now,
		Log: slog.New(slog.DiscardHandler), Held: func() error {
			return nil
		},
		Driver: func(Setup) (Driver, error) { return r.driver(), nil }})
	if err := c.Run(context.Background()); !errors.Is(err, ErrFenced) || !taken {
		t.Errorf("%v, taken %v; want %v", err, taken, ErrFenced)
	}
}
