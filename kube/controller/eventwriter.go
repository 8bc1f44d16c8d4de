package controller

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/record/util"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Bounds of the Events that report. Each costs the API server a millisecond, a fortieth of what the start of a job
// costs: a burst of jobs comes first, and what is reported of it follows.
const (
	reportRate  = 10 // Events in a second, once reportBurst are written
	reportBurst = 50 // Events
	// notes that wait, of each of the two kinds; what is reported beyond them is left out
	reportQueue  = 10_000
	reportTries  = 5               // of a write, reportRetry apart
	reportRetry  = time.Second     //
	queuedAfter  = 5 * time.Second // of a wait nothing is reported if it is over by then
	mostReported = 1000            // bytes of a text: other Events may have no more than 1024
	reportSource = "trainyard"     // who reports
	// Events of one reason about one object in a second, once a burst of 25 is written
	spamRate = float32(1) / (5 * 60)
)

// note is one thing to be reported of an object.
type note struct {
	about  corev1.ObjectReference
	kind   string // EventTypeNormal or EventTypeWarning
	reason string // one word; "" = what waits to be reported of the object's wait is not to be reported any more
	text   string
	at     time.Time
}

// reporter writes Events, one after another, at a rate that leaves the API server to those who have more to do. What is
// wrong, and the ends of jobs, come before all else; each bears the time at which it happened. Its methods may be
// called by anybody, and never wait.
type reporter struct {
	api   client.Writer
	log   *slog.Logger
	pace  flowcontrol.RateLimiter
	like  *record.EventCorrelator // has what is reported again counted
	ready chan struct{}

	mu      sync.Mutex
	first   []note // warnings and ends
	rest    []note
	waits   map[types.UID]note // of jobs that wait: they may not for long
	dropped int                // since it was logged
	last    time.Time          // of a note: no two have the same time, of which their names are made
}

func newReporter(api client.Writer, log *slog.Logger) *reporter {
	apart := func(e *corev1.Event) string { // else what is reported often would keep the end from being reported
		return strings.Join([]string{e.InvolvedObject.Kind, e.InvolvedObject.Namespace, e.InvolvedObject.Name,
			string(e.InvolvedObject.UID), e.Reason}, "/")
	}
	return &reporter{api: api, log: log, pace: flowcontrol.NewTokenBucketRateLimiter(reportRate, reportBurst),
		ready: make(chan struct{}, 1),
		like:  record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{SpamKeyFunc: apart, QPS: spamRate}),
		waits: make(map[types.UID]note)}
}

// say has notes written, in their order as far as their time shows it.
func (t *reporter) report(notes ...note) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range notes {
		if n.at.IsZero() {
			n.at = time.Now()
		}
		if !n.at.After(t.last) {
			n.at = t.last.Add(1)
		}
		t.last = n.at
		n.text = cut(n.text, mostReported)
		t.file(n)
	}
	select {
	case t.ready <- struct{}{}:
	default:
	}
}

// file puts a note where it waits for its turn.
func (t *reporter) file(n note) {
	lane := &t.rest
	switch {
	case n.reason == "":
		delete(t.waits, n.about.UID)
		return
	case n.reason == reportedQueued && time.Since(n.at) < queuedAfter &&
		(len(t.waits) < reportQueue || t.waits[n.about.UID].reason != ""):
		t.waits[n.about.UID] = n
		return
	case n.kind == corev1.EventTypeWarning || n.reason == reportedFinished:
		lane = &t.first
	}
	if len(*lane) == reportQueue {
		t.dropped++
		return
	}
	*lane = append(*lane, n)
}

// next takes the note whose turn it is; ok is false if there is none, and another look is to be taken after a time.
func (t *reporter) next() (n note, ok bool, after time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	after = time.Hour
	var due []note
	for uid, w := range t.waits {
		if left := queuedAfter - time.Since(w.at); left > 0 {
			after = min(after, left)
			continue
		}
		delete(t.waits, uid)
		due = append(due, w)
	}
	slices.SortFunc(due, func(a, b note) int { return a.at.Compare(b.at) })
	for _, w := range due {
		t.file(w)
	}
	lane := &t.first
	if len(t.first) == 0 {
		lane = &t.rest
	}
	if len(*lane) == 0 {
		if t.dropped > 0 {
			t.log.Warn("Events were left out: there were too many at once", "events", t.dropped)
			t.dropped = 0
		}
		return note{}, false, after
	}
	n = (*lane)[0]
	if *lane = (*lane)[1:]; len(*lane) == 0 {
		*lane = nil
	}
	return n, true, 0
}

// run writes what is reported until ctx ends.
func (t *reporter) run(ctx context.Context) {
	for {
		n, ok, after := t.next()
		if !ok {
			timer := time.NewTimer(after)
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-t.ready:
				timer.Stop()
			case <-timer.C:
			}
			continue
		}
		t.write(ctx, n)
	}
}

// write writes one Event, or that it happened again.
func (t *reporter) write(ctx context.Context, n note) {
	at := metav1.NewTime(n.at)
	e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: cmp.Or(n.about.Namespace, metav1.NamespaceDefault),
		Name: util.GenerateEventName(n.about.Name, n.at.UnixNano())},
		InvolvedObject: n.about, Type: n.kind, Reason: n.reason, Message: n.text, FirstTimestamp: at, LastTimestamp: at,
		Count:  1,
		Source: corev1.EventSource{Component: reportSource}, ReportingController: reportSource}
	found, err := t.like.EventCorrelate(e)
	if err != nil || found.Skip || t.pace.Wait(ctx) != nil {
		return
	}
	for range reportTries {
		if err = t.put(ctx, found.Event, found.Patch); err == nil {
			t.like.UpdateState(found.Event)
			return
		}
		if apierrors.ReasonForError(err) != metav1.StatusReasonUnknown && !apierrors.IsTooManyRequests(err) &&
			!apierrors.IsInternalError(err) && !apierrors.IsServerTimeout(err) {
			break // such as that its namespace is about to go
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(reportRetry):
		}
	}
	t.log.Debug("an Event is not taken", "about", n.about.Name, "reason", n.reason, "error", err)
}

// put creates an Event, or where it says what was reported before, counts it. One that is not there any more is made
// again.
func (t *reporter) put(ctx context.Context, e *corev1.Event, patch []byte) error {
	if e.Count > 1 {
		err := t.api.Patch(ctx, e.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, patch))
		if !apierrors.IsNotFound(err) {
			return err
		}
	}
	e.ResourceVersion = ""
	return t.api.Create(ctx, e.DeepCopy())
}

// cut shortens a text to so many bytes, at a letter's end.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
