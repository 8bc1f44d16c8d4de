package driver

import (
	"fmt"
	"time"

	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/sched"
)

// What keeps an attempt from starting is told once it has done so for a while: most of what is in the way goes by itself. To make images
// and volumes ready takes a node longer.
const (
	slowAfter  = 5 * time.Second
	readyAfter = 30 * time.Second
)

// delay is what keeps an attempt from starting.
type delay struct {
	kind  string // one word; "" = nothing that is known
	since time.Time
	told  string // the kind that was told last
}

// mindDelay tells what keeps an attempt from starting, where that is of another kind than what was told last.
func (d *Driver) mindDelay(a *attempt, ranks []sight) {
	if d.o.Delayed == nil || !a.begun {
		return
	}
	kind, text := d.hindrance(a, ranks)
	after := slowAfter
	switch kind {
	case "":
		after = 0
	case waitsReady:
		after = readyAfter
	}
	if now := time.Now(); kind != a.delay.kind {
		a.delay.kind, a.delay.since = kind, now
		time.AfterFunc(after, func() { d.o.Queue.Push(observer.KeyOfJob(a.key)) })
	}
	if kind == a.delay.told || time.Since(a.delay.since) < after {
		return
	}
	a.delay.told = kind
	d.o.Delayed(a.id, text)
	d.tell(sched.Event{Kind: sched.Ticked}) // nothing happened, and it is to be made durable
}

// hindrance returns what keeps an attempt from starting, for people, and of what kind it is.
func (d *Driver) hindrance(a *attempt, ranks []sight) (kind, text string) {
	a.mu.Lock()
	claimed := !a.claimed.IsZero()
	a.mu.Unlock()
	if !claimed {
		return "Claims", "its claims, or its service, are not made yet"
	}
	if a.waits {
		return "Devices", d.notFree(a)
	}
	for _, s := range ranks {
		if !hasRun(s) && s.waits != "" {
			return s.waits, s.text
		}
	}
	return "", ""
}

// notFree says who has a device that an attempt waits for.
func (d *Driver) notFree(a *attempt) string {
	if h, held := d.heldBy(a); held {
		return fmt.Sprintf("its devices are not free: claim %s has one", h.Claim)
	}
	return "its devices are not free"
}
