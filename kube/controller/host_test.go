package controller

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver"
	driverobserver "github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that who asks the host of a controller sees the cluster's jobs, those that an earlier leader left too, and why
// they wait; that a wait cut short for it costs no event; and that what the host does not have here it says so of.
func TestHostAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apiWith("fifo", v1alpha1.Count, nodeOf("a"))
		wide := typed("wide")
		wide.Spec.GPUs.Min = 4
		for _, j := range []*v1alpha1.TrainingJob{typed("small"), wide} {
			if err := api.Create(t.Context(), j); err != nil {
				t.Fatal(err)
			}
		}
		for leader := range 2 {
			q, hosts := driverobserver.NewQueue(), make(chan *host.Host, 1)
			c := New(Options{Client: api, Reader: api, Namespace: "trainyard", Clock: time.Now,
				Log:  slog.New(slog.NewTextHandler(t.Output(), nil)),
				Held: func() error { return nil }, Host: func(h *host.Host) { hosts <- h },
				Driver: func(s Setup) (Driver, error) {
					return driver.New(driver.Options{Client: api, Reader: api, Queue: q, Origin: s.Origin,
						Mode:        s.Policy.Mode,
						DeviceClass: "gpu.nvidia.com", StartTimeout: 10 * time.Minute, Types: s.Type,
						NewType: s.NewType}), nil
				}})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			over := make(chan error, 1)
			go func() { over <- c.Run(ctx) }()
			h := <-hosts
			for range 10 { // each look cuts a wait short
				time.Sleep(time.Second)
				if err := h.Look(ctx, func(v *sched.View) {}); err != nil {
					t.Fatal(err)
				}
			}
			rows := h.Board().Rows()
			if len(rows) != 2 || rows[0].Name != "small" || rows[0].Attempt == sched.NoAttempt ||
				rows[1].State != sched.Waiting {
				t.Errorf("leader %d: rows %+v", leader, rows)
			}
			a, err := h.Why(ctx, 1, host.WhyOptions{Remedies: time.Second, Forecast: time.Second})
			if err != nil || a.Waiting.Code != explain.WaitTooWide || a.Waiting.Need != 4 || a.Forecast != nil ||
				len(a.View.Jobs) != 2 {
				t.Errorf("leader %d: %+v, %v", leader, a, err)
			}
			if _, err := h.Explain(ctx, 1); !errors.Is(err, host.ErrNotHere) {
				t.Errorf("leader %d: explained: %v", leader, err)
			}
			if err := h.Events(ctx, 1, func(uint64, []byte) error { return nil }); !errors.Is(err, host.ErrNotHere) {
				t.Errorf("leader %d: events: %v", leader, err)
			}
			cancel()
			if err := <-over; err != nil {
				t.Error(err)
			}
			if err := h.Look(t.Context(), func(*sched.View) {}); !errors.Is(err, host.ErrStopped) {
				t.Errorf("leader %d: asked when it is over: %v", leader, err)
			}
		}
	})
}

// Ensure that who asks why a job waits that is held hears why, and not that its user suspended it.
func TestHostKnowsHeldJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apiWith("fifo", v1alpha1.Count, nodeOf("a"))
		for _, name := range []string{"held", "rests"} {
			j := typed(name)
			j.Spec.Suspend = true
			if err := api.Create(t.Context(), j); err != nil {
				t.Fatal(err)
			}
		}
		var setup Setup
		hosts := make(chan *host.Host, 1)
		c := New(Options{Client: api, Reader: api, Namespace: "trainyard", Clock: time.Now,
			Log:  slog.New(slog.NewTextHandler(t.Output(), nil)),
			Held: func() error { return nil }, Host: func(h *host.Host) { hosts <- h },
			Driver: func(s Setup) (Driver, error) {
				setup = s
				return driver.New(driver.Options{Client: api, Reader: api, Queue: driverobserver.NewQueue(),
					Origin: s.Origin, Mode: s.Policy.Mode, StartTimeout: 10 * time.Minute, Types: s.Type,
					NewType: s.NewType}), nil
			}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		over := make(chan error, 1)
		go func() { over <- c.Run(ctx) }()
		h := <-hosts
		time.Sleep(time.Second)
		if err := h.Look(ctx, func(*sched.View) { setup.Held(0, "exceeded quota") }); err != nil {
			t.Fatal(err)
		}
		for id, want := range []string{"held: exceeded quota", ""} {
			if err := h.Look(ctx, func(v *sched.View) {
				if is := h.Brief(v).Held(sched.JobID(id)); is != want {
					t.Errorf("job %d in lists: %q, want %q", id, is, want)
				}
			}); err != nil {
				t.Fatal(err)
			}
			a, err := h.Why(ctx, sched.JobID(id), host.WhyOptions{})
			if err != nil || a.Waiting.Code != explain.WaitPaused || a.Held != want {
				t.Errorf("job %d: %+v, %v, want %q", id, a, err, want)
			}
		}
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}
