package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/internal/objects"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that what users write is what the engine hears, once.
func TestWishes(t *testing.T) {
	edit := func(w *world, f func(*v1alpha1.TrainingJob)) {
		change(w.cluster, objects.Job("train", 1, nil), f)
		w.settle()
	}
	play(t, []scene{
		{name: "suspend and resume", width: 2, test: func(w *world) {
			edit(w, func(tj *v1alpha1.TrainingJob) { tj.Spec.Suspend = true })
			if !w.v.Jobs[0].Paused {
				w.Error("want it paused")
			}
			edit(w, func(tj *v1alpha1.TrainingJob) { tj.Spec.Suspend = false })
			if w.v.Jobs[0].Paused || len(w.of(sched.JobCommanded)) != 2 {
				w.Errorf("%d commands, want 2", len(w.of(sched.JobCommanded)))
			}
		}},
		{name: "another width and priority", width: 2, test: func(w *world) {
			edit(w, func(tj *v1alpha1.TrainingJob) {
				four := int32(4)
				tj.Spec.GPUs.Max, tj.Spec.Priority = &four, 7
			})
			if s := w.v.Jobs[0].Spec; s.GPUs.Max != 4 || s.Priority != 7 || len(w.of(sched.JobChanged)) != 1 {
				w.Errorf("spec %+v, %d changes", s, len(w.of(sched.JobChanged)))
			}
		}},
		{name: "a job that arrives suspended is not there to be started", width: 2, test: func(w *world) {
			late := objects.Job("late", 1, nil)
			late.Spec.Suspend, late.Finalizers = true, nil
			must(w, w.Create(w.Context(), late))
			w.settle()
			if !w.v.Jobs[1].Paused || w.last(sched.JobArrived).Time != w.last(sched.JobCommanded).Time {
				w.Error("want it paused as it arrives")
			}
			if slices.Contains(w.writes, "patch *v1alpha1.TrainingJob late") {
				w.Error("want nothing written: claims say whose devices are whose")
			}
		}},
		{name: "where no claims say who has devices a job stays until its pods are gone", width: 2,
			opts: inMode(v1alpha1.Visible), test: func(w *world) {
				late := objects.Job("late", 1, nil)
				late.Finalizers = nil
				must(w, w.Create(w.Context(), late))
				w.settle()
				var tj v1alpha1.TrainingJob
				must(w, w.Get(w.Context(), client.ObjectKeyFromObject(late), &tj))
				if !controllerutil.ContainsFinalizer(&tj, v1alpha1.Finalizer) || len(w.of(sched.JobArrived)) != 2 {
					w.Errorf("finalizers %v, %d jobs; want ours, and both", tj.Finalizers, len(w.of(sched.JobArrived)))
				}
			}},
		{name: "a job that cannot run says why", width: 2, test: func(w *world) {
			bad := objects.Job("bad", 1, nil)
			bad.Spec.Checkpoint.ResumeArg, bad.Spec.Template.Spec.Containers[0].Command = "--resume", nil
			must(w, w.Create(w.Context(), bad))
			w.settle()
			var tj v1alpha1.TrainingJob
			must(w, w.Get(w.Context(), client.ObjectKeyFromObject(bad), &tj))
			want := `checkpoint.resumeArg "--resume" without command and args, want one of them: ` +
				`it would replace those of the image`
			if tj.Status.Phase != v1alpha1.Failed || tj.Status.Reason != want ||
				tj.Status.Conditions[0].Message != want || len(w.v.Jobs) != 1 {
				w.Errorf("status %+v", tj.Status)
			}
			must(w, w.Delete(w.Context(), &tj))
			w.settle()
			err := w.Get(w.Context(), client.ObjectKeyFromObject(bad), &tj)
			if client.IgnoreNotFound(err) != nil || err == nil {
				w.Error("want it to be gone once it is deleted")
			}
		}},
		{name: "a name that is used again is another job", width: 2, test: func(w *world) {
			w.run()
			change(w.cluster, objects.Job("train", 2, nil), func(tj *v1alpha1.TrainingJob) { tj.Finalizers = nil })
			must(w, w.Delete(w.Context(), objects.Job("train", 2, nil)))
			must(w, w.Create(w.Context(), objects.Job("train", 3, nil)))
			w.settle()
			if !w.v.Jobs[0].Cancel || len(w.v.Jobs) != 1 {
				w.Fatalf("%d jobs; want the first cancelled before the second arrives", len(w.v.Jobs))
			}
			w.stop(0)
			w.settle()
			if len(w.v.Jobs) != 2 || w.v.Jobs[1].Spec.GPUs.Min != 3 || w.v.Jobs[0].Outcome != sched.Cancelled {
				w.Errorf("%d jobs", len(w.v.Jobs))
			}
		}},
		{name: "progress and epochs are reported", width: 2, test: func(w *world) {
			w.run()
			w.s.Apply(&sched.Event{Time: w.v.Now, Kind: sched.Ordered, Job: 0, Attempt: 1,
				Code: int32(sched.WatchEpochs), Value: 1})
			for step := range 40 {
				change(w.cluster, w.podOf("train-1-0"), func(p *corev1.Pod) {
					p.Annotations[v1alpha1.AnnotationProgress] = "TRAINYARD epoch=" + string(rune('0'+step/10)) +
						" step=" + strings.Repeat("1", step/10+1)
				})
				w.pass(time.Second)
			}
			if n := len(w.of(sched.EpochEnded)); n != 3 || len(w.of(sched.Progressed)) == 0 ||
				w.last(sched.Progressed).Value != 1111 {
				w.Errorf("%d epochs, progress %+v", n, w.of(sched.Progressed))
			}
		}},
	})
}

// provider makes nodes as it is asked.
type provider struct {
	*cluster
	scaled   []int32
	released []string
}

func (p *provider) Scale(_ context.Context, _ *v1alpha1.GPUPool, n int32) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.scaled = append(p.scaled, n); len(p.scaled) == 1 {
		return errors.New("try again")
	}
	return nil
}

func (p *provider) Release(ctx context.Context, _ *v1alpha1.GPUPool, n *corev1.Node) error {
	p.released = append(p.released, n.Name)
	return p.Delete(ctx, n)
}

// Ensure that what is in the way of renting is tried on, said by the pool once, and taken away when it is gone.
func TestCannotRent(t *testing.T) {
	var mu sync.Mutex
	tries, said := 0, []string(nil)
	p := refusing(func() error {
		mu.Lock()
		defer mu.Unlock()
		if tries++; tries < 4 {
			return apierrors.NewForbidden(schema.GroupResource{Group: "karpenter.sh", Resource: "nodepools"}, "gpus",
				errors.New("exceeded quota"))
		}
		return nil
	})
	report := func(about client.Object, reason, text string) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, about.GetName()+" "+reason+" "+text)
	}
	play(t, []scene{{name: "", width: 2, opts: func(o *Options) { o.Provider, o.Event = p, report },
		test: func(w *world) {
			pool := w.spot()
			w.settle()
			w.s.Apply(&sched.Event{Time: w.v.Now, Kind: sched.Ordered, Job: sched.None, Pool: 0,
				Code:  int32(sched.Rent),
				Value: 3})
			must(w, w.d.Apply(w.Context(),
				sched.Plan{Actions: []sched.Action{{Kind: sched.Rent, Job: sched.None, Pool: 0, Count: 3}}}))
			says := func(want string) {
				w.Helper()
				end := time.Now().Add(30 * time.Second)
				for ; pool.Status.Message != want; time.Sleep(10 * time.Millisecond) {
					if must(w, w.Get(w.Context(), client.ObjectKeyFromObject(pool), pool)); time.Now().After(end) {
						w.Fatalf("the pool says %q, want %q", pool.Status.Message, want)
					}
				}
			}
			says(`nodepools.karpenter.sh "gpus" is forbidden: exceeded quota`)
			says("")
			mu.Lock()
			defer mu.Unlock()
			if tries != 4 || len(said) != 1 || !strings.HasPrefix(said[0], "spot CannotRent nodepools") {
				w.Errorf("%d tries; reported %q", tries, said)
			}
		}}})
}

// Ensure that a deleted pool goes where there is nothing that could make nodes for it, and stays where that may be.
func TestADeletedPoolGoes(t *testing.T) {
	of := schema.GroupResource{Group: "karpenter.sh", Resource: "nodepools"}
	var scenes []scene
	for _, c := range []struct {
		name string
		err  error
		goes bool
	}{
		{"the kind is not known",
			fmt.Errorf("no definition: %w",
				&meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "karpenter.sh", Kind: "NodePool"}}), true},
		{"no such object", apierrors.NewNotFound(of, "gpus"), true},
		{"refused", apierrors.NewForbidden(of, "gpus", errors.New("no right")), false},
	} {
		p := refusing(func() error { return c.err })
		scenes = append(scenes,
			scene{name: c.name, width: 2, opts: func(o *Options) { o.Provider = p }, test: func(w *world) {
				pool := w.spot()
				w.settle()
				must(w, w.Delete(w.Context(), pool))
				w.settle()
				time.Sleep(time.Minute)
				w.settle()
				gone := apierrors.IsNotFound(w.Get(w.Context(), client.ObjectKeyFromObject(pool), pool))
				if gone != c.goes {
					w.Errorf("the pool is gone: %v, want %v", gone, c.goes)
				}
			}})
	}
	play(t, scenes)
}

// refusing is a provider that does nothing, or fails.
type refusing func() error

func (r refusing) Scale(context.Context, *v1alpha1.GPUPool, int32) error          { return r() }
func (r refusing) Release(context.Context, *v1alpha1.GPUPool, *corev1.Node) error { return r() }

// spot makes a pool of nodes of four GPUs.
func (w *world) spot() *v1alpha1.GPUPool {
	w.Helper()
	pool := &v1alpha1.GPUPool{ObjectMeta: metav1.ObjectMeta{Name: "spot"}}
	pool.Spec = v1alpha1.GPUPoolSpec{GPUType: "V100", GPUsPerNode: 4, Max: 10,
		PricePerGPUHour: resource.MustParse("0.5")}
	must(w, w.Create(w.Context(), pool))
	return pool
}

// rented makes a node, the first object, of that pool, and what shows its GPUs.
func (w *world) rented(objects []client.Object) {
	w.Helper()
	objects[0].SetLabels(map[string]string{v1alpha1.LabelPool: "spot"})
	for _, o := range objects {
		must(w, w.Create(w.Context(), o))
	}
}

// Ensure that nodes are rented and given back, those that were named, and that the number that is ordered is asked for
// again once one has gone, for with it one fewer was.
func TestRent(t *testing.T) {
	p := new(provider)
	play(t, []scene{{name: "", width: 2, opts: func(o *Options) { p.cluster = o.Client.(*cluster); o.Provider = p },
		test: func(w *world) {
			w.spot()
			w.rented(objects.Node("spot-1", 4))
			w.settle()
			if len(w.v.Pools) != 1 || w.v.Pools[0].Spec.Price != 2 || w.v.Nodes[2].Spec.Pool != 0 ||
				w.v.Pools[0].Nodes != 1 {
				w.Fatalf("pools %+v, node %+v", w.v.Pools, w.v.Nodes[2])
			}
			w.s.Apply(&sched.Event{Time: w.v.Now, Kind: sched.Ordered, Job: sched.None, Pool: 0,
				Code:  int32(sched.Rent),
				Value: 3})
			must(w, w.d.Apply(w.Context(),
				sched.Plan{Actions: []sched.Action{{Kind: sched.Rent, Job: sched.None, Pool: 0, Count: 3}}}))
			w.settle()
			for _, state := range []sched.NodeState{sched.NodeDraining, sched.NodeGone} {
				w.s.Apply(&sched.Event{Time: w.v.Now, Kind: sched.Moved, Node: 2, Code: int32(state)})
				w.s.Apply(&sched.Event{Time: w.v.Now, Kind: sched.Ordered, Job: sched.None, Node: 2,
					Code: int32(sched.SetNode), Value: float64(state)})
				must(w, w.d.Apply(w.Context(),
					sched.Plan{Actions: []sched.Action{{Kind: sched.SetNode, Job: sched.None, Node: 2, State: state}}}))
				w.settle()
				if w.v.Nodes[2].State != state {
					w.Fatalf("node is %v, want %v", w.v.Nodes[2].State, state)
				}
			}
			// the first failed
			if !slices.Equal(p.scaled, []int32{3, 3, 3}) || !slices.Equal(p.released, []string{"spot-1"}) {
				w.Errorf("scaled %v, released %v", p.scaled, p.released)
			}
		}}})
}

// lastRent is the longest pause between tries to rent or to give back.
const lastRent = 30 * time.Second

// Ensure that a node which goes while it is being given back is not given back for ever.
func TestReleaseOfNodeThatGoes(t *testing.T) {
	var mu sync.Mutex
	released := 0
	p := refusing(func() error {
		mu.Lock()
		defer mu.Unlock()
		released++
		return apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, "spot-1")
	})
	play(t, []scene{{name: "", width: 2, opts: func(o *Options) { o.Provider = p }, test: func(w *world) {
		w.spot()
		w.rented(objects.Node("spot-1", 4))
		w.settle()
		w.s.Apply(&sched.Event{Time: w.v.Now, Kind: sched.Ordered, Job: sched.None, Node: 2, Code: int32(sched.SetNode),
			Value: float64(sched.NodeGone)})
		must(w, w.d.Apply(w.Context(),
			sched.Plan{Actions: []sched.Action{{Kind: sched.SetNode, Job: sched.None, Node: 2,
				State: sched.NodeGone}}}))
		w.pass(time.Second)
		tries := func() int { mu.Lock(); defer mu.Unlock(); return released }
		before := tries()
		if w.pass(lastRent); tries() == before {
			w.Error("the driver does not try to give the node back")
		}
		must(w, w.Delete(w.Context(), nodeNamed("spot-1")))
		w.pass(2 * lastRent)
		after := tries()
		if w.pass(4 * lastRent); tries() != after {
			w.Errorf("it is given back still, after %d tries", tries())
		}
	}}})
}

// Ensure that a deleted pool gives back a node that is there and whose GPUs no look has shown yet, before it goes:
// later no one would know from whom that is.
func TestDeletedPoolGivesBackWhatBoots(t *testing.T) {
	p := new(provider)
	play(t, []scene{{name: "", width: 2, opts: func(o *Options) { p.cluster = o.Client.(*cluster); o.Provider = p },
		test: func(w *world) {
			pool := w.spot()
			w.settle()
			w.rented(objects.Node("spot-1", 4)[:1]) // without its GPUs
			w.settle()
			must(w, w.Delete(w.Context(), pool))
			w.pass(10 * time.Second)
			err := w.Get(w.Context(), client.ObjectKeyFromObject(pool), pool)
			if !apierrors.IsNotFound(err) || len(p.released) != 1 || p.released[0] != "spot-1" {
				w.Errorf("the pool: %v; released %v", err, p.released)
			}
		}}})
}

// Ensure that where there are to be fewer nodes one goes whose GPUs no look shows, rather than be paid for until its
// pool is deleted.
func TestUnseenNodesGoFirst(t *testing.T) {
	p := new(provider)
	play(t, []scene{{name: "", width: 2, opts: func(o *Options) { p.cluster = o.Client.(*cluster); o.Provider = p },
		test: func(w *world) {
			w.spot()
			w.rented(objects.Node("spot-1", 4))
			w.settle()
			w.rented(objects.Node("spot-2", 4)[:1]) // without its GPUs
			w.rented(objects.Node("spot-3", 4)[:1])
			change(w.cluster, nodeNamed("spot-3"), func(n *corev1.Node) {
				n.Annotations = map[string]string{v1alpha1.AnnotationReleased: "counted"}
			})
			w.settle()
			for _, c := range []struct {
				nodes int32
				want  []string
			}{{3, nil}, {2, nil}, {1, []string{"spot-2"}}, {0, []string{"spot-2"}}} {
				w.s.Apply(&sched.Event{Time: w.v.Now, Kind: sched.Ordered, Job: sched.None, Pool: 0,
					Code: int32(sched.Rent), Value: float64(c.nodes)})
				must(w, w.d.Apply(w.Context(),
					sched.Plan{Actions: []sched.Action{{Kind: sched.Rent, Job: sched.None, Pool: 0, Count: c.nodes}}}))
				w.settle()
				if !slices.Equal(p.released, c.want) {
					w.Errorf("released %v where %d are to be there, want %v", p.released, c.nodes, c.want)
				}
			}
		}}})
}

// Ensure that a node that is given back goes although its pool is deleted while it cannot be cordoned yet.
func TestDeletedPoolLetsNodesGo(t *testing.T) {
	p := new(provider)
	play(t, []scene{{name: "", width: 2, opts: func(o *Options) { p.cluster = o.Client.(*cluster); o.Provider = p },
		test: func(w *world) {
			pool := w.spot()
			w.rented(objects.Node("spot-1", 4))
			w.settle()
			w.setFail(func(verb string, o client.Object) error {
				if isNode(o) && verb == "patch" {
					return apierrors.NewInternalError(errors.New("busy"))
				}
				return nil
			})
			w.s.Apply(&sched.Event{Time: w.v.Now, Kind: sched.Moved, Node: 2, Code: int32(sched.NodeGone)})
			w.s.Apply(&sched.Event{Time: w.v.Now, Kind: sched.Ordered, Job: sched.None, Node: 2,
				Code:  int32(sched.SetNode),
				Value: float64(sched.NodeGone)})
			must(w, w.d.Apply(w.Context(),
				sched.Plan{Actions: []sched.Action{{Kind: sched.SetNode, Job: sched.None, Node: 2,
					State: sched.NodeGone}}}))
			must(w, w.Delete(w.Context(), pool))
			w.pass(10 * time.Second)
			w.setFail(nil)
			w.pass(10 * time.Second)
			err := w.Get(w.Context(), client.ObjectKeyFromObject(pool), pool)
			if !apierrors.IsNotFound(err) || len(p.released) != 1 {
				w.Errorf("the pool: %v; released %v", err, p.released)
			}
		}}})
}
