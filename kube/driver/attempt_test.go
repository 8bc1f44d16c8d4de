package driver

import (
	"fmt"
	"slices"
	"strings"
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

// cases runs tests in bubbles of their own, each with two nodes of 4 GPUs and a job of so many GPUs that runs on the
// first of them.
type scene struct {
	name  string
	width int32
	env   map[string]string
	opts  func(*Options)
	test  func(*world)
}

func play(t *testing.T, scenes []scene) {
	t.Parallel()
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			alone(t, s)
		})
	}
}

// alone plays one scene.
func alone(t *testing.T, s scene) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t,
			newCluster(t,
				slices.Concat(objects.Node("a", 4), objects.Node("b", 4),
					[]client.Object{objects.Job("train", s.width, s.env)})...), s.opts)
		s.test(w)
	})
}

// gpus are those of the first width GPUs, of which node a has 4.
func gpus(width int32) (list []sched.GPUID) {
	for g := range width {
		list = append(list, sched.GPUID(g))
	}
	return list
}

// run starts the job on its first GPUs and waits until it is up.
func (w *world) run() {
	w.Helper()
	w.start(0, gpus(w.v.Jobs[0].Spec.GPUs.Min)...)
	w.settle()
	w.attempt(0, sched.Running)
}

// bare checks that nothing is left of the first attempt of a job of two ranks.
func (w *world) bare() {
	w.Helper()
	if w.podOf("train-1-0") != nil || w.podOf("train-1-1") != nil || w.claimNamed("train-1-r0") != nil ||
		w.claimNamed("train-1-r1") != nil {
		w.Error("want no pod and no claim")
	}
}

// ended checks how the one attempt of the job ended.
func (w *world) ended(want sched.Outcome, text string) {
	w.Helper()
	e := w.last(sched.AttemptEnded)
	if e.Outcome != want || !strings.Contains(e.Text, text) || len(w.of(sched.AttemptEnded)) != 1 {
		w.Fatalf("ended %v, text %q, %d ends, want %v, %q, 1", e.Outcome, e.Text, len(w.of(sched.AttemptEnded)), want,
			text)
	}
}

// Ensure that an attempt ends as it ended, once all of it is gone.
func TestEnds(t *testing.T) {
	play(t, []scene{
		{name: "exit 0 of all ranks is finished", width: 6, env: map[string]string{lifetime: "5s"},
			test: func(w *world) {
				w.run()
				w.pass(6 * time.Second)
				w.ended(sched.Finished, "")
			}},
		{name: "another exit code is failed, and the other ranks are stopped", width: 6, test: func(w *world) {
			w.run()
			w.exit(w.Context(), w.podOf("train-1-1"), 7)
			w.settle()
			w.ended(sched.Failed, "pod train-1-1: exit code 7")
			if e := w.last(sched.AttemptEnded); e.Code != 7 || w.podOf("train-1-0") != nil ||
				w.podOf("train-1-1") == nil {
				w.Errorf("code %d; want 7, the pod of rank 0 gone and that of rank 1 kept for its logs", e.Code)
			}
		}},
		{name: "a stop is preempted, whatever the exit code", width: 6, test: func(w *world) {
			w.run()
			w.stop(0)
			w.settle()
			w.ended(sched.Preempted, "as ordered")
			if w.podOf("train-1-0") != nil || w.podOf("train-1-1") != nil {
				w.Error("want all pods gone")
			}
		}},
		{name: "a job that has come to its end before it hears of the stop is finished", width: 1,
			test: func(w *world) {
				w.run()
				w.exit(w.Context(), w.podOf("train-1-0"), 0)
				w.queue.Take() // the driver does not hear of it
				w.stop(0)
				w.settle()
				w.ended(sched.Finished, "")
			}},
		{name: "a job that says that it is done is finished", width: 1, test: func(w *world) {
			w.run()
			change(w.cluster, w.podOf("train-1-0"), func(p *corev1.Pod) {
				p.Annotations[v1alpha1.AnnotationProgress] = "TRAINYARD done step=100"
			})
			w.settle()
			w.stop(0)
			w.settle()
			w.ended(sched.Finished, "")
		}},
		{name: "a pod that others delete is lost, not failed", width: 6, test: func(w *world) {
			w.run()
			must(w, w.Delete(w.Context(), w.podOf("train-1-1")))
			w.settle()
			w.ended(sched.NodeLost, "someone else deleted pod train-1-1")
			if w.v.Jobs[0].State != sched.Held || w.v.Jobs[0].Failures != 0 {
				w.Errorf("%v after %d failures, want held for a moment, and no failure", w.v.Jobs[0].State,
					w.v.Jobs[0].Failures)
			}
		}},
		{name: "an evicted pod is lost, and what its peers make of that does not count", width: 6,
			test: func(w *world) {
				w.run()
				changeStatus(w.cluster, w.podOf("train-1-0"), func(p *corev1.Pod) {
					p.Status.Conditions = []corev1.PodCondition{
						{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI",
							Message: "drained", LastTransitionTime: metav1.NewTime(time.Now().Add(-10 * time.Second))}}
				})
				w.exit(w.Context(), w.podOf("train-1-1"), 1)
				must(w, w.Delete(w.Context(), w.podOf("train-1-0")))
				w.settle()
				w.ended(sched.NodeLost, "pod train-1-0 was ended from outside (EvictionByEvictionAPI: drained)")
			}},
		{name: "a job that is deleted is cancelled, and goes", width: 6, test: func(w *world) {
			w.run()
			must(w, w.Delete(w.Context(), objects.Job("train", 6, nil)))
			w.settle()
			if w.last(sched.JobCommanded).Code != int32(sched.CancelJob) {
				w.Fatal("want a command to cancel")
			}
			w.stop(0)
			w.settle()
			w.ended(sched.Cancelled, "as ordered")
			if err := w.Get(w.Context(), client.ObjectKeyFromObject(objects.Job("train", 6, nil)),
				&v1alpha1.TrainingJob{}); !apierrors.IsNotFound(err) {
				w.Errorf("%v, want the object gone", err)
			}
		}},
		{name: "a job that is deleted is cancelled, though the garbage collector has its pods go before we do",
			width: 6, test: func(w *world) {
				w.run()
				must(w, w.Delete(w.Context(), objects.Job("train", 6, nil)))
				must(w, w.Delete(w.Context(), w.podOf("train-1-0")))
				must(w, w.Delete(w.Context(), w.podOf("train-1-1")))
				w.settle()
				w.ended(sched.Cancelled, "as ordered")
				if w.v.Jobs[0].State != sched.Done || w.v.Jobs[0].Outcome != sched.Cancelled {
					w.Errorf("%v, %v; want done, cancelled", w.v.Jobs[0].State, w.v.Jobs[0].Outcome)
				}
			}},
		{name: "a start that is called off at once leaves nothing", width: 6, test: func(w *world) {
			w.start(0, gpus(6)...)
			w.stop(0)
			w.settle()
			w.ended(sched.Preempted, "")
			w.bare()
		}},
		{name: "a start that is called off once its claims are there leaves nothing", width: 6, test: func(w *world) {
			w.start(0, gpus(6)...)
			synctest.Wait()
			if w.claimNamed("train-1-r1") == nil || w.podOf("train-1-0") != nil {
				w.Fatal("want claims and no pods yet")
			}
			w.stop(0)
			w.settle()
			w.ended(sched.Preempted, "")
			w.bare()
		}},
	})
}

// Ensure that what is silent is left alone, and what is gone given up.
func TestNodes(t *testing.T) {
	ready := func(w *world, name string, s corev1.ConditionStatus) {
		changeStatus(w.cluster, nodeNamed(name), func(n *corev1.Node) { n.Status.Conditions[0].Status = s })
	}
	state := func(w *world, want ...sched.GPUState) {
		w.Helper()
		for g, s := range want {
			if w.v.GPUs[g].State != s {
				w.Errorf("GPU %d is %v, want %v", g, w.v.GPUs[g].State, s)
			}
		}
	}
	play(t, []scene{
		{name: "a silent node kills no job, and is given no new one", width: 2, test: func(w *world) {
			w.run()
			w.silent["a"] = true
			ready(w, "a", corev1.ConditionUnknown)
			w.pass(time.Hour)
			w.attempt(0, sched.Running)
			state(w, sched.GPUStuck, sched.GPUStuck, sched.GPUStuck, sched.GPUStuck, sched.GPUInUse)
			ready(w, "a", corev1.ConditionTrue)
			w.settle()
			state(w, sched.GPUInUse, sched.GPUInUse)
		}},
		{name: "the pods of a node that is deleted are given up, the other ranks are stopped, then it leaves", width: 6,
			test: func(w *world) {
				w.run()
				w.silent["a"] = true
				must(w, w.Delete(w.Context(), nodeNamed("a")))
				w.settle()
				w.ended(sched.NodeLost, "node a is gone")
				if e := w.last(sched.NodeLeft); e.Node != 0 || w.v.Nodes[0].State != sched.NodeGone ||
					w.podOf("train-1-0") != nil || w.podOf("train-1-1") != nil {
					w.Errorf("left %+v, node is %v", e, w.v.Nodes[0].State)
				}
			}},
		{name: "slices that vanish take GPUs out of use, and their jobs go on", width: 2, test: func(w *world) {
			w.run()
			must(w, w.Delete(w.Context(), objects.Slice("a", 4)))
			w.settle()
			w.attempt(0, sched.Running)
			state(w, sched.GPUMissing, sched.GPUMissing, sched.GPUMissing, sched.GPUMissing, sched.GPUInUse)
			must(w, w.Create(w.Context(), objects.Slice("a", 4)))
			w.settle()
			state(w, sched.GPUInUse, sched.GPUInUse, sched.GPUInUse, sched.GPUInUse)
		}},
		{name: "a pool that is being published is no reason to change anything", width: 2, test: func(w *world) {
			change(w.cluster, objects.Slice("a", 4), func(s *resourceSlice) {
				s.Spec.Pool.ResourceSliceCount, s.Spec.Devices = 2, s.Spec.Devices[:1]
			})
			w.settle()
			state(w, sched.GPUInUse, sched.GPUInUse, sched.GPUInUse, sched.GPUInUse)
			if n := len(w.of(sched.GPUChanged)); n != 0 {
				w.Errorf("%d changes of GPUs", n)
			}
		}},
		{name: "a cordoned node drains", width: 2, test: func(w *world) {
			w.run()
			change(w.cluster, nodeNamed("a"), func(n *corev1.Node) { n.Spec.Unschedulable = true })
			w.settle()
			if w.v.Nodes[0].State != sched.NodeDraining {
				w.Errorf("node is %v, want draining", w.v.Nodes[0].State)
			}
			w.attempt(0, sched.Running)
			change(w.cluster, nodeNamed("a"), func(n *corev1.Node) { n.Spec.Unschedulable = false })
			w.settle()
			if w.v.Nodes[0].State != sched.NodeUp {
				w.Errorf("node is %v, want up", w.v.Nodes[0].State)
			}
		}},
		{name: "a GPU that a profile withholds is withheld", width: 2, test: func(w *world) {
			p := &v1alpha1.GPUProfile{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
			p.Spec.GPUs = []v1alpha1.GPUKnown{{UUID: "GPU-a-2", Withheld: true},
				{UUID: "GPU-of-no-node", Withheld: true}}
			must(w, w.Create(w.Context(), p))
			w.settle()
			state(w, sched.GPUInUse, sched.GPUInUse, sched.GPUWithheld, sched.GPUInUse)
		}},
		{name: "a node that joins late has a number, and its withheld GPU is known at once", width: 2,
			test: func(w *world) {
				p := &v1alpha1.GPUProfile{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
				p.Spec.GPUs = []v1alpha1.GPUKnown{{UUID: "GPU-c-1", Withheld: true}}
				must(w, w.Create(w.Context(), p))
				for _, o := range objects.Node("c", 2) {
					must(w, w.Create(w.Context(), o))
				}
				w.settle()
				if len(w.v.Nodes) != 3 || w.v.GPUs[9].State != sched.GPUWithheld ||
					w.of(sched.GPUChanged)[0].Time != w.last(sched.NodeJoined).Time {
					w.Errorf("%d nodes, GPUs %+v", len(w.v.Nodes), w.v.GPUs)
				}
			}},
		{name: "a machine that takes a name over joins when the first is gone", width: 2, test: func(w *world) {
			w.run()
			w.silent["a"] = true
			must(w, w.Delete(w.Context(), nodeNamed("a")))
			must(w, w.Create(w.Context(), objects.Node("a", 4)[0]))
			w.settle()
			w.ended(sched.NodeLost, "node a is gone")
			if w.v.Nodes[0].State != sched.NodeUp || w.v.Nodes[0].Generation != 2 {
				w.Errorf("node %+v, want it up a second time", w.v.Nodes[0])
			}
		}},
	})
}

// startHeld starts the job on GPUs that another has left and that are not given back.
func startHeld(w *world) {
	w.Helper()
	must(w, w.Create(w.Context(), objects.Job("other", 2, nil)))
	w.settle()
	w.start(1, 0, 1)
	w.settle()
	w.stuck = true
	w.stop(1)
	w.settle()
	w.start(0, 0, 1)
}

// Ensure that an attempt that does not come up is given up, and that those GPUs alone are suspects whose ranks did not.
func TestStartTimeout(t *testing.T) {
	failed := func(w *world, text string, suspects ...sched.GPUID) {
		w.Helper()
		e := w.last(sched.StartFailed)
		if !strings.Contains(e.Text, text) || !slices.Equal(e.GPUs, suspects) {
			w.Errorf("failed: %q, suspects %v, want %q, %v", e.Text, e.GPUs, text, suspects)
		}
		if w.podOf("train-1-0") != nil || w.podOf("train-1-1") != nil || w.claimNamed("train-1-r0") != nil {
			w.Error("want nothing of it left")
		}
	}
	play(t, []scene{
		{name: "the GPUs of the rank that is not up are suspects", width: 6, test: func(w *world) {
			w.silent["b"] = true
			w.start(0, gpus(6)...)
			w.pass(9 * time.Minute)
			w.attempt(0, sched.Starting)
			w.silent["b"] = false // hears of the deletion
			w.setFail(func(verb string, o client.Object) error {
				if p, ok := o.(*corev1.Pod); ok && verb == "update status" && p.Spec.NodeName == "b" {
					return fmt.Errorf("not up")
				}
				return nil
			})
			w.pass(2 * time.Minute)
			failed(w, "1 of 2 ranks not up after 10m0s: pod train-1-1 does not run yet", 4, 5)
		}},
		{name: "time counts from when the devices were given back", width: 2, test: func(w *world) {
			startHeld(w)
			w.pass(9 * time.Minute)
			w.attempt(0, sched.Starting)
			if w.podOf("train-1-0") != nil {
				w.Fatal("the pod was made before its devices were free")
			}
			w.stuck, w.silent["a"] = false, true
			w.pass(9 * time.Minute)
			w.attempt(0, sched.Starting)
			w.silent["a"] = false
			w.settle()
			w.attempt(0, sched.Running)
		}},
		{name: "devices that are never given back fail the start", width: 2, test: func(w *world) {
			startHeld(w)
			w.pass(11 * time.Minute)
			failed(w, "not up after 10m0s: its devices are not free: claim lab/other-1 has one")
		}},
		{name: "an image that is not there is the user's fault alone", width: 2, test: func(w *world) {
			w.silent["a"] = true
			w.start(0, 0, 1)
			w.settle()
			changeStatus(w.cluster, w.podOf("train-1-0"), func(p *corev1.Pod) {
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
					Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}}}}
			})
			w.pass(10 * time.Minute)
			w.silent["a"] = false
			w.settle()
			failed(w, "pod train-1-0 waits (ImagePullBackOff: no such image)")
		}},
		{name: "a pod that its kubelet refuses fails the start", width: 2, test: func(w *world) {
			w.silent["a"] = true
			w.start(0, 0, 1)
			w.settle()
			changeStatus(w.cluster, w.podOf("train-1-0"), func(p *corev1.Pod) {
				p.Status.Phase, p.Status.Reason = corev1.PodFailed, "UnexpectedAdmissionError"
			})
			w.settle()
			if e := w.last(sched.StartFailed); !strings.Contains(e.Text, "UnexpectedAdmissionError") ||
				!slices.Equal(e.GPUs, []sched.GPUID{0, 1}) {
				w.Errorf("%+v", e)
			}
		}},
		{name: "what the API server refuses fails the start", width: 6, test: func(w *world) {
			w.setFail(func(verb string, o client.Object) error {
				if p, ok := o.(*corev1.Pod); ok && verb == "create" && p.Name == "train-1-1" {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, p.Name,
						fmt.Errorf("exceeded quota"))
				}
				return nil
			})
			w.start(0, gpus(6)...)
			w.settle()
			failed(w, "pod train-1-1 cannot be made: pods \"train-1-1\" is forbidden: exceeded quota")
		}},
		{name: "a GPU that is gone by then fails the start", width: 2, test: func(w *world) {
			a := w.order(0, sched.Config{}, 0, 1)
			must(w, w.Delete(w.Context(), objects.Slice("a", 4)))
			events, err := w.d.Next(w.Context(), w.d.clock.read().Add(time.Second))
			must(w, err)
			w.fold(events)
			must(w, w.d.Apply(w.Context(), sched.Plan{Actions: []sched.Action{a}}))
			w.settle()
			failed(w, "GPU GPU-a-1 of node a is not there any more")
		}},
	})
}
