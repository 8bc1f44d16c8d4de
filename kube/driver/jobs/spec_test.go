package jobs

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/internal/objects"
	"github.com/trainyard/trainyard/sched"
)

var origin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Ensure that what of a TrainingJob cannot be had is refused with a word that helps.
func TestSpecErrors(t *testing.T) {
	t.Parallel()
	types := func(product string) (sched.TypeID, error) {
		if product != "V100" {
			return 0, errors.New("no more than 64 types of GPUs")
		}
		return 3, nil
	}
	good := objects.Job("train", 2, nil)
	good.Spec.GPUTypes = []string{"V100"}
	good.Spec.Deadline = &metav1.Time{Time: origin.Add(time.Hour)}
	if s, err := Spec(good, origin, types); err != nil || s.Types != 8 || s.Deadline != sched.Time(time.Hour) ||
		s.User != objects.Namespace || s.Name != "train" {
		t.Errorf("%+v, %v", s, err)
	}
	good.Spec.GPUTypes = []string{"X", "V100", "Y"}
	if s, err := Spec(good, origin, types); err != nil || s.Types != 8 {
		t.Errorf("of several types, one of them known: %+v, %v", s, err)
	}
	good.Spec.GPUTypes = []string{"V100"}
	last := func(string) (sched.TypeID, error) { return sched.MaxGPUTypes, nil }
	if s, err := Spec(good, origin, last); err == nil ||
		err.Error() != `waits for a GPU of type "V100": its number is 65, `+
			`and no more than 64 types can be distinguished` {
		t.Errorf("of a type beyond the last, which a set does not hold: %+v, %v", s, err)
	}
	for want, spoil := range map[string]func(*v1alpha1.TrainingJob){
		`template has no container, want the one that trains`: func(tj *v1alpha1.TrainingJob) {
			tj.Spec.Template.Spec.Containers = nil
		},
		`waits for a GPU of type "X" or "Y": no more than 64 types of GPUs`: func(tj *v1alpha1.TrainingJob) {
			tj.Spec.GPUTypes = []string{"X", "Y"}
		},
		`the spec cannot be read: no number`: func(tj *v1alpha1.TrainingJob) {
			tj.Spec.Unreadable = "no number"
		},
		`gpus 0, want > 0`: func(tj *v1alpha1.TrainingJob) {
			tj.Spec.GPUs.Min = 0
			tj.Spec.GPUTypes = []string{"X"}
		},
	} {
		tj := objects.Job("train", 2, nil)
		spoil(tj)
		if _, err := Spec(tj, origin, types); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Ensure that a job that was taken is not too large because of what we write to it.
func TestSizeOfJob(t *testing.T) {
	tj := objects.Job("train", 2, nil)
	tj.Annotations = map[string]string{"note": "kept"}
	tj.Spec.Template.Spec.Containers[0].Args = []string{strings.Repeat("x", MaxSize-2000)}
	was := sizeOf(tj, MaxSize)
	if was < MaxSize-2000 || was > MaxSize {
		t.Fatalf("%d bytes", was)
	}
	tj.Annotations[v1alpha1.AnnotationDeletion] = strings.Repeat("f", 3000)
	tj.ManagedFields = []metav1.ManagedFieldsEntry{
		{FieldsV1: metav1.NewFieldsV1(`"` + strings.Repeat("m", 3000) + `"`)}}
	tj.Status.Reason = strings.Repeat("r", 3000)
	if now := sizeOf(tj, MaxSize); now != was {
		t.Errorf("%d bytes, %d before", now, was)
	}
	if tj.Annotations[v1alpha1.AnnotationDeletion] == "" {
		t.Error("the annotation went")
	}
	if tj.Annotations["note"] += strings.Repeat("n", 2000); Possible(tj) == nil {
		t.Error("a job of a large annotation is taken")
	}
}
