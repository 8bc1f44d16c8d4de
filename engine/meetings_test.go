package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
)

// exchanged returns what becomes of random targets of jobs that have random targets already, on GPUs of which limit
// jobs may have one each.
func exchanged(seed uint64, limit int) (string, sched.View) {
	r := rand.New(rand.NewPCG(seed, 9))
	s := NewState(eventlog.Header{})
	v := &s.view
	v.ShareLimit = limit
	v.Nodes = []sched.Node{{Spec: sched.NodeSpec{GPUs: 8, Pool: sched.None}, State: sched.NodeUp}}
	v.GPUs = make([]sched.GPU, 8)
	lay(s)
	random := func(from []int) (set []sched.GPUID) {
		for _, g := range from {
			set = append(set, sched.GPUID(g))
		}
		slices.Sort(set)
		return set
	}
	held := r.Perm(8)
	for range 5 {
		j := sched.Job{Spec: &sched.JobSpec{GPUs: sched.Range{Min: 1, Max: 8, Want: 1}}, State: sched.Waiting}
		n := min(r.IntN(3), len(held))
		j.Target, held = random(held[:n]), held[n:]
		addTenants(s, j.Target, j.Share, false, 1)
		v.Jobs = append(v.Jobs, j)
	}
	x := &run{s: s}
	d := &x.desired
	d.Reset()
	for id := range sched.JobID(5) {
		if r.IntN(3) > 0 {
			d.Give(id, random(r.Perm(8)[:r.IntN(4)]), sched.Reason{})
		}
	}
	x.release(d)
	for i := range d.Jobs {
		if x.exchanged(d, i) {
			x.take(d, i)
		}
	}
	x.keep(d)
	x.recount(d)
	text := ""
	for i := range d.Jobs {
		text += fmt.Sprintln(d.Jobs[i].Job, d.Set(&d.Jobs[i]), x.verdicts[i].why != "", x.verdicts[i].lost,
			x.verdicts[i].keeps)
	}
	return text, *v
}

// Ensure that where no GPU is shared an exchange without counting ends as one that counts tenants does among jobs that
// do not share, and that neither leaves other counts behind.
func TestClaimsAgreeWithCounts(t *testing.T) {
	refused := 0
	for seed := range uint64(5000) {
		got, v := exchanged(seed, 1)
		want, w := exchanged(seed, 2)
		if got != want || !slices.Equal(v.GPUs, w.GPUs) {
			t.Fatalf("seed %d:\n%s%+v\nwant\n%s%+v", seed, got, v.GPUs, want, w.GPUs)
		}
		if strings.Contains(got, "true true") {
			refused++
		}
	}
	if refused < 500 {
		t.Errorf("%d exchanges with a conflict: the worlds say little", refused)
	}
}
