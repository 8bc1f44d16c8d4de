package jobs

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/kube/record"
	"github.com/trainyard/trainyard/sched"
)

// written returns a large job of a UID, whose record says that the job of another UID is in a state.
func written(t *testing.T, uid, of string, phase v1alpha1.Phase, state sched.JobState) *v1alpha1.TrainingJob {
	t.Helper()
	tj := jobOf("train", types.UID(uid))
	fill(tj, 64<<10)
	tj.Spec.Checkpoint.Path = "/gone"
	text, err := json.Marshal(tj)
	if err != nil {
		t.Fatal(err)
	}
	tj.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: string(text),
		v1alpha1.AnnotationDeletion: "kept"}
	tj.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	tj.Spec.TTLSecondsAfterFinished = new(int32)
	tj.Status = v1alpha1.TrainingJobStatus{Phase: phase, Memory: make([]byte, 5000), Reason: "because",
		Allocation: make([]v1alpha1.AllocatedGPU, 64), Conditions: []metav1.Condition{
			{Type: "Scheduled", Status: metav1.ConditionTrue}, {Type: Complete, Status: metav1.ConditionTrue},
		}}
	if of != "" {
		v := &sched.View{Jobs: []sched.Job{{Spec: &sched.JobSpec{User: "lab", Name: "train", GPUs: sched.Rigid(1),
			Task: of}, State: state}}}
		rec := record.Of(v, 0, 7)
		tj.Status.Record = rec.String()
	}
	return tj
}

// Ensure that a cache keeps little of jobs that are done or have arrived, all of those that arrive or start, and as
// much if it is asked to leave out the same twice.
func TestCut(t *testing.T) {
	for _, c := range []struct {
		name  string
		job   *v1alpha1.TrainingJob
		bare  bool
		whole bool
		over  bool
	}{
		{"done", written(t, "u", "u", v1alpha1.Succeeded, sched.Done), true, false, true},
		{"refused", written(t, "u", "", v1alpha1.Failed, 0), true, false, true},
		{"waiting", written(t, "u", "u", v1alpha1.Pending, sched.Waiting), false, false, false},
		{"running", written(t, "u", "u", v1alpha1.Running, sched.Active), false, false, false},
		{"said to be done by its status alone", written(t, "u", "u", v1alpha1.Failed, sched.Active), false, false,
			false},
		{"starting", written(t, "u", "u", v1alpha1.Starting, sched.Active), false, true, false},
		{"new", written(t, "u", "", "", 0), false, true, false},
		{"with the status of another", written(t, "u", "v", v1alpha1.Failed, sched.Done), false, true, false},
		{"with the status of another that runs", written(t, "u", "v", v1alpha1.Running, sched.Active), false, true,
			false},
	} {
		before := c.job.DeepCopy()
		if IsOver(c.job) != c.over {
			t.Errorf("%s: over before: %v", c.name, !c.over)
		}
		tj, err := Cut(c.job)
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := Cut(tj.DeepCopy()); !reflect.DeepEqual(again, tj) {
			t.Errorf("%s: cut twice it is another", c.name)
		}
		text, _ := json.Marshal(tj)
		switch {
		case c.whole:
			before.ManagedFields = nil
			if !reflect.DeepEqual(tj, before) {
				t.Errorf("%s: something is left out", c.name)
			}
		case tj.Spec.Cut == nil || tj.Spec.Cut.Bare != c.bare || len(text) > 3000:
			t.Errorf("%s: %d bytes are left, %+v", c.name, len(text), tj.Spec.Cut)
		case c.bare && (len(text) > 500 || tj.Spec.TTLSecondsAfterFinished == nil || len(tj.Status.Conditions) != 1 ||
			!hasEnded(tj)):
			t.Errorf("%s: %s is left", c.name, text)
		case !c.bare && (tj.Status.Record != before.Status.Record ||
			tj.Annotations[v1alpha1.AnnotationDeletion] == "" ||
			tj.Spec.TemplateHash() != before.Spec.TemplateHash() || tj.Spec.Cut.NotKept != notKept(before)):
			t.Errorf("%s: %s is left", c.name, text)
		}
		if IsOver(tj) != c.over {
			t.Errorf("%s: over then: %v", c.name, !c.over)
		}
		if !c.whole && !c.bare {
			was, _ := Spec(before, origin, func(string) (sched.TypeID, error) { return 0, nil })
			is, err := Spec(tj, origin, func(string) (sched.TypeID, error) { return 0, nil })
			if err != nil || was.Change() != is.Change() {
				t.Errorf("%s: it requests %+v, %v, want %+v", c.name, is, err, was)
			}
		}
	}
}

// Ensure that what a cache leaves out is read again where it is needed: for a start, of a job that arrives, and of one
// that goes on though its status said that it was done.
func TestReadAgain(t *testing.T) {
	whole := written(t, "u", "u", v1alpha1.Running, sched.Active)
	whole.ManagedFields = nil
	server := newBench(t, false, whole.DeepCopy())
	for name, c := range map[string]struct {
		job   *v1alpha1.TrainingJob
		state sched.JobState
		known bool
		want  bool // it is whole
	}{
		"running":                  {written(t, "u", "u", v1alpha1.Running, sched.Active), sched.Active, true, false},
		"done":                     {written(t, "u", "u", v1alpha1.Failed, sched.Done), sched.Done, true, false},
		"done by its record alone": {written(t, "u", "u", v1alpha1.Failed, sched.Done), sched.Active, true, true},
		"unknown":                  {written(t, "u", "u", v1alpha1.Running, sched.Active), sched.Active, false, true},
	} {
		b := newBench(t, false)
		if c.known {
			b.has("train", "u", c.state)
		}
		cut, _ := Cut(c.job)
		api := observer.API{Cache: oneJob{job: cut}, Server: server.Client}
		r, err := b.js.Read(t.Context(), api, b.v, client.ObjectKeyFromObject(whole))
		if err != nil || r.Job == nil || (r.Job.Spec.Cut == nil) != c.want {
			t.Errorf("%s: %v, %+v", name, err, r.Job)
		}
		tj, err := Find(t.Context(), api, client.ObjectKeyFromObject(whole), "u")
		if err != nil || len(tj.Spec.Template.Spec.Containers) == 0 ||
			!strings.HasPrefix(tj.Spec.Template.Spec.Containers[0].Args[0], "xxx") {
			t.Errorf("%s: a start finds %+v, %v", name, tj.Spec, err)
		}
	}
}

// oneJob is a cache of one job.
type oneJob struct {
	client.Reader

	job *v1alpha1.TrainingJob
}

func (o oneJob) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	o.job.DeepCopyInto(into.(*v1alpha1.TrainingJob))
	return nil
}
