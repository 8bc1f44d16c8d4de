package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/memory"
	"github.com/trainyard/trainyard/sched"
)

// tape is the log of a run, batch by batch.
type tape struct {
	header  eventlog.Header
	batches [][]sched.Event
	numbers []uint64 // of the batches: those without events are not in the log
	records []eventlog.Record
}

// readTape reads a log.
func readTape(t testing.TB, log []byte) *tape {
	t.Helper()
	r, err := eventlog.NewReader(bytes.NewReader(log), "log")
	if err != nil {
		t.Fatal(err)
	}
	p := &tape{header: r.Header()}
	for rec, err := range r.Records() {
		if err != nil {
			t.Fatal(err)
		}
		e := rec.Event
		e.GPUs = slices.Clone(e.GPUs)
		if e.Target != nil {
			target := *e.Target
			e.Target = &target
		}
		if n := len(p.numbers); n == 0 || p.numbers[n-1] != rec.Batch {
			p.numbers, p.batches = append(p.numbers, rec.Batch), append(p.batches, nil)
		}
		last := len(p.batches) - 1
		p.batches[last] = append(p.batches[last], e)
		p.records = append(p.records, eventlog.Record{Batch: rec.Batch, Event: e})
	}
	return p
}

// until returns the records of the first n batches, as recovery reads them.
func (p *tape) until(n int) func(func(*eventlog.Record, error) bool) {
	return func(yield func(*eventlog.Record, error) bool) {
		for i := range p.records {
			rec := p.records[i]
			if n < len(p.numbers) && rec.Batch >= p.numbers[n] || !yield(&rec, nil) {
				return
			}
		}
	}
}

// open returns the orders of the first n batches that they do not answer, in the words of orderText: the naive twin.
func (p *tape) open(n int) (orders []string) {
	starts, stops, is := map[string]bool{}, map[string]bool{}, map[sched.NodeID]sched.NodeState{}
	nodes, of, ordered, joined := map[sched.NodeID]sched.NodeState{}, map[sched.NodeID]sched.PoolID{},
		map[sched.PoolID]int{}, map[sched.PoolID]int{}
	for _, batch := range p.batches[:n] {
		for i := range batch {
			e := &batch[i]
			attempt := fmt.Sprintf("job %d attempt %d", e.Job, e.Attempt)
			switch {
			case e.Kind == sched.Ordered && sched.ActionKind(e.Code) == sched.Start:
				starts[attempt] = true
			case e.Kind == sched.Ordered && sched.ActionKind(e.Code) == sched.Stop:
				stops[attempt] = true
				delete(starts, attempt) // the stop says all
			case e.Kind == sched.Ordered && sched.ActionKind(e.Code) == sched.SetNode:
				nodes[e.Node] = sched.NodeState(e.Value)
				if is[e.Node] == sched.NodeState(e.Value) { // someone else has seen to it
					delete(nodes, e.Node)
				}
			case e.Kind == sched.Ordered && sched.ActionKind(e.Code) == sched.Rent:
				ordered[e.Pool] = int(e.Value)
			case e.Kind == sched.NodeJoined:
				delete(nodes, e.Node)
				of[e.Node], is[e.Node] = e.NodeSpec.Pool, sched.NodeUp
				joined[e.NodeSpec.Pool]++
			case (e.Kind == sched.NodeChanged || e.Kind == sched.NodeLeft) && e.Code != int32(sched.NodeDown):
				is[e.Node] = sched.NodeState(e.Code)
				if s, ok := nodes[e.Node]; ok && s == sched.NodeState(e.Code) {
					delete(nodes, e.Node)
				}
				if e.Code == int32(sched.NodeGone) {
					joined[of[e.Node]]--
				}
			case e.Kind == sched.AttemptStarted:
				delete(starts, attempt)
			case e.Kind == sched.AttemptEnded, e.Kind == sched.StartFailed:
				delete(starts, attempt)
				delete(stops, attempt)
			case e.Kind == sched.NodeLeft && e.Code == int32(sched.NodeDown):
				return []string{"unknown"} // attempts end with their node
			}
		}
	}
	for a := range starts {
		orders = append(orders, "start "+a)
	}
	for a := range stops {
		orders = append(orders, "stop "+a)
	}
	for n, s := range nodes {
		orders = append(orders, orderText(&sched.Action{Kind: sched.SetNode, Node: n, State: s}))
	}
	for p, n := range ordered {
		if joined[p] != n {
			orders = append(orders, orderText(&sched.Action{Kind: sched.Rent, Pool: p, Count: int32(n)}))
		}
	}
	slices.Sort(orders)
	return orders
}

// outside returns what the driver said in a batch.
func outside(batch []sched.Event) (events []sched.Event) {
	for i := range batch {
		e := batch[i]
		if !e.Kind.Own() {
			e.Seq = 0
			events = append(events, e)
		}
	}
	return events
}

// rest is a driver that says what is recorded from some batch on, checks that it is asked until then at least, and
// keeps what it is asked to do.
type rest struct {
	batches [][]sched.Event
	now     sched.Time
	merge   bool // Sync says the first batch
	applied []sched.Plan
	sunk    strings.Builder // what came after, as recorded
}

func (d *rest) Sync(context.Context, *sched.View) ([]sched.Event, error) {
	if d.merge && len(d.batches) > 0 {
		return d.take(), nil
	}
	return nil, nil
}

func (d *rest) take() []sched.Event {
	events := outside(d.batches[0])
	if len(events) > 0 {
		d.now = events[0].Time
	}
	d.batches = d.batches[1:]
	return events
}

func (d *rest) Next(_ context.Context, until sched.Time) ([]sched.Event, error) {
	if len(d.batches) == 0 {
		return nil, io.EOF
	}
	events := outside(d.batches[0])
	if len(events) > 0 && events[0].Time > until {
		return nil, fmt.Errorf("asked until %v, want at least %v", until, events[0].Time)
	}
	if len(events) > 0 && events[0].Kind == sched.Ticked && events[0].Time != until {
		return nil, fmt.Errorf("asked until %v, want %v", until, events[0].Time)
	}
	return d.take(), nil
}

func (d *rest) Apply(_ context.Context, p sched.Plan) error {
	p.Actions = slices.Clone(p.Actions)
	d.applied = append(d.applied, p)
	return nil
}

func (d *rest) Now() sched.Time { return d.now }

// Log keeps an event.
func (d *rest) Log(_ *sched.View, e *sched.Event) { d.sunk.Write(eventlog.AppendEvent(nil, 1, e)) }

func orderText(a *sched.Action) string {
	switch a.Kind {
	case sched.SetNode:
		return fmt.Sprintf("set node %d %v", a.Node, a.State)
	case sched.Rent:
		return fmt.Sprintf("rent %d of pool %d", a.Count, a.Pool)
	}
	return fmt.Sprintf("%s job %d attempt %d",
		map[sched.ActionKind]string{sched.Start: "start", sched.Stop: "stop"}[a.Kind], a.Job, a.Attempt)
}

// recorded runs a world and returns its log.
func (w *world) recorded(t *testing.T) []byte {
	t.Helper()
	var log bytes.Buffer
	writer := eventlog.NewWriter(&log, w.header())
	if _, err := w.run(w.decider(), writer); err != nil {
		t.Fatalf("seed %d: %v", w.seed, err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return log.Bytes()
}

// Ensure that a run which is cut after any batch, recovered, and gone on with what the driver said from there on gives
// the rest of the log as it was, and that the orders not answered at the cut are given again: once, and no others.
func TestRecoverGoesOn(t *testing.T) {
	again := 0
	most := seeds(500)
	for seed := range most {
		w := newWorld(seed)
		if seed >= most/5*4 {
			w = newSharing(seed)
		}
		p := readTape(t, w.recorded(t))
		r := rand.New(rand.NewPCG(seed, 5))
		for _, n := range cuts(r, len(p.batches), seed) {
			again += goOn(t, fmt.Sprintf("seed %d cut after %d of %d", seed, n, len(p.batches)), p, w, n,
				r.IntN(2) == 0)
			if t.Failed() {
				return
			}
		}
	}
	if again < 100 {
		t.Errorf("%d orders were given again, want many", again)
	}
}

// cuts returns where to cut: at four places, and in one world of twenty everywhere.
func cuts(r *rand.Rand, batches int, seed uint64) (list []int) {
	if seed%20 == 11 {
		for n := range batches + 1 {
			list = append(list, n)
		}
		return list
	}
	for range 4 {
		list = append(list, r.IntN(batches+1))
	}
	return list
}

func goOn(t *testing.T, name string, p *tape, w *world, n int, merge bool) (again int) {
	dec := w.renting(w.decider())
	s, batch, err := engine.Recover(context.Background(), p.header, p.until(n), dec, engine.ReplayOptions{})
	if err != nil {
		t.Errorf("%s: recover: %v", name, err)
		return 0
	}
	if n > 0 && batch != p.numbers[n-1] {
		t.Errorf("%s: batch %d, want %d", name, batch, p.numbers[n-1])
	}
	if err := sameFold(p, n, s); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if n%2 == 1 {
		s, dec = restored(t, w, s, dec)
	}
	d := &rest{batches: p.batches[n:], now: s.View().Now, merge: merge}
	if err := engine.Run(context.Background(), s, d, dec, engine.Options{Sinks: []eventlog.Sink{d}}); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	var want strings.Builder
	for _, b := range p.batches[n:] {
		for i := range b {
			want.Write(eventlog.AppendEvent(nil, 1, &b[i]))
		}
	}
	if d.sunk.String() != want.String() {
		t.Errorf("%s: the rest differs: %s", name, differAt(want.String(), d.sunk.String()))
	}
	return d.again(t, name, p, n)
}

// restored returns the state made again from what s shows, and a new Decider with the memory of dec.
func restored(t *testing.T, w *world, s *engine.State, dec sched.Decider) (*engine.State, sched.Decider) {
	t.Helper()
	v := *s.View()
	fresh, err := engine.Restore(w.header(), v)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprintf("%+v", shown(fresh.View())), fmt.Sprintf("%+v", shown(&v)); got != want {
		t.Fatalf("seed %d: the view differs: %s", w.seed, differAt(want, got))
	}
	if w.seed%2 == 1 { // its keeper has deleted what is done
		old := v
		old.Jobs = slices.Clone(v.Jobs)
		for i := range old.Jobs {
			if old.Jobs[i].State == sched.Done {
				old.Jobs[i] = sched.Job{}
			}
		}
		if fresh, err = engine.Restore(w.header(), old); err != nil {
			t.Fatal(err)
		}
	}
	next := w.renting(w.decider())
	if err := memory.Save(&v, dec).Load(fresh.View(), next); err != nil {
		t.Fatal(err)
	}
	for i := range v.GPUs { // nothing is shared with the old state
		v.GPUs[i], v.Nodes[0] = sched.GPU{}, sched.Node{}
	}
	for i := range v.Jobs {
		clear(v.Jobs[i].GPUs)
		clear(v.Jobs[i].Target)
	}
	return fresh, next
}

// shown is v with what stands behind pointers.
func shown(v *sched.View) string {
	x := *v
	x.Jobs = slices.Clone(v.Jobs)
	var all []string
	for i := range x.Jobs {
		j := &x.Jobs[i]
		j.Detach()
		free := *j
		free.Paused, free.Cancel, free.Requeued = false, false, false
		all = append(all, fmt.Sprintf("%+v blocked by %d, runs since %v, for others %v", j.Loss(), j.BlockedBy(),
			j.RunSince(v.Now), free.ForOthers(sched.Preempted)))
		if l := j.Later(); l != nil {
			all = append(all, fmt.Sprintf("%+v", *l))
		}
		j.SetLater(nil)
		j.SetLoss(sched.Loss{})
		j.SetBlockedBy(0)
		j.SetRunBefore(0)
		j.SetOwnStop(false)
	}
	return fmt.Sprintf("%+v %v", x, all)
}

// again checks the orders that are not in the log of the rest.
func (d *rest) again(t *testing.T, name string, p *tape, n int) int {
	var given []string
	for i := range d.applied {
		for k := range d.applied[i].Actions {
			given = append(given, orderText(&d.applied[i].Actions[k]))
		}
	}
	for _, b := range p.batches[n:] {
		for i := range b {
			if e := &b[i]; e.Kind == sched.Ordered {
				a := sched.Action{Kind: sched.ActionKind(e.Code), Job: e.Job, Attempt: e.Attempt, Node: e.Node,
					State: sched.NodeState(e.Value), Pool: e.Pool, Count: int32(e.Value)}
				if at := slices.Index(given, orderText(&a)); at >= 0 {
					given = slices.Delete(given, at, at+1)
				} else {
					t.Errorf("%s: %s is logged and not given", name, orderText(&a))
				}
			}
		}
	}
	slices.Sort(given)
	want := p.open(n)
	if p.header.ShareLimit > 0 { // caps and watches are given again as well
		return len(given)
	}
	if len(p.header.Pools) > 0 && d.merge && n < len(p.batches) {
		return len(given) // what joins with Sync answers in part
	}
	upTo := n
	if d.merge && n < len(p.batches) {
		upTo++ // what Sync said answers as well
	}
	if upTo > n {
		answered := outside(p.batches[n])
		want = slices.DeleteFunc(want, func(order string) bool { return answeredBy(order, answered) })
	}
	if !slices.Contains(want, "unknown") && !slices.Equal(given, want) {
		t.Errorf("%s: given again %v, want %v", name, given, want)
	}
	return len(given)
}

// answeredBy reports whether events answer an order, in the words of orderText.
func answeredBy(order string, events []sched.Event) bool {
	return slices.ContainsFunc(events, func(e sched.Event) bool {
		attempt := fmt.Sprintf(" job %d attempt %d", e.Job, e.Attempt)
		switch e.Kind {
		case sched.AttemptStarted:
			return order == "start"+attempt
		case sched.AttemptEnded, sched.StartFailed:
			return strings.HasSuffix(order, attempt)
		case sched.NodeChanged, sched.NodeLeft:
			return order == fmt.Sprintf("set node %d %v", e.Node, sched.NodeState(e.Code))
		}
		return false
	})
}

// sameFold compares the View that the first n batches lead to, whoever decided, with that of s.
func sameFold(p *tape, n int, s *engine.State) error {
	folded, batch, err := engine.Fold(p.header, p.until(n))
	if err != nil {
		return fmt.Errorf("fold: %w", err)
	}
	if n > 0 && batch != p.numbers[n-1] {
		return fmt.Errorf("fold: batch %d, want %d", batch, p.numbers[n-1])
	}
	if got, want := shown(folded.View()), shown(s.View()); got != want {
		return fmt.Errorf("fold: the view differs from that of Recover: %s", differAt(want, got))
	}
	return nil
}

func differAt(want, got string) string {
	at := 0
	for at < len(want) && at < len(got) && want[at] == got[at] {
		at++
	}
	from := max(at-300, 0)
	return fmt.Sprintf("\nwant ...%s\ngot  ...%s", want[from:min(at+300, len(want))], got[from:min(at+300, len(got))])
}
