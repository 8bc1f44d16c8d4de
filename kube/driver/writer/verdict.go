package writer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/devices"
	"github.com/trainyard/trainyard/sched"
)

// Answer is what the API server says of the objects of a job.
type Answer uint8

// Answers.
const (
	Unasked  Answer = iota // it has not said yet
	Accepted               // it takes them
	Held                   // it refuses them now: a quota, a rule or a webhook may change
	Hopeless               // no attempt can mend what they say
	Unsure                 // it does not say: a webhook is away, or takes no dry run
	Stalled                // it did not say at a start: no other is tried until it is asked again
)

// Verdict is an answer with its reason, which is empty of one that accepts.
type Verdict struct {
	Answer Answer
	Why    string
}

// Holds reports whether a job is held whose start got this answer: what it was given is for others.
func (v Verdict) Holds() bool { return v.Answer == Held || v.Answer == Unsure }

// Judge returns what the answer to a create says of the object. ok is false of an error that is not the API server's:
// nothing is known then.
func Judge(err error) (v Verdict, ok bool) {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return Verdict{Answer: Accepted}, true
	case !errors.As(err, &status):
		return Verdict{Unsure, err.Error()}, false
	}
	s := status.Status()
	v = Verdict{Held, s.Message}
	// rules and webhooks may refuse with any code, and say so in these words
	byRule := strings.Contains(s.Message, "denied request") || strings.Contains(s.Message, "denied the request")
	switch code := s.Code; {
	case strings.Contains(s.Message, "does not support dry run"):
		v.Answer = Unsure
	case byRule:
	case code == 422:
		v = Verdict{Hopeless, causes(s)}
	case code == 413:
		v.Answer = Hopeless
	case code == 409 && apierrors.IsConflict(err), code == 401, code == 408, code == 429, code == 0, code >= 500:
		v.Answer = Unsure
	}
	return v, true
}

// causes returns what an API server finds wrong with an object, field by field; at most three fields.
func causes(s metav1.Status) string {
	if s.Details == nil || len(s.Details.Causes) == 0 {
		return s.Message
	}
	var list []string
	for i, c := range s.Details.Causes {
		if i == 3 {
			list = append(list, fmt.Sprintf("and %d more", len(s.Details.Causes)-i))
			break
		}
		list = append(list, fmt.Sprintf("template.%s: %s", c.Field, c.Message))
	}
	return strings.Join(list, "; ")
}

// tryNode and tryGPU are names that a dry run uses for what is not decided yet.
const (
	tryNode = "any"
	tryGPU  = "GPU-00000000-0000-0000-0000-%012d"
)

// Try asks the API server whether it would take the claim and the pod of a rank of so many GPUs of a job. It makes
// nothing.
func (o *Objects) Try(ctx context.Context, mode v1alpha1.Mode, tj *v1alpha1.TrainingJob, gpus int) error {
	a := &Attempt{
		Key: client.ObjectKeyFromObject(tj), UID: tj.UID, Number: 1, mode: mode, base: baseOf(tj.Name, 1),
		News: newNews(), Ranks: []Rank{{NodeName: tryNode}},
	}
	for i := range gpus {
		g := &devices.Device{UUID: fmt.Sprintf(tryGPU, i), ID: devices.ID{Driver: o.o.DeviceClass}}
		a.Ranks[0].GPUs = append(a.Ranks[0].GPUs, sched.GPUID(i))
		a.Ranks[0].Devices = append(a.Ranks[0].Devices, g)
	}
	list := []client.Object{}
	for _, c := range a.Claims(0) {
		list = append(list, a.claimObject(c, tj, o.o.DeviceClass))
	}
	for _, object := range append(list, a.pod(0, tj, o.o.PriorityClass)) {
		object.SetGenerateName(object.GetName() + "-")
		object.SetName("")
		err := o.writers.Once(ctx, func(ctx context.Context) error {
			return o.o.Client.Create(ctx, object, client.DryRunAll)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", kindOf(object), err)
		}
	}
	return nil
}
