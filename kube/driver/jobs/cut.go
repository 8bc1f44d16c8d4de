package jobs

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/record"
	"github.com/trainyard/trainyard/sched"
)

// Types of the conditions of jobs that are done.
const (
	Complete  = "Complete" // it has succeeded
	HasFailed = "Failed"   // it is done and has not succeeded
)

// Cut leaves out of a job what no look needs of it: a cache keeps all of them, and those that are done and the
// templates of those that wait or run are most of its memory. Spec.Cut says that something was left out; Find reads the
// rest again. It may be called again with what it returned.
func Cut(tj *v1alpha1.TrainingJob) (*v1alpha1.TrainingJob, error) {
	if tj.Spec.Cut != nil {
		return tj, nil
	}
	tj.ManagedFields = nil
	own, done := verdictOf(tj)
	switch {
	case done:
		cutDone(tj)
	case !own || tj.Status.Phase == v1alpha1.Starting || Possible(tj) != nil:
	default:
		cutTemplate(tj)
	}
	return tj, nil
}

// IsOver reports whether a job is done, by its own record, or was turned away.
func IsOver(tj *v1alpha1.TrainingJob) bool {
	if tj.Spec.Cut != nil {
		return tj.Spec.Cut.Bare
	}
	_, done := verdictOf(tj)
	return done
}

// verdictOf returns whether the record of a job is its own, and whether the job is over.
func verdictOf(tj *v1alpha1.TrainingJob) (own, done bool) {
	ended := tj.Status.Phase == v1alpha1.Succeeded || tj.Status.Phase == v1alpha1.Failed
	if tj.Status.Record == "" {
		return false, ended
	}
	rec, err := record.Read(tj.Status.Record)
	own = err == nil && rec.Job.Spec.Task == string(tj.UID)
	return own, own && ended && rec.Job.State == sched.Done
}

// cutDone keeps of a job that is done its name, how it ended, and when.
func cutDone(tj *v1alpha1.TrainingJob) {
	tj.Labels, tj.Annotations = nil, nil
	tj.Spec = v1alpha1.TrainingJobSpec{Cut: &v1alpha1.Cut{Bare: true},
		TTLSecondsAfterFinished: tj.Spec.TTLSecondsAfterFinished}
	tj.Status = v1alpha1.TrainingJobStatus{Phase: tj.Status.Phase, Conditions: ends(tj.Status.Conditions)}
}

// ends returns the conditions that say when a job ended, without more than that.
func ends(list []metav1.Condition) (kept []metav1.Condition) {
	for _, c := range list {
		if c.Type == Complete || c.Type == HasFailed {
			c.Message = ""
			kept = append(kept, c)
		}
	}
	return kept
}

// cutTemplate leaves out of a job what is needed to make pods of it alone.
func cutTemplate(tj *v1alpha1.TrainingJob) {
	cut := &v1alpha1.Cut{NotKept: notKept(tj), Hash: tj.Spec.TemplateHash()}
	tj.Spec.Cut, tj.Spec.Template = cut, corev1.PodTemplateSpec{}
	if _, applied := tj.Annotations[corev1.LastAppliedConfigAnnotation]; applied { // the template once more
		tj.Annotations = maps.Clone(tj.Annotations)
		delete(tj.Annotations, corev1.LastAppliedConfigAnnotation)
	}
	st := &tj.Status
	st.Allocation, st.Memory, st.Conditions = nil, nil, nil
}
