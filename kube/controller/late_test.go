package controller

import (
	"context"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/record"
	"github.com/trainyard/trainyard/memory"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that a status which an earlier leader wrote after this one had read it is written over, once, in the time in
// which such a write may come, and that what users change of a job is no reason to write.
func TestLateStatusIsWrittenOver(t *testing.T) {
	writes, now := 0, time.Now()
	d := newDesk(t, interceptor.Funcs{SubResourcePatch: func(ctx context.Context, api client.Client, _ string,
		o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
		err := api.Status().Patch(ctx, o, p, opts...)
		if err == nil {
			writes++
		}
		return err
	}})
	d.submit("first")
	d.dec, d.news.report, d.live, d.clock = none{}, func(...note) {}, []sched.JobID{0}, func() time.Time { return now }
	d.v.Jobs[0].State, d.v.Jobs[0].Attempt, d.v.Jobs[0].Spec.GPUs = sched.Waiting, sched.Ended, sched.Rigid(1)
	d.jobs[0].version, d.jobs[0].wait = d.job().ResourceVersion, anyWait // as it was read
	d.jobs[0].memory = memory.SaveJob(d.dec, 0)
	d.jobs[0].shown.reason = d.reason(0, pipeline.Why(d.v, d.dec, 0))
	at := sched.Time(0)
	look := func(what string, want int) {
		t.Helper()
		writes = 0
		at += sched.Time(retellEvery)
		if d.pass(at); writes != want {
			t.Errorf("%s: %d writes, want %d", what, writes, want)
		}
	}
	change := func(edit func(j *v1alpha1.TrainingJob)) {
		t.Helper()
		j := d.job()
		edit(j)
		if err := d.api.Status().Update(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		j.Labels = map[string]string{"of": "its user"}
		if err := d.api.Update(t.Context(), j); err != nil {
			t.Fatal(err)
		}
	}
	byThe := func(leader int64) func(j *v1alpha1.TrainingJob) {
		return func(j *v1alpha1.TrainingJob) {
			rec := record.Of(d.v, 0, leader)
			j.Status.Phase, j.Status.Record = v1alpha1.Starting, rec.String()
		}
	}
	look("nothing came", 0)
	change(byThe(0))
	look("an earlier leader wrote", 1)
	if st := d.job().Status; st.Phase != v1alpha1.Pending {
		t.Errorf("the status is %+v", st)
	} else if rec, err := record.Read(st.Record); err != nil || rec.Leader != 1 {
		t.Errorf("of leader %d, want 1; %v", rec.Leader, err)
	}
	look("it was written over", 0)
	change(func(*v1alpha1.TrainingJob) {})
	look("its user changed it", 0)
	now = now.Add(lateFor + time.Second)
	change(byThe(0))
	look("long after", 0)
}

// Ensure that what is being written when the lead ends is written, as who leads next reads it at once, and that nothing
// else is started.
func TestLastWriteIsNotCalledOff(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	writes := 0
	d := newDesk(t, interceptor.Funcs{SubResourcePatch: func(ctx context.Context, api client.Client, _ string,
		o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
		writes++
		cancel()
		if ctx.Err() != nil {
			t.Error("called off")
		}
		return api.Status().Patch(ctx, o, p, opts...)
	}})
	d.ctx = ctx
	d.submit("first")
	d.jobs[0].version = d.job().ResourceVersion
	if err := d.write(v1alpha1.Running); err != nil || d.job().Status.Phase != v1alpha1.Running {
		t.Errorf("%v; the status is %+v", err, d.job().Status)
	}
	if err := d.write(v1alpha1.Stopping); err == nil || writes != 1 {
		t.Errorf("%d writes, want one; then %v", writes, err)
	}
}
