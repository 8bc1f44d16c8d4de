package driver

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/claims"
	"github.com/trainyard/trainyard/kube/driver/internal/objects"
	"github.com/trainyard/trainyard/sched"
)

// enemy makes objects that say of themselves what they like, at random.
type enemy struct {
	*rand.Rand

	own *resourcev1.ResourceClaim // of the job that they are about
	uid types.UID
	n   int
}

func one[T any](e *enemy, of ...T) T { return of[e.IntN(len(of))] }

// meta returns a name, labels and owners.
func (e *enemy) meta() metav1.ObjectMeta {
	e.n++
	m := metav1.ObjectMeta{Namespace: objects.Namespace, Labels: map[string]string{},
		Name: one(e, "train-1", "train-2", "train-1-0", "train-2-0", "train-1-r1", "other", "train--1", "train-01")}
	if e.IntN(2) == 0 {
		m.Name += fmt.Sprint("-", e.n)
	}
	numbers := []string{"", "0", "1", "2", "-1", "x", "01", "99999999999999999999", strings.Repeat("9", 60)}
	for label, values := range map[string][]string{
		v1alpha1.LabelJob: {"train", "none", "", "train-1"}, v1alpha1.LabelAttempt: numbers,
		v1alpha1.LabelRank: numbers, claims.LabelSlot: {"", "x", slotNameOf("GPU-a-0")},
	} {
		if e.IntN(3) > 0 {
			m.Labels[label] = values[e.IntN(len(values))]
		}
	}
	for range e.IntN(3) {
		m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{
			APIVersion: one(e, v1alpha1.GroupVersion.String(), "v1", "", "a/b/c"),
			Kind:       one(e, "TrainingJob", "Pod", ""), Name: one(e, "train", "none", ""),
			UID: one(e, e.uid, "else", ""),
		})
	}
	return m
}

// claim returns a claim.
func (e *enemy) claim() *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: e.meta()}
	if e.IntN(2) == 0 {
		c.Spec = *e.own.Spec.DeepCopy()
	}
	for range e.IntN(3) {
		r := resourcev1.DeviceRequest{Name: one(e, "gpu", "", "x")}
		if e.IntN(3) > 0 {
			r.Exactly = &resourcev1.ExactDeviceRequest{DeviceClassName: one(e, class, "", "x"),
				Count: one(e, int64(0), 1, -1, 1<<40)}
		}
		for range e.IntN(3) {
			if cel := e.selector(); r.Exactly != nil {
				r.Exactly.Selectors = append(r.Exactly.Selectors, resourcev1.DeviceSelector{CEL: one(e, cel, nil)})
			}
		}
		c.Spec.Devices.Requests = append(c.Spec.Devices.Requests, r)
	}
	return c
}

// selector returns an expression about devices.
func (e *enemy) selector() *resourcev1.CELDeviceSelector {
	return &resourcev1.CELDeviceSelector{Expression: one(e, "", "true", `["`, `in ["`, `device.attributes["x"`,
		claims.Selector(class, []string{"GPU-a-0"}), claims.Selector(class, nil),
		claims.Selector("", []string{`"`, `\`}))}
}

// allocation returns what a claim has, nil: nothing.
func (e *enemy) allocation() *resourcev1.AllocationResult {
	if e.IntN(4) == 0 {
		return nil
	}
	a := new(resourcev1.AllocationResult)
	for range e.IntN(4) {
		id, yes := types.UID("share"), e.IntN(2) == 0
		a.Devices.Results = append(a.Devices.Results, resourcev1.DeviceRequestAllocationResult{
			Request: one(e, "gpu", ""), Driver: one(e, class, "", "x"), Pool: one(e, "a", "b", "", "none"),
			Device: one(e, "gpu-0", "gpu-1", "gpu-3", "", "gpu-99"), AdminAccess: one(e, nil, &yes),
			ShareID: one(e, nil, &id),
		})
	}
	return a
}

// pod returns a pod, and how it stands.
func (e *enemy) pod() (*corev1.Pod, corev1.PodStatus) {
	p := &corev1.Pod{ObjectMeta: e.meta()}
	p.Annotations = map[string]string{v1alpha1.AnnotationContainer: one(e, "", "none", "main"),
		v1alpha1.AnnotationProgress: one(e, "", "TRAINYARD step=-1", "TRAINYARD step=9e99 total=x", "\xff")}
	p.Spec.NodeName = one(e, "a", "b", "none") // else the scheduler of this world takes it
	for range 1 + e.IntN(3) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: one(e, "", "main", "x")})
	}
	for range e.IntN(3) {
		claim := one(e, "", "train-1", "train-2", "none")
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims,
			corev1.PodResourceClaim{Name: one(e, "", "trainyard-0"), ResourceClaimName: &claim})
	}
	st := corev1.PodStatus{
		Phase: one(e, corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed, "", "x"),
	}
	for range e.IntN(3) {
		s := corev1.ContainerStatus{Name: one(e, "", "main", "x")}
		s.State.Terminated = one(e, nil, &corev1.ContainerStateTerminated{ExitCode: one(e, int32(0), -1, 1<<30)})
		s.State.Waiting = one(e, nil, &corev1.ContainerStateWaiting{Reason: one(e, "", "ErrImagePull")})
		st.ContainerStatuses = append(st.ContainerStatuses, s)
	}
	return p, st
}

// Ensure that claims and pods with our labels, names, owners and UIDs in every combination end nothing: not the
// process, and no attempt that runs.
func TestHostileObjects(t *testing.T) {
	var scenes []scene
	for seed := range uint64(3) {
		scenes = append(scenes, scene{name: fmt.Sprint(seed), width: 2, opts: func(o *Options) {
			o.Event = func(client.Object, string, string) {}
		}, test: func(w *world) { (&enemy{Rand: rand.New(rand.NewPCG(26, seed))}).play(w) }})
	}
	play(t, scenes)
}

// play has a job run while the enemy makes objects.
func (e *enemy) play(w *world) {
	w.run()
	e.own, e.uid = w.claimNamed("train-1"), types.UID(w.v.Jobs[0].Spec.Task)
	for i := range 50 {
		if e.IntN(2) == 0 {
			e.makesClaim(w)
		} else if p, st := e.pod(); e.makes(w, p) {
			changeStatus(w.cluster, p, func(p *corev1.Pod) { p.Status = st })
		}
		if i%10 == 9 {
			w.pass(50 * time.Millisecond)
		}
	}
	w.settle()
	w.attempt(0, sched.Running)
	if j := &w.v.Jobs[0]; j.Attempts != 1 || w.claimNamed("train-1") == nil {
		w.Errorf("%+v, want its first attempt to go on", j)
	}
}

// makesClaim makes a claim that has devices and users.
func (e *enemy) makesClaim(w *world) {
	c := e.claim()
	if !e.makes(w, c) {
		return
	}
	a := e.allocation()
	var users []resourcev1.ResourceClaimConsumerReference
	for range e.IntN(3) {
		users = append(users, resourcev1.ResourceClaimConsumerReference{APIGroup: one(e, "", "x"),
			Resource: one(e, "pods", "", "x"), Name: one(e, "train-1-0", "none", ""), UID: one(e, e.uid, "else", "")})
	}
	changeStatus(w.cluster, c, func(c *resourcev1.ResourceClaim) {
		c.Status.Allocation, c.Status.ReservedFor = a, users
	})
}

// makes reports whether an object could be made.
func (e *enemy) makes(w *world, o client.Object) bool {
	w.Helper()
	err := w.Create(w.Context(), o)
	if !apierrors.IsAlreadyExists(err) {
		must(w, err)
	}
	return err == nil
}
