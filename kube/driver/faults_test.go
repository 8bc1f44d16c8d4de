package driver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/internal/objects"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that no order is lost, and none carried out twice, whatever an API server that is restarted says to each
// write: that it did nothing, or did it and could not say so.
func TestWritesThatFail(t *testing.T) {
	t.Parallel()
	for _, mode := range []v1alpha1.Mode{v1alpha1.Pinned, v1alpha1.Direct} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				class := &deviceClass{ObjectMeta: metav1.ObjectMeta{Name: class}}
				w := open(t,
					newCluster(t,
						slices.Concat(objects.Node("a", 4), objects.Node("b", 4),
							[]client.Object{objects.Job("train", 6, nil), class})...), inMode(mode))
				failures := []error{apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("changed")),
					apierrors.NewTooManyRequests("slow down", 1),
					apierrors.NewInternalError(errors.New("etcd")), apierrors.NewServiceUnavailable("stopping"),
					errors.New("connection refused")}
				var mu sync.Mutex
				random, n := rand.New(rand.NewPCG(1, 2)), map[string]int{}
				w.setFail(func(verb string, o client.Object) error { // each write fails twice, each time otherwise
					mu.Lock()
					defer mu.Unlock()
					key := fmt.Sprintf("%s %T %s", verb, o, o.GetName())
					if n[key]++; n[key] > 2 || strings.HasSuffix(verb, "status") &&
						strings.HasSuffix(fmt.Sprintf("%T", o), "Pod") {
						return nil
					}
					return failures[random.IntN(len(failures))]
				})
				for range 2 {
					w.start(0, gpus(6)...)
					w.pass(10 * time.Second)
					w.attempt(0, sched.Running)
					w.stop(0)
					w.pass(10 * time.Second)
				}
				if got := kinds0(w.events)[3:]; !slices.Equal(got, []string{"started", "ended", "started", "ended"}) {
					t.Errorf("reported %v", got)
				}
			})
		})
	}
}

// Ensure that an answer that is lost does no harm: what was done is found done.
func TestAnswersThatAreLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t,
			slices.Concat(objects.Node("a", 4), objects.Node("b", 4), []client.Object{objects.Job("train", 6, nil)})...)
		var mu sync.Mutex
		n := map[string]int{}
		c.lose = func(verb string, o client.Object) error {
			mu.Lock()
			defer mu.Unlock()
			key := fmt.Sprintf("%s %T %s", verb, o, o.GetName())
			if n[key]++; n[key] > 1 || verb != "create" && verb != "delete" {
				return nil
			}
			return errors.New("connection reset")
		}
		w := open(t, c, nil)
		w.start(0, gpus(6)...)
		w.pass(10 * time.Second)
		w.attempt(0, sched.Running)
		w.stop(0)
		w.pass(10 * time.Second)
		w.ended(sched.Preempted, "")
		if w.claimNamed("train-1-r0") != nil || w.podOf("train-1-0") != nil {
			t.Error("want nothing left")
		}
	})
}

// Ensure that a driver that takes over at any moment goes on where the last one died: each attempt starts once and ends
// once, and nothing is made twice.
func TestTakeover(t *testing.T) {
	t.Parallel()
	for at := range 24 { // writes after which the first one dies
		t.Run(fmt.Sprint("after write ", at), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t,
					slices.Concat(objects.Node("a", 4), objects.Node("b", 4),
						[]client.Object{objects.Job("train", 6, nil)})...)
				var mu sync.Mutex
				left, dead := at, false
				o := options(c)
				o.Lease = func() error { // asked before each write
					mu.Lock()
					defer mu.Unlock()
					if left--; left < 0 {
						dead = true
						return errors.New("dead")
					}
					return nil
				}
				w := open(t, c, func(p *Options) { *p = o })
				w.start(0, gpus(6)...)
				w.live(func() bool {
					mu.Lock()
					defer mu.Unlock()
					return dead || w.v.Jobs[0].Attempt == sched.Running
				})
				if !dead {
					w.stop(0)
					w.live(func() bool {
						mu.Lock()
						defer mu.Unlock()
						return dead || w.v.Jobs[0].Attempt == sched.Ended && len(w.leftovers()) == 0
					})
				}
				w.d.Close()
				o.Lease = nil
				w.take(o)
				j := &w.v.Jobs[0] // the engine gives again what is not answered
				switch j.Attempt {
				case sched.Starting:
					must(t, w.d.Apply(t.Context(),
						sched.Plan{Actions: []sched.Action{{Kind: sched.Start, Job: 0, Attempt: 1, GPUs: j.GPUs}}}))
				case sched.Stopping:
					must(t, w.d.Apply(t.Context(),
						sched.Plan{Actions: []sched.Action{{Kind: sched.Stop, Job: 0, Attempt: 1,
							Why: sched.Preempted}}}))
				}
				w.pass(10 * time.Second)
				if j = &w.v.Jobs[0]; j.Attempt == sched.Running {
					w.stop(0)
					w.pass(10 * time.Second)
				}
				if len(w.of(sched.AttemptStarted)) != 1 || len(w.of(sched.AttemptEnded)) != 1 ||
					w.last(sched.AttemptEnded).Outcome != sched.Preempted {
					t.Errorf("reported %v", kinds0(w.events))
				}
				if left := w.leftovers(); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
			})
		})
	}
}

// live lets time pass until something is so, for as long as the driver lives.
func (w *world) live(until func() bool) {
	w.Helper()
	for range 2000 {
		if until() {
			return
		}
		w.tick()
		events, err := w.d.Next(w.Context(), w.d.clock.read().Add(5*time.Millisecond))
		if err != nil {
			return
		}
		w.fold(slices.DeleteFunc(events, func(e sched.Event) bool { return e.Kind == sched.Ticked }))
	}
	w.Fatalf("it never happens; reported %v", kinds0(w.events))
}

// leftovers are the names of pods, claims and services.
func (w *world) leftovers() (names []string) {
	for _, l := range []client.ObjectList{&corev1.PodList{}, &claimList{}, &corev1.ServiceList{}} {
		must(w, w.List(w.Context(), l))
		switch l := l.(type) {
		case *corev1.PodList:
			for i := range l.Items {
				names = append(names, "pod "+l.Items[i].Name)
			}
		case *claimList:
			for i := range l.Items {
				names = append(names, "claim "+l.Items[i].Name)
			}
		case *corev1.ServiceList:
			for i := range l.Items {
				names = append(names, "service "+l.Items[i].Name)
			}
		}
	}
	return names
}

// Ensure that what became of attempts while no driver looked is reported.
func TestSyncTellsWhatHappened(t *testing.T) {
	meanwhile := func(f func(*world)) func(*world) {
		return func(w *world) {
			w.run()
			w.d.Close()
			f(w)
			w.take(options(w.cluster))
			w.settle()
		}
	}
	play(t, []scene{
		{name: "nothing", width: 6, test: meanwhile(func(*world) {})},
		{name: "it finished", width: 6, test: func(w *world) {
			meanwhile(func(w *world) {
				w.exit(w.Context(), w.podOf("train-1-0"), 0)
				w.exit(w.Context(), w.podOf("train-1-1"), 0)
			})(w)
			w.ended(sched.Finished, "")
		}},
		{name: "its pods are gone", width: 6, test: func(w *world) {
			meanwhile(func(w *world) {
				for _, name := range []string{"train-1-0", "train-1-1"} {
					must(w, w.Delete(w.Context(), w.podOf(name), client.GracePeriodSeconds(0)))
				}
			})(w)
			w.ended(sched.NodeLost, "someone else deleted pod train-1-0")
		}},
		{name: "its node is gone", width: 6, test: func(w *world) {
			meanwhile(func(w *world) {
				w.silent["b"] = true
				must(w, w.Delete(w.Context(), nodeNamed("b")))
			})(w)
			w.ended(sched.NodeLost, "node b is gone")
		}},
		{name: "pods of no live attempt are there", width: 6, test: func(w *world) {
			meanwhile(func(w *world) {
				p := w.podOf("train-1-0")
				for _, n := range []string{"0", "7"} {
					q := p.DeepCopy()
					q.Name, q.ResourceVersion, q.Labels[v1alpha1.LabelAttempt] = "train-"+n+"-0", "", n
					must(w, w.Create(w.Context(), q))
				}
			})(w)
			w.attempt(0, sched.Running)
			if w.podOf("train-0-0") != nil || w.podOf("train-1-0") == nil || w.podOf("train-7-0") == nil {
				w.Error("want the pod of an attempt that is over gone, neither that which lives nor one of others, " +
					"as no order was given for attempt 7")
			}
		}},
	})
}

// Ensure that a driver ends when another leads, and writes nothing more.
func TestLeaseLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lost := errors.New("no longer ours")
		var mu sync.Mutex
		var err error
		c := newCluster(t, slices.Concat(objects.Node("a", 4), []client.Object{objects.Job("train", 2, nil)})...)
		w := open(t, c, func(o *Options) { o.Lease = func() error { mu.Lock(); defer mu.Unlock(); return err } })
		mu.Lock()
		err = lost
		mu.Unlock()
		w.start(0, 0, 1)
		_, got := w.d.Next(t.Context(), sched.Never)
		if !errors.Is(got, lost) || len(c.writes) > 0 {
			t.Errorf("%v, wrote %v", got, c.writes)
		}
	})
}

// Ensure that who observes writes nothing.
func TestObserveWritesNothing(t *testing.T) {
	play(t, []scene{{name: "", width: 2, opts: func(o *Options) { o.Observe = true }, test: func(w *world) {
		bad := objects.Job("bad.name", 1, nil)
		must(w, w.Create(w.Context(), bad))
		w.writes = nil
		w.start(0, 0, 1)
		w.pass(time.Hour)
		w.stop(0)
		w.settle()
		if len(w.writes) > 0 {
			w.Errorf("wrote %v", w.writes)
		}
	}}})
}
