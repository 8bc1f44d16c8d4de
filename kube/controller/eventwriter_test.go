package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// pen is a reporter whose Events a test reads in the order in which they are written.
type pen struct {
	*reporter

	mu    sync.Mutex // the detector of races knows nothing of the order that sleeps give
	lines []string
	fail  func(e *corev1.Event) error
}

// written returns what was written until now.
func (p *pen) written() []string {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.lines)
}

// write runs a test with a pen in a bubble of its own.
func write(t *testing.T, test func(t *testing.T, p *pen)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &pen{fail: func(*corev1.Event) error { return nil }}
		note := func(o client.Object) error {
			e := o.(*corev1.Event)
			p.mu.Lock()
			defer p.mu.Unlock()
			if err := p.fail(e); err != nil {
				return err
			}
			p.lines = append(p.lines, fmt.Sprintf("%s %s x%d: %s", e.InvolvedObject.Name, e.Reason, e.Count, e.Message))
			return nil
		}
		api := interceptor.NewClient(nil, interceptor.Funcs{
			Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
				return note(o)
			},
			Patch: func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch,
				_ ...client.PatchOption) error {
				return note(o)
			},
		})
		p.reporter = newReporter(api, slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { p.run(ctx); close(done) }()
		test(t, p)
		stop()
		<-done
	})
}

// of is a note about a job.
func of(job, kind, reason, text string) note {
	return note{about: corev1.ObjectReference{Kind: "TrainingJob", Namespace: "lab", Name: job, UID: types.UID(job)},
		kind: kind, reason: reason, text: text}
}

func (p *pen) want(t *testing.T, want ...string) {
	t.Helper()
	if written := p.written(); !slices.Equal(written, want) {
		t.Errorf("written:\n%s\nwant:\n%s", strings.Join(written, "\n"), strings.Join(want, "\n"))
	}
}

// Ensure that a wait is reported only once it has lasted, as it is by then, and not if it is over.
func TestWaitsAreToldLate(t *testing.T) {
	write(t, func(t *testing.T, p *pen) {
		p.report(of("a", corev1.EventTypeNormal, reportedQueued, "one"),
			of("b", corev1.EventTypeNormal, reportedQueued, "brief"))
		time.Sleep(4 * time.Second)
		p.report(of("a", corev1.EventTypeNormal, reportedQueued, "two"), of("b", "", "", ""),
			of("b", corev1.EventTypeNormal, reportedStarted, "runs"))
		p.want(t, "b Started x1: runs")
		time.Sleep(queuedAfter)
		p.want(t, "b Started x1: runs", "a Queued x1: two")
	})
}

// Ensure that jobs that start to wait together are reported in the order in which they did.
func TestWaitsKeepTheirOrder(t *testing.T) {
	write(t, func(t *testing.T, p *pen) {
		var notes []note
		var want []string
		for i := range 2 * reportBurst { // which come due while the first are written
			job := fmt.Sprint("job-", i)
			notes = append(notes, of(job, corev1.EventTypeNormal, reportedQueued, "waits"))
			want = append(want, job+" Queued x1: waits")
		}
		p.report(notes...)
		time.Sleep(queuedAfter + 10*time.Second)
		p.want(t, want...)
	})
}

// Ensure that in a storm the ends of jobs, and what is wrong, come first, that the rest comes at a rate, and that no
// one waits for what is too much.
func TestStorm(t *testing.T) {
	write(t, func(t *testing.T, p *pen) {
		for i := range 2 * reportQueue {
			p.report(of(fmt.Sprint("job-", i), corev1.EventTypeNormal, reportedStarted, "runs"))
		}
		p.report(of("mine", corev1.EventTypeNormal, reportedFinished, "done"),
			of("other", corev1.EventTypeWarning, reportedFailed, "exit code 1"))
		if n := len(p.written()); n < reportBurst || n > reportBurst+2 {
			t.Errorf("%d written at once", n)
		}
		time.Sleep(time.Second)
		for _, end := range []string{"mine Finished x1: done", "other Failed x1: exit code 1"} {
			if !slices.Contains(p.written(), end) {
				t.Errorf("not written: %s", end)
			}
		}
		time.Sleep(reportQueue / reportRate * time.Second)
		// the two, and the one whose turn is next
		if n := len(p.written()); n < reportQueue || n > reportQueue+reportBurst+3 {
			t.Errorf("%d written in all, want those that there is room for", n)
		}
	})
}

// Ensure that what is reported again is counted, that a job that is preempted over and over has its end reported, and
// what fails to be written is tried again.
func TestAgain(t *testing.T) {
	write(t, func(t *testing.T, p *pen) {
		p.report(of("a", corev1.EventTypeWarning, "Invalid", "no"))
		p.report(of("a", corev1.EventTypeWarning, "Invalid", "no"))
		p.want(t, "a Invalid x1: no", "a Invalid x2: no")
		for i := range 1000 {
			p.report(of("a", corev1.EventTypeNormal, reportedPreempted, fmt.Sprint("for ", i)))
		}
		failed := 0
		p.mu.Lock()
		p.fail = func(*corev1.Event) error {
			if failed++; failed < reportTries {
				return errors.New("no connection")
			}
			return nil
		}
		p.mu.Unlock()
		p.report(of("a", corev1.EventTypeNormal, reportedFinished, "done"))
		time.Sleep(2 * time.Minute)
		if written := p.written(); !slices.Contains(written, "a Finished x1: done") || len(written) > 60 {
			t.Errorf("%d written: %s", len(written), strings.Join(written, "\n"))
		}
	})
}
