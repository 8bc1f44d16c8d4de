package controller

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
)

// lock is one that someone holds, and whose updates answer err.
type lock struct {
	resourcelock.Interface

	holder  string
	err     error
	updates int
}

func (l *lock) Identity() string { return "me" }

func (l *lock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: l.holder}, nil, nil
}

func (l *lock) Update(context.Context, resourcelock.LeaderElectionRecord) error {
	l.updates++
	return l.err
}

// Ensure that a lease is held once it is renewed, and no more once it is given up, even where no one knows whether the
// API took that; and that one which another has taken is left alone.
func TestLeaseGivenUp(t *testing.T) {
	for _, c := range []struct {
		holder string
		answer error
		want   error
		writes int
	}{{"me", nil, nil, 1}, {"me", errDied, errDied, 1}, {"other", errDied, nil, 0}, {"", errDied, nil, 0}} {
		in := new(lock)
		l := &lease{Interface: in, lasts: time.Hour}
		if l.held() == nil {
			t.Error("held before it was taken")
		}
		if err := l.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "me"}); err != nil ||
			l.held() != nil {
			t.Errorf("%v; not held although it was renewed", err)
		}
		*in = lock{holder: c.holder, err: c.answer}
		if _, _, err := l.Get(t.Context()); err != nil { // as client-go does before it gives a lease up
			t.Fatal(err)
		}
		if err := l.Update(t.Context(), resourcelock.LeaderElectionRecord{}); !errors.Is(err, c.want) ||
			l.held() == nil {
			t.Errorf("%+v: %v; held although it was given up", c, err)
		}
		if in.updates != c.writes {
			t.Errorf("%+v: %d writes", c, in.updates)
		}
	}
}

// Ensure that who sees that another holds the lease, or no one, holds it no more, and that a look of one's own ends
// nothing.
func TestLeaseTakenAway(t *testing.T) {
	for holder, held := range map[string]bool{"me": true, "other": false, "": false} {
		l := &lease{Interface: &lock{holder: holder}, lasts: time.Hour}
		if err := l.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "me"}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := l.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := l.held(); (got == nil) != held {
			t.Errorf("holder %q: %v", holder, got)
		}
	}
}

// Ensure that a lease is not given up while what it guards is at work, though nothing is written any more, and that it
// is afterwards.
func TestLeaseGivenUpAfterWork(t *testing.T) {
	in := &lock{holder: "me"}
	l := &lease{Interface: in, lasts: time.Hour}
	give := func() {
		t.Helper()
		if _, _, err := l.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := l.Update(t.Context(), resourcelock.LeaderElectionRecord{}); err != nil || l.held() == nil {
			t.Errorf("%v; held although it was given up", err)
		}
	}
	l.work(true)
	if give(); in.updates != 0 {
		t.Errorf("given up %d times while at work", in.updates)
	}
	l.work(false)
	if give(); in.updates != 1 {
		t.Errorf("given up %d times, want once", in.updates)
	}
}

// Ensure that a write which the server asks to try again later is not tried again, by whomever, once the lease has run
// out, and that what only reads is.
func TestFenceAtTheDoor(t *testing.T) {
	for _, verb := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete} {
		var left atomic.Bool // the lease has run out
		var asked atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if asked.Add(1) == 1 {
				left.Store(true)
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(http.StatusTooManyRequests)
			}
		}))
		config := &rest.Config{Host: server.URL}
		guarded(config, func() error {
			if left.Load() {
				return errLease
			}
			return nil
		})
		api, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		err = api.CoreV1().RESTClient().Verb(verb).Resource("pods").Do(t.Context()).Error()
		if read := verb == http.MethodGet; errors.Is(err, errLease) == read || (asked.Load() == 2) != read {
			t.Errorf("%s: asked %d times, %v", verb, asked.Load(), err)
		}
		server.Close()
	}
}

// Ensure that one whose lease has run out takes no one else's lead when it starts again.
func TestNoLeadWithoutLease(t *testing.T) {
	api := interceptor.NewClient(fake.NewClientBuilder().WithScheme(Scheme()).WithStatusSubresource(
		&v1alpha1.SchedulerPolicy{}).Build(), interceptor.Funcs{})
	c := New(Options{Client: api, Reader: api, Namespace: "trainyard", Clock: time.Now,
		Log: slog.New(slog.DiscardHandler), Held: func() error {
			return errLease
		}})
	if err := c.Run(t.Context()); !errors.Is(err, ErrFenced) || !errors.Is(err, errLease) {
		t.Errorf("%v, want %v", err, ErrFenced)
	}
	var list v1alpha1.SchedulerPolicyList
	if err := api.List(t.Context(), &list); err != nil || len(list.Items) > 0 {
		t.Errorf("%v; written: %+v", err, list.Items)
	}
}
