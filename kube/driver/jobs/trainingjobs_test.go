package jobs

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/record"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that a job is taken to be over by its own status alone: what was said of another of its name, that was before,
// says nothing.
func TestHasEnded(t *testing.T) {
	v := &sched.View{
		Jobs: []sched.Job{{Spec: &sched.JobSpec{User: "lab", Name: "a", GPUs: sched.Rigid(1), Task: "first"},
			State: sched.Done}}}
	rec := record.Of(v, 0, 1)
	for _, c := range []struct {
		phase  v1alpha1.Phase
		record string
		uid    string
		want   bool
	}{
		{"", "", "first", false},
		{v1alpha1.Running, rec.String(), "first", false},
		{v1alpha1.Failed, rec.String(), "first", true},
		{v1alpha1.Succeeded, rec.String(), "first", true},
		{v1alpha1.Failed, rec.String(), "second", false},
		{v1alpha1.Succeeded, rec.String(), "second", false},
		{v1alpha1.Failed, "", "second", true}, // it was refused
		{v1alpha1.Failed, "unreadable", "second", true},
	} {
		tj := &v1alpha1.TrainingJob{ObjectMeta: metav1.ObjectMeta{UID: types.UID(c.uid)},
			Status: v1alpha1.TrainingJobStatus{Phase: c.phase, Record: c.record}}
		if got := hasEnded(tj); got != c.want {
			t.Errorf("phase %q, record %q, UID %s: %v, want %v", c.phase, c.record, c.uid, got, c.want)
		}
	}
}
