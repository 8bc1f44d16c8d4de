package host

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
)

// bench is one batch that passes through sinks, each of which notes what it finds when its turn comes.
type bench struct {
	ended  map[role]bool
	faults []string
	fails  role // whose EndBatch fails
}

// probe is the sink of a role.
type probe struct {
	*bench

	role role
}

func (p probe) Log(*sched.View, *sched.Event) {}
func (p probe) BeginBatch()                   {}

// facts are what must have been done before a role has its turn. They are said here once more, apart from the order:
// each is what its reason promises.
var mustStandBehind = map[role][]role{
	estimating: {recording}, // may use figures of the batch
	// a file that cannot be written costs no figure and nothing learned
	logging:  {recording, estimating},
	keeping:  {logging},                              // nothing takes effect that the log lacks
	showing:  {keeping},                              // shows what is durable
	feeding:  {keeping, showing},                     // who is woken finds it on the board
	metering: {keeping, showing, feeding, recording}, // publishes figures that can be looked up
}

func (p probe) EndBatch() error {
	for _, before := range mustStandBehind[p.role] {
		if !p.ended[before] {
			p.faults = append(p.faults, fmt.Sprintf("%d has its turn before %d", p.role, before))
		}
	}
	if p.ended[p.role] = true; p.role == p.fails {
		return errors.New("no")
	}
	return nil
}

// pass has a batch pass through sinks arranged by places.
func pass(places []place, fails role) *bench {
	b := &bench{ended: make(map[role]bool), fails: fails}
	sinks := make(map[role][]eventlog.Sink)
	for _, p := range order {
		sinks[p.role] = []eventlog.Sink{probe{b, p.role}}
	}
	for _, s := range arrange(places, sinks, false) {
		if s.(eventlog.Batcher).EndBatch() != nil {
			break
		}
	}
	return b
}

// Ensure that the order keeps what the reasons promise, and that no two places of it can be swapped without breaking
// that.
func TestOrderOfSinks(t *testing.T) {
	const none = role(99)
	if b := pass(order, none); len(b.faults) > 0 || len(b.ended) != len(order) {
		t.Fatalf("%v, %d of %d sinks had their turn", b.faults, len(b.ended), len(order))
	}
	for i := range order {
		for j := range i {
			other := slices.Clone(order)
			other[i], other[j] = other[j], other[i]
			if b := pass(other, none); len(b.faults) == 0 {
				t.Errorf("%s and %s can be swapped: one of them has no reason", order[i].name, order[j].name)
			}
		}
		if order[i].why == "" || int(order[i].role) != i {
			t.Errorf("%s: why %q, place %d of role %d", order[i].name, order[i].why, i, order[i].role)
		}
	}
}

// Ensure that of a batch which the store cannot keep nothing shows, and that its figures and its log are there.
func TestNothingShowsThatIsNotKept(t *testing.T) {
	b := pass(order, keeping)
	for r, want := range map[role]bool{recording: true, estimating: true, logging: true, showing: false, feeding: false,
		metering: false} {
		if b.ended[r] != want {
			t.Errorf("%s had its turn: %v, want %v", order[r].name, b.ended[r], want)
		}
	}
}

// Ensure that only those that ask for the past hear it.
func TestReplayIsNotKeptAgain(t *testing.T) {
	sinks := make(map[role][]eventlog.Sink)
	b := &bench{ended: make(map[role]bool)}
	for _, p := range order {
		sinks[p.role] = []eventlog.Sink{probe{b, p.role}}
	}
	var got []role
	for _, s := range arrange(order, sinks, true) {
		got = append(got, s.(probe).role)
	}
	if want := []role{recording, estimating, showing, feeding}; !slices.Equal(got, want) {
		t.Errorf("roles %v hear what is replayed, want %v", got, want)
	}
}
