package jobs

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/internal/objects"
	"github.com/trainyard/trainyard/kube/driver/observer"
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

// bench is the jobs of a cluster, and a View without an engine.
type bench struct {
	*testing.T
	client.Client

	js     *Jobs
	v      *sched.View
	events []string // that people see
}

func newBench(t *testing.T, keep bool, list ...client.Object) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(list...).Build(), v: &sched.View{}}
	b.js = New(Options{
		Origin: origin, KeepJobs: keep,
		Types: func(product string) (sched.TypeID, error) {
			if product != "V100" {
				return 0, errors.New("none in the cluster")
			}
			return 0, nil
		},
		Event: func(about client.Object, reason, text string) {
			b.events = append(b.events, about.GetName()+" "+reason)
		},
	})
	return b
}

// has has the View know a job.
func (b *bench) has(name, uid string, s sched.JobState) *sched.Job {
	spec := &sched.JobSpec{User: objects.Namespace, Name: name, Task: uid, GPUs: sched.Rigid(1)}
	b.v.Jobs = append(b.v.Jobs, sched.Job{Spec: spec, State: s})
	b.js.Learn(b.v)
	return &b.v.Jobs[len(b.v.Jobs)-1]
}

func (b *bench) read(name string, server client.Reader) Read {
	b.Helper()
	key := types.NamespacedName{Namespace: objects.Namespace, Name: name}
	r, err := b.js.Read(b.Context(), observer.API{Cache: b, Server: server}, b.v, key)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

func jobOf(name string, uid types.UID) *v1alpha1.TrainingJob {
	tj := objects.Job(name, 1, nil)
	tj.UID = uid
	return tj
}

// Ensure that a job is known by its UID: one that took the name of another arrives once that is done, and one that the
// cache lacks is asked for.
func TestRead(t *testing.T) {
	b := newBench(t, false, jobOf("train", "second"))
	if r := b.read("train", nil); r.Known || r.Job == nil {
		t.Errorf("a job that is new: %+v", r)
	}
	first := b.has("train", "first", sched.Waiting)
	if r := b.read("train", b); !r.Known || r.Job != nil {
		t.Errorf("another job by the name of one that is not done: %+v", r)
	}
	server := newBench(t, false, jobOf("train", "first"))
	if r := b.read("train", server); !r.Known || r.Job == nil || r.Job.UID != "first" {
		t.Errorf("a job that the cache has not heard of: %+v", r)
	}
	first.State = sched.Done
	if r := b.read("train", b); r.Known || r.Job == nil || r.Job.UID != "second" {
		t.Errorf("another job by the name of one that is done: %+v", r)
	}
	if r := b.read("none", b); r.Known || r.Job != nil {
		t.Errorf("no job: %+v", r)
	}
}

// Ensure that new jobs arrive in the order in which they were made, with what their users are to know, and that one
// that cannot be is turned away once.
func TestArrive(t *testing.T) {
	b := newBench(t, false)
	at := func(name string, second int) *v1alpha1.TrainingJob {
		tj := jobOf(name, types.UID(name))
		tj.CreationTimestamp = metav1.NewTime(origin.Add(time.Duration(second) * time.Second))
		return tj
	}
	late, paused, typed, bad, waits := at("late", 9), at("paused", 1), at("typed", 2), at("bad", 3), at("waits", 4)
	paused.Spec.Suspend = true
	typed.Spec.GPUTypes = []string{"X", "V100"}
	typed.Spec.Checkpoint.Path = "/ckpt"
	late.Annotations = map[string]string{"trainyard.dev/none": ""}
	bad.Spec.Template.Spec.Containers = nil
	waits.Spec.GPUTypes = []string{"X"}
	for _, tj := range []*v1alpha1.TrainingJob{late, paused, typed, bad, waits} {
		if f := b.js.Meet(tj); f != Leave {
			t.Errorf("%s: finalizer %v", tj.Name, f)
		}
	}
	f, refused := b.js.Arrive(t.Context(), b.v, sched.Time(5*time.Second))
	var got []string
	for _, e := range f.Events {
		word := e.Kind.String()
		if e.Spec != nil {
			word = fmt.Sprint(e.Spec.Name, " ", time.Duration(e.Spec.Submit))
		}
		got = append(got, word)
	}
	if want := []string{"paused 1s", sched.JobCommanded.String(), "typed 2s", "late 5s"}; !slices.Equal(got, want) {
		t.Errorf("reported %q, want %q", got, want)
	}
	want := []string{"typed UnknownType", "typed CheckpointNotKept", "bad Invalid", "waits UnknownType", "late Ignored"}
	if !slices.Equal(b.events, want) {
		t.Errorf("people see %q, want %q", b.events, want)
	}
	if len(refused) != 2 || refused[0].Waits || !refused[1].Waits || refused[1].Reason != "UnknownType" {
		t.Errorf("refused %+v", refused)
	}
	b.js.Meet(bad)
	if f, refused = b.js.Arrive(t.Context(), b.v, 0); len(f.Events)+len(refused) > 0 {
		t.Errorf("again: %v, %+v", f.Events, refused)
	}
	waits.UID, waits.Status.Reason = "again", refusedOf(b, waits)
	b.js.Meet(waits)
	if _, refused = b.js.Arrive(t.Context(), b.v, 0); len(refused) > 0 {
		t.Errorf("refused although the status says so: %+v", refused)
	}
}

// refusedOf returns why a job does not arrive.
func refusedOf(b *bench, tj *v1alpha1.TrainingJob) string {
	_, err := Spec(tj, origin, b.js.o.Types)
	return err.Error()
}

// Ensure that where jobs are kept one arrives once it has our finalizer, and that one that is deleted loses it.
func TestMeet(t *testing.T) {
	b := newBench(t, true)
	tj := jobOf("train", "uid")
	tj.Finalizers = nil
	if f := b.js.Meet(tj); f != Set || len(b.js.arrivals) > 0 {
		t.Errorf("without the finalizer: %v", f)
	}
	free := newBench(t, false)
	if f := free.js.Meet(tj); f != Leave || len(free.js.arrivals) != 1 {
		t.Errorf("without the finalizer, where jobs are not kept: %v", f)
	}
	tj.Finalizers = []string{v1alpha1.Finalizer}
	if f := b.js.Meet(tj); f != Leave || len(b.js.arrivals) != 1 {
		t.Errorf("with the finalizer: %v", f)
	}
	tj.DeletionTimestamp = new(metav1.Now())
	if f := b.js.Meet(tj); f != Clear {
		t.Errorf("deleted: %v", f)
	}
}

// Ensure that what a user wants is reported as long as the View does not know it.
func TestRequests(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*v1alpha1.TrainingJob, *sched.Job)
		want   []string
	}{
		{"nothing", nil, nil},
		{"suspend", func(tj *v1alpha1.TrainingJob, _ *sched.Job) { tj.Spec.Suspend = true }, []string{"pause"}},
		{"resume", func(_ *v1alpha1.TrainingJob, j *sched.Job) { j.Paused = true }, []string{"resume"}},
		{"delete", func(tj *v1alpha1.TrainingJob, _ *sched.Job) { tj.DeletionTimestamp = new(metav1.Now()) },
			[]string{"cancel"}},
		{"deleted before", func(tj *v1alpha1.TrainingJob, j *sched.Job) {
			tj.DeletionTimestamp = new(metav1.Now())
			j.Cancel = true
		}, nil},
		{"priority", func(tj *v1alpha1.TrainingJob, _ *sched.Job) { tj.Spec.Priority = 7 }, []string{"change"}},
		{"what cannot be", func(tj *v1alpha1.TrainingJob, _ *sched.Job) { tj.Spec.GPUs.Min = 0 }, []string{"invalid"}},
	} {
		b := newBench(t, false)
		tj := jobOf("train", "uid")
		spec, err := Spec(tj, origin, b.js.o.Types)
		if err != nil {
			t.Fatal(err)
		}
		j := &sched.Job{Spec: spec}
		if c.change != nil {
			c.change(tj, j)
		}
		var got []string
		for _, e := range b.js.Requests(0, j, tj).Events {
			word := "change"
			if e.Kind == sched.JobCommanded {
				word = map[sched.Command]string{
					sched.PauseJob: "pause", sched.ResumeJob: "resume", sched.CancelJob: "cancel",
				}[sched.Command(e.Code)]
			}
			got = append(got, word)
		}
		for range b.events {
			got = append(got, "invalid")
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Ensure that an object is a stray if it has the name and the marks of an attempt that is over, of a job that is known:
// what has but some of them is someone else's.
func TestIsStray(t *testing.T) {
	b := newBench(t, false)
	j := b.has("train", "uid", sched.Active)
	j.Attempts, j.Attempt = 2, sched.Running
	object := func(name, job, attempt string, owner types.UID) client.Object {
		o := jobOf(name, "x")
		o.Labels = map[string]string{v1alpha1.LabelJob: job, v1alpha1.LabelAttempt: attempt}
		o.OwnerReferences = []metav1.OwnerReference{{UID: owner}}
		return o
	}
	for _, c := range []struct {
		name, job, attempt string
		owner              types.UID
		want               bool
	}{{"train-2", "train", "2", "uid", false}, {"train-1", "train", "1", "uid", true},
		{"train-1-r1", "train", "1", "uid", true}, {"train-1-0", "train", "1", "uid", true},
		{"train-2", "train", "2", "else", false}, {"train-1", "train", "1", "else", false},
		{"other", "train", "1", "uid", false}, {"train-10", "train", "1", "uid", false},
		{"train-3", "train", "3", "uid", false}, {"train-x", "train", "x", "uid", false},
		{"none-2", "none", "2", "uid", false}} {
		if got := b.js.IsStray(b.v, object(c.name, c.job, c.attempt, c.owner)); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if j.Attempt = sched.Ended; !b.js.IsStray(b.v, object("train-2", "train", "2", "uid")) {
		t.Error("want what is left of an attempt that has ended to be a stray")
	}
	if len(b.js.Live(b.v)) != 1 {
		t.Errorf("%v are live, want one", b.js.Live(b.v))
	}
	if j.State = sched.Done; len(b.js.Live(b.v)) != 0 {
		t.Errorf("%v are live, want none", b.js.Live(b.v))
	}
}

// Ensure that a job whose record cannot be read does not arrive again, and that a record that was put right is noticed.
func TestBadRecordDoesNotArrive(t *testing.T) {
	b := newBench(t, false)
	var mended []string
	b.js.o.Bad, b.js.o.Mended = map[types.UID]string{"uid": "bad"}, func(job string) { mended = append(mended, job) }
	tj := jobOf("train", "uid")
	tj.Status.Record = "bad"
	if f := b.js.Meet(tj); f != Leave || len(b.js.arrivals)+len(mended) > 0 {
		t.Errorf("it arrives: %v, mended %q", len(b.js.arrivals), mended)
	}
	tj.Status.Record = "good"
	if b.js.Meet(tj); len(b.js.arrivals) > 0 || !slices.Equal(mended, []string{objects.Namespace + "/train"}) {
		t.Errorf("it arrives: %v, mended %q", len(b.js.arrivals), mended)
	}
	other := jobOf("other", "else")
	other.Status.Record = "bad"
	if b.js.Meet(other); len(b.js.arrivals) != 1 {
		t.Error("another job does not arrive")
	}
}
