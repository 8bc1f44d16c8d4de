package controller

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
)

// lock is one whose updates answer err.
type lock struct {
	resourcelock.Interface

	err error
}

func (l *lock) Update(context.Context, resourcelock.LeaderElectionRecord) error { return l.err }

// Ensure that a lease is held once it is renewed, and no more once it is given up, even where nobody knows whether the API took that.
func TestLeaseGivenUp(t *testing.T) {
	for _, answer := range []error{nil, errDied} {
		in := new(lock)
		l := &lease{Interface: in, lasts: time.Hour}
		if l.held() == nil {
			t.Error("held before it was taken")
		}
		if err := l.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "me"}); err != nil || l.held() != nil {
			t.Errorf("%v; not held although it was renewed", err)
		}
		in.err = answer
		if err := l.Update(t.Context(), resourcelock.LeaderElectionRecord{}); !errors.Is(err, answer) || l.held() == nil {
			t.Errorf("%v; held although it was given up", err)
		}
	}
}

// Ensure that one whose lease has run out takes nobody else's lead when it begins anew.
func TestNoLeadWithoutLease(t *testing.T) {
	api := interceptor.NewClient(fake.NewClientBuilder().WithScheme(Scheme()).WithStatusSubresource(&v1alpha1.SchedulerPolicy{}).Build(), interceptor.Funcs{})
	c := New(Options{Client: api, Reader: api, Namespace: "trainyard", Clock: time.Now, Log: slog.New(slog.DiscardHandler), Held: func() error { return errLease }})
	if err := c.Run(t.Context()); !errors.Is(err, ErrFenced) || !errors.Is(err, errLease) {
		t.Errorf("%v, want %v", err, ErrFenced)
	}
	var list v1alpha1.SchedulerPolicyList
	if err := api.List(t.Context(), &list); err != nil || len(list.Items) > 0 {
		t.Errorf("%v; written: %+v", err, list.Items)
	}
}
