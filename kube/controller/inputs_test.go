package controller

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
)

// Ensure that a run ends when what it was built from changes, that the lead ends when another has it, though nothing is
// to be written, and that neither does for a status.
func TestInputsWatched(t *testing.T) {
	policy := func(generation, leader int64) *v1alpha1.SchedulerPolicy {
		return &v1alpha1.SchedulerPolicy{ObjectMeta: metav1.ObjectMeta{Name: PolicyName, Generation: generation},
			Status: v1alpha1.SchedulerPolicyStatus{Leader: leader}}
	}
	for _, c := range []struct {
		name string
		now  *v1alpha1.SchedulerPolicy
		want error
	}{
		{"as it was", policy(3, 7), nil},
		{"not heard of this leader", policy(3, 6), nil},
		{"other settings", policy(4, 7), ErrReload},
		{"another leads", policy(3, 8), ErrFenced},
		{"another leads by other settings", policy(4, 8), ErrFenced},
	} {
		ctx, stop := context.WithCancelCause(t.Context())
		in, informers := make(inputs), &informertest.FakeInformers{Scheme: Scheme()}
		in.add(policy(3, 7))
		if err := in.watch(ctx, informers, 7, stop); err != nil {
			t.Fatal(err)
		}
		informer, err := informers.FakeInformerFor(ctx, &v1alpha1.SchedulerPolicy{})
		if err != nil {
			t.Fatal(err)
		}
		informer.Update(policy(3, 7), c.now)
		if got := context.Cause(ctx); !errors.Is(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		stop(nil)
	}
}
