package attempts

import (
	"fmt"
	"time"

	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/sched"
)

// What keeps an attempt from starting is reported once it has done so for a while: most of what is in the way goes by
// itself. A node takes longer to make images and volumes ready.
const (
	slowAfter  = 5 * time.Second
	readyAfter = 30 * time.Second
)

// delay is what keeps an attempt from starting.
type delay struct {
	kind     string // one word; "": nothing that is known
	since    time.Time
	reported string // the kind that was reported last
}

// delay reports what keeps an attempt from starting, where that is of another kind than what was reported last.
func (l *look) delay(ranks []podStatus) {
	if l.as.o.Delayed == nil || !l.a.begun {
		return
	}
	kind, text := l.hindrance(ranks)
	after := slowAfter
	switch kind {
	case "":
		after = 0
	case waitsReady:
		after = readyAfter
	}
	d, key := &l.a.delay, observer.KeyOfJob(l.a.Key)
	if now := time.Now(); kind != d.kind {
		d.kind, d.since = kind, now
		time.AfterFunc(after, func() { l.as.o.Look(key) })
	}
	if kind == d.reported || time.Since(d.since) < after {
		return
	}
	d.reported = kind
	l.as.o.Delayed(l.a.Job, text)
	l.seen.Report(sched.Event{Kind: sched.Ticked}) // nothing happened, and it is to be made durable
}

// hindrance returns what keeps an attempt from starting, for people, and of what kind it is.
func (l *look) hindrance(ranks []podStatus) (kind, text string) {
	if l.a.Progress().Claimed.IsZero() {
		return "Claims", "its claims, or its service, are not made yet"
	}
	if l.a.waits {
		return "Devices", l.notFree()
	}
	for _, s := range ranks {
		if !hasRun(s) && s.waits != "" {
			return s.waits, s.text
		}
	}
	return "", ""
}

// notFree says which claim has a device that an attempt waits for.
func (l *look) notFree() string {
	if claim, held := l.Held(l.a.Attempt); held {
		return fmt.Sprintf("its devices are not free: claim %s has one", claim)
	}
	return "its devices are not free"
}
