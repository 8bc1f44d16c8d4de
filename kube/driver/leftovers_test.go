package driver

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/internal/objects"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/sched"
)

// asks has a driver ask the API server before jobs may be given GPUs.
func asks(o *Options) {
	o.Ask = true
	o.Held = func(_ sched.JobID, why string) { held = append(held, why) }
}

// held are the reasons that drivers gave for holding jobs; tests that use it are not parallel.
var held []string

// asksOf is asks where the creation of pods fails from the start.
func asksOf(dry, really error) func(*Options) {
	return func(o *Options) {
		asks(o)
		o.Client.(*cluster).podsFail(dry, really)
	}
}

// podsFail has the creation of pods fail: in dry runs, and really.
func (c *cluster) podsFail(dry, really error) {
	c.setFail(func(verb string, o client.Object) error {
		if _, pod := o.(*corev1.Pod); !pod || verb != "create" {
			return nil
		}
		if o.GetName() == "" {
			return dry
		}
		return really
	})
}

// Answers of the API server.
var (
	overQuota = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "x", errors.New("exceeded quota"))
	badPod    = apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "x",
		field.ErrorList{field.Required(field.NewPath("spec", "containers").Index(0).Child("image"), "")})
	noAnswer = apierrors.NewInternalError(errors.New("failed calling webhook"))
	byPolicy = &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 422,
		Reason:  metav1.StatusReasonInvalid,
		Message: "ValidatingAdmissionPolicy 'x' with binding 'y' denied request: no"}}
)

// Ensure that a job is given GPUs only once the API server takes its objects, that one whose start it refuses all the
// same is held without a failed start, and that one of which no attempt can be made fails at once.
func TestAsksBeforeAJobMayHaveGPUs(t *testing.T) {
	status := func(w *world) v1alpha1.TrainingJobStatus {
		tj := objects.Job("train", 1, nil)
		must(w, w.Get(w.Context(), client.ObjectKeyFromObject(tj), tj))
		return tj.Status
	}
	isHeld := func(w *world, is bool) *sched.Job {
		w.Helper()
		if len(w.v.Jobs) != 1 || w.v.Jobs[0].Paused != is {
			w.Fatalf("%+v, want one job that is held: %v; %v", w.v.Jobs, is, kinds0(w.events))
		}
		return &w.v.Jobs[0]
	}
	scenes := []scene{
		{name: "a quota", width: 2, opts: asksOf(overQuota, overQuota), test: func(w *world) {
			w.settle()
			if j := isHeld(w, true); j.State != sched.Held || !strings.Contains(fmt.Sprint(held), "exceeded quota") {
				w.Errorf("%+v, %q", j, held)
			}
			w.podsFail(nil, nil)
			w.queue.Push(observer.KeyOfSpace(objects.Namespace))
			w.pass(2 * time.Second)
			isHeld(w, false)
		}},
		{name: "an admission policy", width: 2, opts: asksOf(byPolicy, byPolicy), test: func(w *world) {
			w.settle()
			isHeld(w, true)
			w.podsFail(nil, nil)
			w.passBy(time.Second, 50*time.Second)
			isHeld(w, true)
			w.passBy(time.Second, 15*time.Second) // a minute is over
			isHeld(w, false)
		}},
		{name: "a template that no attempt can mend", width: 2, opts: asksOf(badPod, badPod), test: func(w *world) {
			w.settle()
			if s := status(w); len(w.v.Jobs) > 0 || s.Phase != v1alpha1.Failed ||
				s.Reason != "template.spec.containers[0].image: Required value" {
				w.Errorf("%d jobs, %+v", len(w.v.Jobs), s)
			}
		}},
		{name: "a real start is refused", width: 6, opts: asks, test: func(w *world) {
			w.settle()
			w.podsFail(nil, overQuota)
			w.start(0, gpus(6)...)
			w.settle()
			j := isHeld(w, true)
			if e := w.last(sched.AttemptEnded); e.Outcome != sched.Preempted || j.StartFailures != 0 ||
				j.State != sched.Held || len(j.Target) > 0 {
				w.Errorf("%+v, %+v", e, j)
			}
			w.podsFail(nil, nil) // but it is given free GPUs alone from now on
			w.v.GPUs[0].Targets++
			w.queue.Push(observer.KeyOfSpace(objects.Namespace))
			w.pass(2 * time.Second)
			isHeld(w, true)
			w.v.GPUs[0].Targets--
			w.queue.Push(observer.KeyOfJob(client.ObjectKeyFromObject(objects.Job("train", 6, nil))))
			w.settle()
			isHeld(w, false)
		}},
		{name: "a webhook is away at a real start", width: 6, opts: asks, test: func(w *world) {
			w.settle()
			w.podsFail(noAnswer, noAnswer)
			w.start(0, gpus(6)...)
			w.v.GPUs[6].Targets++ // of others, so that there is no room for another try
			w.pass(20 * time.Second)
			w.attempt(0, sched.Starting)
			w.pass(20 * time.Second)
			j := isHeld(w, true)
			if e := w.last(sched.AttemptEnded); e.Outcome != sched.Preempted || j.StartFailures != 0 ||
				len(j.Target) > 0 || !strings.Contains(fmt.Sprint(held), "free GPUs alone") {
				w.Errorf("%+v, %+v, %q", e, j, held)
			}
		}},
		{name: "a real start shows that no attempt can be made", width: 2, opts: asks, test: func(w *world) {
			w.settle()
			w.podsFail(nil, badPod)
			w.start(0, 0, 1)
			w.settle()
			if j := &w.v.Jobs[0]; j.State != sched.Done || j.Outcome != sched.Failed || j.StartFailures != 0 {
				w.Errorf("%+v", j)
			}
		}},
		{name: "no answer, and room", width: 4, opts: asksOf(noAnswer, nil), test: func(w *world) {
			w.settle()
			isHeld(w, false)
			for i := range w.events {
				if w.events[i].Kind == sched.JobCommanded {
					w.Errorf("%+v, want a job that arrives with nothing in its way", w.events[i])
				}
			}
		}},
		{name: "no answer", width: 4, opts: asksOf(noAnswer, nil), test: func(w *world) {
			for g := range w.v.GPUs {
				w.v.GPUs[g].Targets++
			}
			w.settle()
			isHeld(w, true)
			for g := range w.v.GPUs[:4] {
				w.v.GPUs[g].Targets--
			}
			w.queue.Push(observer.KeyOfNode("a"))
			w.settle()
			isHeld(w, false)
			w.v.GPUs[2].Targets++ // others were faster
			w.queue.Push(observer.KeyOfNode("a"))
			w.settle()
			isHeld(w, true)
		}},
	}
	for i := range scenes {
		held = nil
		t.Run(scenes[i].name, func(t *testing.T) { alone(t, scenes[i]) })
	}
}

// Ensure that a job whose start got no answer is held though GPUs are free, until the API server is asked again: after
// 10 s, doubled each time, whether or not it has run before.
func TestHeldAfterAStartWithoutAnswer(t *testing.T) {
	until := func(w *world, is bool) (after time.Duration) {
		w.Helper()
		begin := w.d.clock.read()
		for w.v.Jobs[0].Paused != is {
			if w.passBy(100*time.Millisecond, 500*time.Millisecond); w.d.clock.read()-begin > sched.Time(time.Hour) {
				w.Fatalf("%+v, want one that is held: %v; %v", w.v.Jobs[0], is, kinds0(w.events))
			}
		}
		return time.Duration(w.d.clock.read() - begin)
	}
	stalls := func(w *world, want time.Duration) {
		w.Helper()
		w.start(0, 0, 1)
		until(w, true)
		w.queue.Push(observer.KeyOfSpace(objects.Namespace)) // no answer before its time counts
		if why := held[len(held)-1]; !strings.HasPrefix(why, stalled) {
			w.Errorf("held as %q, want %q", why, stalled)
		}
		if got := until(w, false); got < want-time.Second || got > want+5*time.Second {
			w.Errorf("held for %v, want %v", got, want)
		}
	}
	scenes := []scene{
		{name: "a job that never ran", width: 2, opts: asks, test: func(w *world) {
			w.settle()
			w.podsFail(noAnswer, noAnswer)
			for _, wait := range []time.Duration{10, 20, 40} {
				stalls(w, wait*time.Second)
			}
			w.start(0, 0, 1)
			until(w, true)
			w.podsFail(nil, nil)
			w.queue.Push(observer.KeyOfSpace(objects.Namespace)) // an answer counts at once
			if got := until(w, false); got > 5*time.Second {
				w.Errorf("held for %v, though the webhook answers", got)
			}
			w.run()
		}},
		{name: "a job that ran", width: 2, opts: asks, test: func(w *world) {
			w.settle()
			w.run()
			w.stop(0)
			w.settle()
			w.podsFail(noAnswer, noAnswer)
			stalls(w, 10*time.Second)
		}},
	}
	for i := range scenes {
		held = nil
		t.Run(scenes[i].name, func(t *testing.T) { alone(t, scenes[i]) })
	}
}

// Ensure that a start is held 30 s after a webhook went away whatever it is asked about: a claim that jobs share, as it
// is made and as a job joins it, the allocation of a claim, the binding of a pod.
func TestHeldWhateverAWebhookIsAskedAbout(t *testing.T) {
	direct := func(o *Options) { asks(o); inMode(v1alpha1.Direct)(o) }
	shared := sched.Config{Share: sched.Shared}
	isClaim := func(o client.Object) bool { _, is := o.(*resourcev1.ResourceClaim); return is }
	for _, c := range []struct {
		name   string
		opts   func(*Options)
		config sched.Config
		away   func(verb string, o client.Object) bool
	}{
		{"a claim that jobs share is made", asks, shared, func(verb string, o client.Object) bool {
			return verb == "create" && isClaim(o) && o.GetName() != ""
		}},
		{"a job joins a claim", asks, shared, func(verb string, o client.Object) bool {
			return verb == "patch" && isClaim(o)
		}},
		{"a claim is allocated", direct, sched.Config{}, func(verb string, o client.Object) bool {
			return verb == "update status" && isClaim(o)
		}},
		{"a pod is bound", direct, sched.Config{}, func(verb string, _ client.Object) bool {
			return verb == "create binding"
		}},
	} {
		held = nil
		t.Run(c.name, func(t *testing.T) {
			alone(t, scene{width: 2, opts: c.opts, test: func(w *world) {
				must(w, w.Create(w.Context(), &deviceClass{ObjectMeta: metav1.ObjectMeta{Name: class}}))
				must(w, w.Create(w.Context(), objects.Job("other", 1, nil)))
				w.settle()
				if c.config == shared {
					w.startAs(1, shared, 1)
					w.settle()
					w.attempt(1, sched.Running)
				}
				w.setFail(func(verb string, o client.Object) error {
					if c.away(verb, o) {
						return noAnswer
					}
					return nil
				})
				w.startAs(0, c.config, 0, 1)
				w.pass(20 * time.Second)
				w.attempt(0, sched.Starting)
				w.pass(20 * time.Second)
				j := &w.v.Jobs[0]
				if e := w.last(sched.AttemptEnded); e.Outcome != sched.Preempted || j.StartFailures != 0 || !j.Paused ||
					len(held) == 0 || !strings.HasPrefix(held[0], stalled) {
					w.Errorf("%+v, %+v, %q", e, j, held)
				}
			}})
		})
	}
}

// Ensure that jobs which are suspended by their users stay so, whatever the API server says of them.
func TestAsksAboutSuspendedJobs(t *testing.T) {
	alone(t, scene{width: 2, opts: asks, test: func(w *world) {
		change(w.cluster, objects.Job("train", 2, nil), func(tj *v1alpha1.TrainingJob) { tj.Spec.Suspend = true })
		w.settle()
		w.queue.Push(observer.KeyOfSpace(objects.Namespace))
		w.pass(2 * time.Second)
		if j := &w.v.Jobs[0]; !j.Paused {
			w.Errorf("%+v", j)
		}
		change(w.cluster, objects.Job("train", 2, nil), func(tj *v1alpha1.TrainingJob) { tj.Spec.Suspend = false })
		w.settle()
		if j := &w.v.Jobs[0]; j.Paused || slices.Contains(held, "") {
			w.Errorf("%+v", j)
		}
	}})
}
