package jobs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/internal/objects"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that a job that asks for more than the policy allows does not arrive, and one that asks for as much does.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*v1alpha1.TrainingJob)
		want   string // "": it arrives
	}{
		{"nothing", func(*v1alpha1.TrainingJob) {}, ""},
		{"the highest priority", func(tj *v1alpha1.TrainingJob) { tj.Spec.Priority = 3 }, ""},
		{"a higher one", func(tj *v1alpha1.TrainingJob) { tj.Spec.Priority = 4 },
			"priority 4, want at most limits.priority, 3"},
		{"the longest grace", func(tj *v1alpha1.TrainingJob) { tj.Spec.Checkpoint.GraceSeconds = 60 }, ""},
		{"a longer one", func(tj *v1alpha1.TrainingJob) { tj.Spec.Checkpoint.GraceSeconds = 61 },
			"checkpoint.graceSeconds 61, want at most limits.grace, 1m0s"},
		{"a class", func(tj *v1alpha1.TrainingJob) { tj.Spec.Template.Spec.PriorityClassName = "batch" }, ""},
		{"another class", func(tj *v1alpha1.TrainingJob) { tj.Spec.Template.Spec.PriorityClassName = "urgent" },
			`template.spec.priorityClassName "urgent", want one of limits.priorityClasses: batch`},
		{"the default scheduler", func(tj *v1alpha1.TrainingJob) {
			tj.Spec.Template.Spec.SchedulerName = "default-scheduler"
		}, ""},
		{"another scheduler", func(tj *v1alpha1.TrainingJob) { tj.Spec.Template.Spec.SchedulerName = "none" },
			`template.spec.schedulerName "none", want default-scheduler or one of limits.schedulers, which has none`},
		{"as many bytes", func(tj *v1alpha1.TrainingJob) { fill(tj, 10_000) }, ""},
		{"a byte more", func(tj *v1alpha1.TrainingJob) { fill(tj, 10_001) },
			"it has 10001 bytes, want at most limits.jobBytes, 10000"},
	} {
		b := newBench(t, false)
		b.js.o.Limits = &v1alpha1.Limits{Priority: 3, Grace: metav1.Duration{Duration: time.Minute},
			PriorityClasses: []string{"batch"}, JobBytes: 10_000}
		tj := jobOf("train", "uid")
		c.change(tj)
		b.js.Meet(tj)
		_, refused := b.js.Arrive(t.Context(), b.v, 0)
		switch {
		case c.want == "" && len(refused) > 0:
			t.Errorf("%s: refused: %s", c.name, refused[0].Why)
		case c.want != "" && (len(refused) != 1 || !strings.Contains(refused[0].Why, c.want) ||
			refused[0].Reason != "OverLimit" || refused[0].Waits):
			t.Errorf("%s: %+v, want %q", c.name, refused, c.want)
		}
	}
}

// fill has a job be of so many bytes.
func fill(tj *v1alpha1.TrainingJob, size int) {
	pad := &tj.Spec.Template.Spec.Containers[0]
	pad.Args = []string{""}
	pad.Args[0] = strings.Repeat("x", size-sizeOf(tj, 0))
}

// Ensure that each namespace may have so many jobs that are not done, whatever others have.
func TestJobsPerNamespace(t *testing.T) {
	b := newBench(t, false)
	b.js.o.Limits = &v1alpha1.Limits{JobsPerNamespace: 3}
	b.has("waits", "1", sched.Waiting)
	b.has("done", "2", sched.Done)
	b.has("theirs", "3", sched.Waiting).Spec.User = "others"
	b.js.ids = map[types.NamespacedName]sched.JobID{}
	b.js.counted = 0
	b.js.Learn(b.v)
	arrive := func(space string, names ...string) (refused []string) {
		for _, name := range names {
			tj := jobOf(name, types.UID(space+name))
			tj.Namespace = space
			b.js.Meet(tj)
		}
		_, list := b.js.Arrive(t.Context(), b.v, 0)
		for _, r := range list {
			refused = append(refused, fmt.Sprint(r.Job.Name, ": ", r.Why))
		}
		return refused
	}
	if got := arrive("others", "a", "b"); len(got) > 0 {
		t.Errorf("%q are refused", got)
	}
	want := []string{"c: the SchedulerPolicy allows less: 3 jobs of namespace " + objects.Namespace +
		" are not done, want at most limits.jobsPerNamespace, 3"}
	if got := arrive(objects.Namespace, "a", "b", "c"); !slices.Equal(got, want) {
		t.Errorf("refused %q, want %q", got, want)
	}
}

// Ensure that a job that has arrived cannot be changed beyond what the policy allows, and may keep what it had.
func TestLimitsOfChanges(t *testing.T) {
	b := newBench(t, false)
	b.js.o.Limits = &v1alpha1.Limits{Priority: 3, Grace: metav1.Duration{Duration: time.Minute}}
	tj := jobOf("train", "uid")
	tj.Spec.Priority = 7 // it arrived under another policy
	spec, err := Spec(tj, origin, b.js.o.Types)
	if err != nil {
		t.Fatal(err)
	}
	for priority, changes := range map[int32]int{7: 0, 8: 0, 6: 1, 3: 1} {
		tj.Spec.Priority = priority
		f := b.js.Requests(0, &sched.Job{Spec: spec}, tj)
		if len(f.Events) != changes {
			t.Errorf("priority %d: %d events, want %d", priority, len(f.Events), changes)
		}
	}
	if want := []string{"train OverLimit"}; !slices.Equal(b.events, want) {
		t.Errorf("people see %q, want %q", b.events, want)
	}
	tj.Spec.Checkpoint.GraceSeconds = 3600
	if got := b.js.Bounded(tj).Spec.Checkpoint.GraceSeconds; got != 60 || tj.Spec.Checkpoint.GraceSeconds != 3600 {
		t.Errorf("an attempt has a grace of %d s, want 60", got)
	}
	tj.Spec.Checkpoint.GraceSeconds = 60
	if b.js.Bounded(tj) != tj {
		t.Error("a job that keeps the limits is another")
	}
}
