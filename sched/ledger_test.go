package sched_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/sched"
)

// naiveLedger answers the questions of a Ledger by counting from scratch. It is the twin of the real one.
type naiveLedger struct {
	view *sched.View
	set  map[sched.JobID][]sched.GPUID
}

func (n *naiveLedger) free(g sched.GPUID) bool { return n.view.Usable(g) && n.tenants(g) == 0 }

func (n *naiveLedger) tenants(g sched.GPUID) (k int) {
	for _, set := range n.set {
		if slices.Contains(set, g) {
			k++
		}
	}
	return k
}

func (n *naiveLedger) gpusOf(id sched.NodeID) (all []sched.GPUID) {
	node := &n.view.Nodes[id]
	for g := node.First; g < node.First+sched.GPUID(node.Spec.GPUs); g++ {
		all = append(all, g)
	}
	return all
}

// on returns how many GPUs of a node are free and how many usable.
func (n *naiveLedger) on(id sched.NodeID) (free, usable int) {
	for _, g := range n.gpusOf(id) {
		if n.view.Usable(g) {
			usable++
			if n.tenants(g) == 0 {
				free++
			}
		}
	}
	return free, usable
}

// left returns the CPUs of a node that its tenants leave over.
func (n *naiveLedger) left(id sched.NodeID) float32 {
	cpus := n.view.Nodes[id].Spec.CPUs
	for j, set := range n.set {
		for _, g := range set {
			if n.view.GPUs[g].Node == id {
				cpus -= n.view.Jobs[j].Spec.CPUs
			}
		}
	}
	return cpus
}

// describe is everything a ledger says about itself.
func describe(l *sched.Ledger, v *sched.View) string {
	var b strings.Builder
	fmt.Fprintln(&b, "free", l.Free(0), l.Free(sched.TypeSet(0).With(1)), l.Free(sched.TypeSet(0).With(0).With(2)))
	for t := range sched.TypeID(l.Types()) {
		fmt.Fprintln(&b, "type", t, l.FreeOf(t), l.Usable(t), l.Widest(t), l.MaxFree(t))
		for f := range 6 {
			fmt.Fprintln(&b, "bucket", f, l.NodesWith(t, f), l.NodesOf(t, f),
				walkNodes(v, func(from sched.NodeID) sched.NodeID {
					return l.NextNode(t, f, from)
				}))
		}
		fmt.Fprintln(&b, "up", walkNodes(v, func(from sched.NodeID) sched.NodeID { return l.NextUp(t, from) }))
		fmt.Fprintln(&b, "any", l.TakeAny(t, l.FreeOf(t), nil), l.TakeAny(t, l.FreeOf(t)/2, nil))
	}
	for id := range v.Nodes {
		n := sched.NodeID(id)
		fmt.Fprintln(&b, "node", n, l.FreeOn(n), l.UsableOn(n), l.TakeFrom(n, l.FreeOn(n), nil), l.Room(n, 0, 1),
			l.Room(n, 1, 2))
	}
	for g := range v.GPUs {
		fmt.Fprint(&b, l.IsFree(sched.GPUID(g)), l.Untaken([]sched.GPUID{sched.GPUID(g)}), l.Owner(sched.GPUID(g)),
			l.Tenants(sched.GPUID(g)), " ")
	}
	holders := slices.Sorted(slices.Values(l.Holders()))
	fmt.Fprintln(&b, "holders", holders)
	for _, j := range holders {
		fmt.Fprintln(&b, j, l.Set(j))
	}
	return b.String()
}

func walkNodes(v *sched.View, next func(sched.NodeID) sched.NodeID) (all []sched.NodeID) {
	for id := next(0); id != sched.None; id = next(id + 1) {
		all = append(all, id)
	}
	return all
}

// describe says the same of the twin.
func (n *naiveLedger) describe() string {
	var b strings.Builder
	v, types := n.view, 0
	for i := range v.Nodes {
		types = max(types, int(v.Nodes[i].Spec.Type)+1)
	}
	nodes := func(keep func(t sched.TypeID, free, usable int, up bool) bool) (all []sched.NodeID) {
		for id := range v.Nodes {
			f, u := n.on(sched.NodeID(id))
			if keep(v.Nodes[id].Spec.Type, f, u, v.Nodes[id].State == sched.NodeUp) {
				all = append(all, sched.NodeID(id))
			}
		}
		return all
	}
	freeOf := func(set sched.TypeSet) (all []sched.GPUID) {
		for g := range v.GPUs {
			if n.free(sched.GPUID(g)) && (types == 1 || set.Has(v.Nodes[v.GPUs[g].Node].Spec.Type)) {
				all = append(all, sched.GPUID(g))
			}
		}
		return all
	}
	fmt.Fprintln(&b, "free", len(freeOf(0)), len(freeOf(sched.TypeSet(0).With(1))),
		len(freeOf(sched.TypeSet(0).With(0).With(2))))
	for t := range sched.TypeID(types) {
		usable, widest, most := 0, 0, 0
		for _, id := range nodes(func(x sched.TypeID, _, _ int, up bool) bool { return x == t && up }) {
			f, u := n.on(id)
			usable, widest, most = usable+u, max(widest, u), max(most, f)
		}
		mine := freeOf(sched.TypeSet(0).With(t))
		fmt.Fprintln(&b, "type", t, len(mine), usable, widest, most)
		for k := range 6 {
			with := nodes(func(x sched.TypeID, f, _ int, up bool) bool { return x == t && up && f == k })
			of := nodes(func(x sched.TypeID, _, u int, up bool) bool { return x == t && up && u == k })
			fmt.Fprintln(&b, "bucket", k, len(with), len(of), with)
		}
		fmt.Fprintln(&b, "up", nodes(func(x sched.TypeID, _, _ int, up bool) bool { return x == t && up }))
		fmt.Fprintln(&b, "any", mine, mine[:len(mine)/2])
	}
	counted := slices.ContainsFunc(v.Nodes, func(x sched.Node) bool { return x.Spec.CPUs > 0 })
	for id := range v.Nodes {
		f, u := n.on(sched.NodeID(id))
		var free []sched.GPUID
		for _, g := range n.gpusOf(sched.NodeID(id)) {
			if n.free(g) {
				free = append(free, g)
			}
		}
		room := func(j, k int) bool {
			return !counted || v.Nodes[id].Spec.CPUs == 0 || n.left(sched.NodeID(id)) >= float32(k)*v.Jobs[j].Spec.CPUs
		}
		fmt.Fprintln(&b, "node", id, f, u, free, room(0, 1), room(1, 2))
	}
	for g := range v.GPUs {
		owner, all := sched.JobID(sched.None), []sched.JobID{}
		for j, set := range n.set {
			if slices.Contains(set, sched.GPUID(g)) {
				owner, all = j, append(all, j)
			}
		}
		slices.Sort(all)
		if n.tenants(sched.GPUID(g)) != 1 {
			owner = sched.None
		}
		fmt.Fprint(&b, n.free(sched.GPUID(g)), n.tenants(sched.GPUID(g)) == 0, owner, all, " ")
	}
	var holders []sched.JobID
	for j := range n.set {
		holders = append(holders, j)
	}
	slices.Sort(holders)
	fmt.Fprintln(&b, "holders", holders)
	for _, j := range holders {
		fmt.Fprintln(&b, j, n.set[j])
	}
	return b.String()
}

// newView draws a cluster with nodes in every state, mixed types and quarantined GPUs, and jobs that may hold targets.
func newView(r *rand.Rand) *sched.View {
	v := &sched.View{ShareLimit: 1 + r.IntN(4)*r.IntN(2)}
	counted := r.IntN(2) == 0
	for i := range 1 + r.IntN(6) {
		n := sched.Node{Spec: sched.NodeSpec{GPUs: 1 + r.IntN(4), Type: sched.TypeID(r.IntN(1 + r.IntN(3)))},
			First: sched.GPUID(len(v.GPUs))}
		if counted && r.IntN(3) > 0 {
			n.Spec.CPUs = float32(1 + r.IntN(8))
		}
		n.State = drawState(r)
		for range n.Spec.GPUs {
			v.GPUs = append(v.GPUs, sched.GPU{Node: sched.NodeID(i), Quarantined: r.IntN(8) == 7})
		}
		v.Nodes = append(v.Nodes, n)
	}
	for range 8 {
		v.Jobs = append(v.Jobs, sched.Job{Spec: &sched.JobSpec{CPUs: float32(r.IntN(3))}})
	}
	return v
}

func drawState(r *rand.Rand) sched.NodeState {
	if r.IntN(4) > 0 {
		return sched.NodeUp
	}
	return sched.NodeState(r.IntN(5))
}

// Ensure that the ledger says what counting from scratch says, after every step of random histories of bookings,
// releases, marks, undos, commits, changes of nodes and GPUs, and rebuilds.
func TestLedgerAgreesWithCounting(t *testing.T) {
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 2))
		v := newView(r)
		real, twin := sched.NewLedger(v), &naiveLedger{v, map[sched.JobID][]sched.GPUID{}}
		type point struct {
			mark int
			set  map[sched.JobID][]sched.GPUID
		}
		var marks []point
		var done []string
		for range 40 {
			j := sched.JobID(r.IntN(len(v.Jobs)))
			switch op := r.IntN(12); {
			case op < 4 && twin.set[j] == nil:
				var set []sched.GPUID
				for g := range v.GPUs {
					if (twin.free(sched.GPUID(g)) || twin.tenants(sched.GPUID(g)) > 0 &&
						twin.tenants(sched.GPUID(g)) < v.ShareLimit) && r.IntN(3) == 0 {
						set = append(set, sched.GPUID(g))
					}
				}
				if len(set) == 0 {
					continue
				}
				done = append(done, fmt.Sprint("book ", j, set))
				real.Book(j, set)
				twin.set[j] = set
			case op < 7 && twin.set[j] != nil:
				done = append(done, fmt.Sprint("release ", j))
				if got := real.Release(j); !slices.Equal(got, twin.set[j]) {
					t.Fatalf("seed %d: %v: released %v", seed, done, got)
				}
				delete(twin.set, j)
			case op == 7:
				done = append(done, "mark")
				set := map[sched.JobID][]sched.GPUID{}
				for j, s := range twin.set {
					set[j] = s
				}
				marks = append(marks, point{real.Mark(), set})
			case op == 8 && len(marks) > 0:
				k := r.IntN(len(marks))
				done = append(done, fmt.Sprint("undo ", k))
				real.Undo(marks[k].mark)
				twin.set, marks = marks[k].set, marks[:k]
			case op == 9:
				done = append(done, "commit")
				real.Commit()
				marks = nil
			case op == 10:
				n := sched.NodeID(r.IntN(len(v.Nodes)))
				v.Nodes[n].State = drawState(r)
				g := v.Nodes[n].First
				v.GPUs[g].Quarantined = r.IntN(3) == 2
				done = append(done, fmt.Sprint("refresh ", n, v.Nodes[n].State, v.GPUs[g].Quarantined))
				if !real.Refresh(n) {
					t.Fatalf("seed %d: %v: the node is not known", seed, done)
				}
			case op == 11:
				done = append(done, "rebuild")
				for j := range v.Jobs {
					v.Jobs[j].Target = twin.set[sched.JobID(j)]
				}
				real.Rebuild()
				marks = nil
			}
			if got, want := describe(real, v), twin.describe(); got != want {
				t.Fatalf("seed %d: %s\nledger:\n%s\ncounted:\n%s", seed, strings.Join(done, "; "), got, want)
			}
		}
	}
}

// Ensure that misuse of the ledger panics instead of corrupting it.
func TestLedgerPanics(t *testing.T) {
	for name, misuse := range map[string]func(*sched.Ledger){
		"books twice":      func(l *sched.Ledger) { l.Book(0, []sched.GPUID{0}); l.Book(0, []sched.GPUID{1}) },
		"releases nothing": func(l *sched.Ledger) { l.Book(1, []sched.GPUID{0}); l.Release(0) },
	} {
		t.Run(name, func(t *testing.T) {
			v := &sched.View{Nodes: []sched.Node{{Spec: sched.NodeSpec{GPUs: 2}}}, GPUs: make([]sched.GPU, 2),
				Jobs: []sched.Job{{Spec: &sched.JobSpec{}}, {Spec: &sched.JobSpec{}}}}
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			misuse(sched.NewLedger(v))
		})
	}
}

// Ensure that a booked-out and emptied ledger allocates nothing on the next round of the same work.
func TestLedgerAllocatesNothing(t *testing.T) {
	v := &sched.View{Nodes: []sched.Node{{Spec: sched.NodeSpec{GPUs: 4}}}, GPUs: make([]sched.GPU, 4),
		Jobs: []sched.Job{{Spec: &sched.JobSpec{}}}}
	l, buf := sched.NewLedger(v), make([]sched.GPUID, 0, 4)
	if n := testing.AllocsPerRun(100, func() {
		m := l.Mark()
		l.Book(0, l.TakeAny(0, 3, buf))
		l.Undo(m)
		l.Book(0, l.TakeFrom(0, 2, buf))
		l.Release(0)
		l.Commit()
	}); n > 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// Ensure that GPUs which attempts have yet to leave are taken last: those that are only to be left by this very
// decision as any others.
func TestTakeLeavesTheLeavingAlone(t *testing.T) {
	v := &sched.View{GPUs: make([]sched.GPU, 8)}
	for n := range 2 {
		v.Nodes = append(v.Nodes, sched.Node{Spec: sched.NodeSpec{GPUs: 4}, First: sched.GPUID(4 * n)})
	}
	for g := range v.GPUs {
		v.GPUs[g].Node = sched.NodeID(g / 4)
	}
	v.GPUs[0].Holders, v.GPUs[5].Holders = 1, 1 // stopping since an earlier decision
	v.GPUs[1].Holders, v.GPUs[1].Targets = 1, 1 // running
	l := sched.NewLedger(v)
	for k, want := range []string{"[]", "[1]", "[1 2]", "[1 2 3]", "[0 1 2 3]"} {
		if got := fmt.Sprint(l.TakeFrom(0, k, nil)); got != want {
			t.Errorf("%d of a node: %s, want %s", k, got, want)
		}
	}
	for k, want := range map[int]string{3: "[9 1 2 3]", 4: "[9 1 2 3 4]", 6: "[9 1 2 3 4 6 7]", 7: "[9 0 1 2 3 4 6 7]",
		8: "[9 0 1 2 3 4 5 6 7]"} {
		if got := fmt.Sprint(l.TakeAny(0, k, []sched.GPUID{9})); got != want {
			t.Errorf("%d of all: %s, want %s", k, got, want)
		}
	}
}

// Ensure that the ledger names every node whose free GPUs changed since it was last asked, and says so where it cannot
// know.
func TestLedgerChanges(t *testing.T) {
	v := &sched.View{Jobs: []sched.Job{{Spec: &sched.JobSpec{}}}}
	for n := range 3 {
		v.Nodes = append(v.Nodes, sched.Node{Spec: sched.NodeSpec{GPUs: 1}, First: sched.GPUID(n)})
		v.GPUs = append(v.GPUs, sched.GPU{Node: sched.NodeID(n)})
	}
	l := sched.NewLedger(v)
	ask := func(from int, wantKnown bool, want ...sched.NodeID) int {
		t.Helper()
		nodes, next, known := l.Changes(from)
		if known != wantKnown || !slices.Equal(nodes, want) {
			t.Errorf("changes %v, known %v, want %v, %v", nodes, known, want, wantKnown)
		}
		return next
	}
	at := ask(0, false)
	ask(at, true)
	l.Book(0, []sched.GPUID{0, 2})
	ask(at, true, 0, 2)
	next := ask(at, true, 0, 2)
	l.Release(0)
	v.Nodes[1].State = sched.NodeDraining
	l.Refresh(1)
	ask(next, true, 0, 2, 1)
	ask(at, true, 0, 2, 0, 2, 1)
	l.Rebuild()
	ask(at, false)
	at = ask(ask(0, false), true)
	for range 5000 {
		l.Book(0, []sched.GPUID{0})
		l.Release(0)
	}
	ask(at, false)
}
