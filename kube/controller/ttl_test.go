package controller

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/record"
	"github.com/trainyard/trainyard/sched"
)

// ended returns a job that was done at an instant; of one that goes on only the status says so.
func ended(name string, at time.Time, ttl *int32, goesOn bool) *v1alpha1.TrainingJob {
	state := sched.Done
	if goesOn {
		state = sched.Waiting
	}
	v := &sched.View{Jobs: []sched.Job{{Spec: &sched.JobSpec{User: "lab", Name: name, GPUs: sched.Rigid(1), Task: name},
		State: state}}}
	rec := record.Of(v, 0, 1)
	return &v1alpha1.TrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name, UID: types.UID(name)},
		Spec: v1alpha1.TrainingJobSpec{TTLSecondsAfterFinished: ttl},
		Status: v1alpha1.TrainingJobStatus{Phase: v1alpha1.Failed, Record: rec.String(), Conditions: []metav1.Condition{
			{Type: HasFailed, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)}}}}
}

// Ensure that jobs are deleted once their time after their end is over, at most ten in a second, and others never.
func TestRemoveDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		api := fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(ended("at-once", start, new(int32), false),
			ended("by-policy", start, nil, false), ended("later", start, new(int32(3000)), false),
			ended("goes-on", start, new(int32), true)).Build()
		for i := range 50 {
			many := ended(fmt.Sprint("many-", i), start, new(int32(100)), false)
			if err := api.Create(t.Context(), many); err != nil {
				t.Fatal(err)
			}
		}
		names := func() (list []string) {
			var all v1alpha1.TrainingJobList
			if err := api.List(t.Context(), &all); err != nil {
				t.Fatal(err)
			}
			for i := range all.Items {
				list = append(list, all.Items[i].Name)
			}
			return list
		}
		c := New(Options{Client: api, Clock: time.Now, Log: slog.New(slog.DiscardHandler),
			Held: func() error { return nil }})
		go c.removeDone(t.Context(), "40m")
		for _, step := range []struct {
			at      time.Duration
			want    int
			present []string
		}{
			{time.Second, 53, []string{"by-policy", "goes-on", "later"}},
			{time.Minute, 53, []string{"by-policy", "goes-on", "later"}},
			{102 * time.Second, 32, nil}, // twenty or so in two seconds
			{10 * time.Minute, 3, []string{"by-policy", "goes-on", "later"}},
			{42 * time.Minute, 2, []string{"goes-on", "later"}},
			{time.Hour, 1, []string{"goes-on"}},
		} {
			time.Sleep(step.at - time.Since(start))
			list := names()
			if len(list) < step.want || len(list) > step.want+2 || step.present != nil && len(list) != step.want {
				t.Errorf("after %v: %d jobs, want %d", step.at, len(list), step.want)
			}
			for _, name := range step.present {
				if !slices.Contains(list, name) {
					t.Errorf("after %v: %s is gone", step.at, name)
				}
			}
		}
	})
}

// Ensure that nothing is deleted that is to be kept, or does not say when it ended, or is deleted already.
func TestExpires(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	silent := ended("a", at, nil, false)
	silent.Status.Conditions = nil
	leaving := ended("a", at, nil, false)
	leaving.DeletionTimestamp = &metav1.Time{Time: at}
	for _, c := range []struct {
		name string
		job  *v1alpha1.TrainingJob
		keep string
		want time.Duration // < 0: never
	}{
		{"by the policy", ended("a", at, nil, false), "168h", 168 * time.Hour},
		{"by itself", ended("a", at, new(int32(5)), false), "168h", 5 * time.Second},
		{"kept", ended("a", at, nil, false), "never", -1},
		{"by itself though others are kept", ended("a", at, new(int32(5)), false), "never", 5 * time.Second},
		{"under a policy of before", ended("a", at, nil, false), "", -1},
		{"under a policy that is wrong", ended("a", at, nil, false), "soon", -1},
		{"without a time", silent, "1h", -1},
		{"leaving", leaving, "1h", -1},
		{"going on", ended("a", at, nil, true), "1h", -1},
	} {
		got, ok := expires(c.job, c.keep)
		if ok != (c.want >= 0) || ok && got.Sub(at) != c.want {
			t.Errorf("%s: %v, %v, want %v", c.name, got, ok, c.want)
		}
	}
}
