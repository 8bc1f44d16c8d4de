package driver

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/claims"
	"github.com/trainyard/trainyard/kube/driver/internal/objects"
	"github.com/trainyard/trainyard/kube/driver/inventory"
	"github.com/trainyard/trainyard/sched"
)

func inMode(m v1alpha1.Mode) func(*Options) { return func(o *Options) { o.Mode = m } }

// Ensure that each mode gives pods their GPUs in its way.
func TestModes(t *testing.T) {
	play(t, []scene{
		{name: "direct allocates and binds in the order that the API wants", width: 6, opts: inMode(v1alpha1.Direct),
			test: func(w *world) {
				opaque := resourcev1.DeviceConfiguration{Opaque: &resourcev1.OpaqueDeviceConfiguration{Driver: class}}
				must(w, w.Create(w.Context(), &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: class},
					Spec: resourcev1.DeviceClassSpec{
						Config: []resourcev1.DeviceClassConfiguration{{DeviceConfiguration: opaque}}}}))
				w.run()
				var rank1 []string
				for _, x := range w.writes {
					if strings.HasSuffix(x, "train-1-1") || strings.HasSuffix(x, "train-1-r1") {
						rank1 = append(rank1, x)
					}
				}
				want := []string{"create *v1.ResourceClaim train-1-r1", "create *v1.Pod train-1-1",
					"update status *v1.ResourceClaim train-1-r1",
					"create binding *v1.Pod train-1-1", "update status *v1.Pod train-1-1"}
				if !slices.Equal(rank1, want) {
					w.Errorf("wrote %q, want %q", rank1, want)
				}
				claim, pod := w.claimNamed("train-1-r1"), w.podOf("train-1-1")
				a := claim.Status.Allocation
				if pod.Spec.SchedulerName == "" || len(a.Devices.Results) != 2 ||
					a.Devices.Results[1].Device != "gpu-1" ||
					a.Devices.Results[1].Pool != "b" ||
					a.NodeSelector.NodeSelectorTerms[0].MatchFields[0].Values[0] != "b" ||
					claim.Status.ReservedFor[0].UID != pod.UID ||
					len(a.Devices.Config) != 1 ||
					a.Devices.Config[0].Source != resourcev1.AllocationConfigSourceClass ||
					!slices.Contains(claim.Finalizers, resourcev1.Finalizer) {
					w.Errorf("allocation %+v, finalizers %v", a, claim.Finalizers)
				}
				w.stop(0)
				w.settle()
				w.ended(sched.Preempted, "")
				if w.claimNamed("train-1-r1") != nil {
					w.Error("want the claim gone")
				}
			}},
		{name: "visible-devices names the GPUs in a variable", width: 2, opts: inMode(v1alpha1.Visible),
			test: func(w *world) {
				change(w.cluster, nodeNamed("a"), func(n *corev1.Node) {
					n.Annotations = map[string]string{v1alpha1.AnnotationGPUs: "GPU-a-0,GPU-a-1"}
				})
				w.settle()
				w.run()
				p := w.podOf("train-1-0")
				got := variable(p, "NVIDIA_VISIBLE_DEVICES")
				if got != "GPU-a-0,GPU-a-1" || len(p.Spec.ResourceClaims) > 0 {
					w.Errorf("devices %q, claims %v", got, p.Spec.ResourceClaims)
				}
			}},
		{name: "count asks for a number of GPUs", width: 2, opts: inMode(v1alpha1.Count), test: func(w *world) {
			w.run()
			p := w.podOf("train-1-0")
			n := p.Spec.Containers[0].Resources.Limits[inventory.ResourceGPU]
			if n.Value() != 2 || len(p.Spec.ResourceClaims) > 0 || w.v.Nodes[0].Spec.Devices != nil {
				w.Errorf("%v GPUs, claims %v, devices %v", n.Value(), p.Spec.ResourceClaims, w.v.Nodes[0].Spec.Devices)
			}
			changeStatus(w.cluster, nodeNamed("a"), func(n *corev1.Node) {
				n.Status.Allocatable[inventory.ResourceGPU] = *objects.Quantity(3)
			})
			w.settle()
			if w.v.GPUs[3].State != sched.GPUMissing || w.v.GPUs[2].State != sched.GPUInUse {
				w.Errorf("GPUs %+v, want the last missing", w.v.GPUs[:4])
			}
		}},
	})
}

// Ensure that nodes without slices are known by their annotation.
func TestAnnotatedNodes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := objects.Node("a", 0)[0].(*corev1.Node)
		n.Annotations = map[string]string{v1alpha1.AnnotationGPUs: "GPU-x, GPU-y,,GPU-x"}
		n.Labels = map[string]string{inventory.LabelProduct: "V100", inventory.LabelMemory: "32768"}
		w := open(t, newCluster(t, n, objects.Job("train", 1, nil)), inMode(v1alpha1.Visible))
		if len(w.v.Nodes) != 1 || !slices.Equal(w.v.Nodes[0].Spec.Devices, []string{"GPU-x", "GPU-y"}) ||
			w.v.Nodes[0].Spec.GPUMemGB != 32 {
			t.Fatalf("nodes %+v", w.v.Nodes)
		}
	})
}

// Ensure that jobs share a GPU by one claim, that it outlives the first of them, and goes with the last.
func TestSharing(t *testing.T) {
	shared := sched.Config{Share: sched.Shared}
	play(t, []scene{
		{name: "by the claims of slots", width: 2, test: func(w *world) {
			must(w, w.Create(w.Context(), objects.Job("other", 1, nil)))
			w.settle()
			w.startAs(0, shared, 0, 1)
			w.startAs(1, shared, 1)
			w.settle()
			w.attempt(0, sched.Running)
			w.attempt(1, sched.Running)
			slot := w.claimNamed(slotNameOf("GPU-a-1"))
			if len(slot.OwnerReferences) != 2 || len(slot.Status.ReservedFor) != 2 ||
				w.v.GPUs[1].State != sched.GPUInUse {
				w.Fatalf("slot %+v", slot)
			}
			w.stop(0)
			w.settle()
			if slot = w.claimNamed(slot.Name); len(slot.OwnerReferences) != 1 || slot.Status.Allocation == nil ||
				w.claimNamed(slotNameOf("GPU-a-0")) != nil {
				w.Fatalf("slot after the first left: %+v", slot)
			}
			w.startAs(0, shared, 1)
			w.settle()
			w.attempt(0, sched.Running)
			w.stop(0)
			w.stop(1)
			w.settle()
			if w.claimNamed(slot.Name) != nil {
				w.Error("want the slot gone")
			}
		}},
		{name: "a job that starts again on the same slot", width: 1, test: func(w *world) {
			w.startAs(0, shared, 0)
			w.settle()
			for range 3 {
				w.stop(0)
				for w.v.Jobs[0].Attempt != sched.Ended {
					w.pass(10 * time.Millisecond)
				}
				w.startAs(0, shared, 0)
				w.settle()
				w.attempt(0, sched.Running)
			}
			if slot := w.claimNamed(slotNameOf("GPU-a-0")); slot == nil || len(slot.OwnerReferences) != 1 ||
				slot.DeletionTimestamp != nil {
				w.Errorf("slot %+v", slot)
			}
		}},
		{name: "by capacity, where several claims may have a device", width: 1, test: func(w *world) {
			yes := true
			change(w.cluster, objects.Slice("a", 4), func(s *resourceSlice) {
				for i := range s.Spec.Devices {
					s.Spec.Devices[i].AllowMultipleAllocations = &yes
				}
			})
			other := objects.Job("other", 1, nil)
			other.Spec.Sharing = v1alpha1.Sharing{Allowed: true, MemoryGiB: 10}
			must(w, w.Create(w.Context(), other))
			w.settle()
			if w.v.Jobs[1].Spec.Share != sched.ShareAllow || w.v.Jobs[1].Spec.GPUMemGB != 10 {
				w.Errorf("spec %+v", w.v.Jobs[1].Spec)
			}
			w.startAs(1, shared, 0)
			w.settle()
			w.attempt(1, sched.Running)
			c := w.claimNamed("other-1")
			need := c.Spec.Devices.Requests[0].Exactly.Capacity.Requests["memory"]
			if need.Value() != 10<<30 || w.v.GPUs[0].State != sched.GPUInUse {
				w.Errorf("claim %+v", c.Spec)
			}
			w.startAs(0, shared, 0)
			w.settle()
			if w.podOf("train-1-0") == nil {
				w.Error("the second must not wait for the first")
			}
		}},
	})
}

// Ensure that GPUs that others have are given to no job, and that one given away twice is reported, once.
func TestForeignClaims(t *testing.T) {
	claim := func(w *world, name string, device string, ours bool) *resourcev1.ResourceClaim {
		c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: name}}
		if ours {
			c.Labels = map[string]string{claims.LabelSlot: "x"}
			c.OwnerReferences = []metav1.OwnerReference{
				metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "TrainingJob", Name: "train"}}
		}
		must(w, w.Create(w.Context(), c))
		changeStatus(w.cluster, c, func(c *resourcev1.ResourceClaim) {
			c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
				Results: []resourcev1.DeviceRequestAllocationResult{
					{Request: "r", Driver: class, Pool: "a", Device: device}}}}
		})
		return c
	}
	var reported, alone []string
	play(t, []scene{
		{name: "of others", width: 1, opts: func(o *Options) {
			o.Event = func(_ client.Object, _, text string) { alone = append(alone, text) }
		}, test: func(w *world) {
			c := claim(w, "theirs", "gpu-2", false)
			w.settle()
			if w.v.GPUs[2].State != sched.GPUForeign || len(alone) != 0 {
				w.Errorf("GPU is %v, reported %q", w.v.GPUs[2].State, alone)
			}
			must(w, w.Delete(w.Context(), c))
			w.settle()
			if w.v.GPUs[2].State != sched.GPUInUse {
				w.Errorf("GPU is %v after it was given back", w.v.GPUs[2].State)
			}
		}},
		{name: "disguised as ours", width: 1, test: func(w *world) {
			w.run()
			own := w.claimNamed("train-1")
			if own == nil || w.v.GPUs[0].State != sched.GPUInUse {
				w.Fatalf("claim %v, its GPU is %v", own, w.v.GPUs[0].State)
			}
			for name, attempt := range map[string]string{"train-1-a": "1", "train-1-r1": "1", "train-2": "2"} {
				c := own.DeepCopy() // labels, owner, form, and a name that some attempt gives
				c.Name, c.ResourceVersion, c.Finalizers, c.Labels[v1alpha1.LabelAttempt] = name, "", nil, attempt
				must(w, w.Create(w.Context(), c))
				changeStatus(w.cluster, c, func(c *resourcev1.ResourceClaim) {
					c.Status.Allocation = own.Status.Allocation.DeepCopy()
					c.Status.Allocation.Devices.Results[0].Device = "gpu-2"
				})
				w.settle()
				if w.v.GPUs[2].State != sched.GPUForeign || w.v.GPUs[0].State != sched.GPUInUse ||
					w.claimNamed(name) == nil {
					w.Errorf("%s: GPUs are %v and %v, claim %v: want the second foreign, the claim left alone", name,
						w.v.GPUs[0].State, w.v.GPUs[2].State, w.claimNamed(name))
				}
				must(w, w.Delete(w.Context(), w.claimNamed(name)))
				w.settle()
				if w.v.GPUs[2].State != sched.GPUInUse {
					w.Errorf("%s: GPU is %v after it was given back", name, w.v.GPUs[2].State)
				}
			}
		}},
		{name: "twice", width: 1,
			opts: func(o *Options) {
				o.Event = func(_ client.Object, _, text string) { reported = append(reported, text) }
			},
			test: func(w *world) {
				w.run()
				claim(w, "stale", "gpu-0", true)
				w.settle()
				changeStatus(w.cluster, w.claimNamed("stale"), func(c *resourcev1.ResourceClaim) {
					c.Status.ReservedFor = nil
				})
				w.settle()
				w.attempt(0, sched.Running)
				if w.v.GPUs[0].State != sched.GPUForeign || len(reported) != 2 ||
					reported[0] != "device gpu-0 of pool a (gpu.nvidia.com) is allocated to lab/stale and lab/train-1 "+
						"at the same time" {
					w.Errorf("GPU is %v, reported %q", w.v.GPUs[0].State, reported)
				}
				must(w, w.Delete(w.Context(), w.claimNamed("stale")))
				w.settle()
				if w.v.GPUs[0].State != sched.GPUInUse {
					w.Errorf("GPU is %v after one was given back", w.v.GPUs[0].State)
				}
			}},
	})
}
