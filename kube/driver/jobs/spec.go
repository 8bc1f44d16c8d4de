package jobs

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/sched"
)

// Types gives the product name of a GPU its number. The error says why it has none.
type Types func(product string) (sched.TypeID, error)

// Spec returns what the core knows of a TrainingJob: Name and User are its name and namespace, Task is its UID, by
// which the driver recognizes it. Times count from origin. GPU types without a number are left out as long as there are
// others. The error says what of the object cannot be had.
func Spec(tj *v1alpha1.TrainingJob, origin time.Time, types Types) (*sched.JobSpec, error) {
	if err := Possible(tj); err != nil {
		return nil, err
	}
	in := &tj.Spec
	s := &sched.JobSpec{
		Name: tj.Name, User: tj.Namespace, Task: string(tj.UID), Model: in.Profile.Model, Class: in.Profile.Class,
		Submit: max(since(origin, tj.CreationTimestamp.Time), 0), Priority: in.Priority, GPUs: width(in.GPUs),
		GPUMemGB: float32(in.Sharing.MemoryGiB), Util: float32(in.Sharing.UsePercent) / 100,
		Epochs: in.Profile.Epochs, Retries: in.Retries, Stops: sched.Stops{
			Saves:   in.Checkpoint.Path != "" && notKept(tj) == "",
			Preempt: preemptible[in.Preemptible],
		},
	}
	if in.Sharing.Allowed {
		s.Share = sched.ShareAllow
	}
	if b := in.Batch; b != nil {
		s.Batch = sched.BatchRange{Min: b.Min, Max: b.Max, PerGPU: b.PerGPUMax}
	}
	if in.WallTime != nil {
		s.WallTime = in.WallTime.Duration
	}
	if in.Deadline != nil { // 0 would mean none
		s.Deadline = max(since(origin, in.Deadline.Time), 1)
	}
	var err error
	if s.Types, _, err = known(in.GPUTypes, types); errors.Is(err, errNoType) {
		return nil, cmp.Or(s.Validate(), err) // what will never do comes first
	}
	return s, s.Validate()
}

// preemptible is what jobs request about being stopped for others.
var preemptible = map[v1alpha1.Preemptible]sched.Preemptible{
	v1alpha1.PreemptAlways: sched.AlwaysPreempt, v1alpha1.PreemptNever: sched.NeverPreempt,
}

// errNoType says that a job asks for GPUs of types that are not known: they may be, later.
var errNoType = errors.New("waits for a GPU of type")

// known returns those of the types that a job asks for that have a number, and the names of the others. It is an error
// if there are none but others: a job without types runs on any.
func known(products []string, types Types) (set sched.TypeSet, others []string, err error) {
	for _, product := range products {
		t, unknown := types(product)
		if unknown == nil && t >= sched.MaxGPUTypes {
			const text = "its number is %d, and no more than %d types can be distinguished"
			unknown = fmt.Errorf(text, t+1, sched.MaxGPUTypes)
		}
		if unknown != nil {
			others, err = append(others, strconv.Quote(product)), unknown
			continue
		}
		set = set.With(t)
	}
	if len(others) > 0 && set == 0 {
		return 0, others, fmt.Errorf("%w %s: %w", errNoType, strings.Join(others, " or "), err)
	}
	return set, others, err
}

func since(origin, t time.Time) sched.Time { return sched.Time(t.Sub(origin)) }

func width(w v1alpha1.Width) sched.Range {
	r := sched.Rigid(int(w.Min))
	if w.Max != nil {
		r.Max = *w.Max
	}
	if w.Want != nil {
		r.Want = *w.Want
	}
	return r
}

// Possible returns what of a TrainingJob the API server lets pass but no node can run. The rules of its definition
// refuse the rest of what could be wrong with one.
func Possible(tj *v1alpha1.TrainingJob) error {
	pod := &tj.Spec.Template.Spec
	switch {
	case tj.Spec.Unreadable != "":
		return fmt.Errorf("the spec cannot be read: %s", tj.Spec.Unreadable)
	case tj.Spec.Cut != nil: // it was found possible before
		return nil
	case len(pod.Containers) == 0:
		return fmt.Errorf("template has no container, want the one that trains")
	}
	c, arg := &pod.Containers[0], tj.Spec.Checkpoint.ResumeArg
	if arg != "" && len(c.Command) == 0 && len(c.Args) == 0 {
		return fmt.Errorf("checkpoint.resumeArg %q without command and args, want one of them: "+
			"it would replace those of the image", arg)
	}
	if n := sizeOf(tj, MaxSize); n > MaxSize {
		return fmt.Errorf("it has %d KiB, want at most %d, for its status has to be written with it: "+
			"put what is long into a ConfigMap or an image", n>>10, MaxSize>>10)
	}
	return nil
}

// MaxSize is how many bytes a job may have. etcd takes 1.5 MiB with all that the API server and we add: which client
// changed which field, and the status.
const MaxSize = 512 << 10

// sizeOf returns how many bytes a job has, or fewer of one that is far from having more than most. It counts the job as
// it was submitted, so that a job that was accepted stays so: without what the API server and we add.
func sizeOf(tj *v1alpha1.TrainingJob, most int) int {
	n := tj.Spec.Template.Size() + tj.ObjectMeta.Size() // as JSON, in which it is kept, up to six times as many
	if n < most/6 {
		return n
	}
	bare := v1alpha1.TrainingJob{ObjectMeta: metav1.ObjectMeta{
		Namespace: tj.Namespace, Name: tj.Name, GenerateName: tj.GenerateName, Labels: tj.Labels,
		Annotations: maps.Clone(tj.Annotations), OwnerReferences: tj.OwnerReferences,
	}, Spec: tj.Spec}
	maps.DeleteFunc(bare.Annotations, func(name, _ string) bool {
		return strings.HasPrefix(name, v1alpha1.GroupVersion.Group+"/") // ours
	})
	for _, f := range tj.Finalizers {
		if f != v1alpha1.Finalizer {
			bare.Finalizers = append(bare.Finalizers, f)
		}
	}
	text, err := json.Marshal(&bare)
	if err != nil {
		return n
	}
	return len(text)
}
