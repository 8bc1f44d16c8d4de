package place_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/model/skew"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/place"
)

// granted says on which type jobs are to be; a job that it does not name may be on any.
type granted map[sched.JobID]sched.TypeID

func (g granted) of(j sched.JobID) (sched.TypeID, bool) {
	t, ok := g[j]
	return t, ok
}

// mixedView is a random cluster of three GPU types, some GPUs taken by job 1, and job 0 that accepts some of them.
func mixedView(r *rand.Rand) (*sched.View, *sched.Ledger) {
	var sizes []int
	for range 2 + r.IntN(6) {
		sizes = append(sizes, 1+r.IntN(4))
	}
	v := view(sizes...)
	for i := range v.Nodes {
		v.Nodes[i].Spec.Type = sched.TypeID(r.IntN(3))
	}
	v.Jobs[0].Spec.Types = sched.TypeSet(0).With(sched.TypeID(r.IntN(3))).With(sched.TypeID(r.IntN(3)))
	v.Jobs[0].Spec.Model = []string{"", "vgg16", "resnet50"}[r.IntN(3)]
	l := sched.NewLedger(v)
	var taken []sched.GPUID
	for g := range v.GPUs {
		if r.IntN(3) == 0 {
			taken = append(taken, sched.GPUID(g))
		}
	}
	if len(taken) > 0 {
		l.Book(1, taken)
	}
	return v, l
}

// Ensure that a job is placed as if the granted type were the only one that it accepts, and as ever where nothing, or a
// type that it does not accept, was granted; that Fits says what Place does; and that the View stays as it was.
func TestOneTypeTwin(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 5))
		v, l := mixedView(r)
		n, grant := 1+r.IntN(6), granted{}
		v.Jobs[0].Spec.GPUs = sched.Rigid(n)
		if r.IntN(4) > 0 {
			grant[0] = sched.TypeID(r.IntN(l.Types()))
		}
		for name, by := range placers {
			one := &place.OneType{By: by, Of: grant.of}
			types := v.Jobs[0].Spec.Types
			fits := one.Fits(v, l, 0, n)
			got, ok := one.Place(v, l, 0, n, nil)
			if v.Jobs[0].Spec.Types != types || fits != ok {
				t.Fatalf("seed %d, %s: fits %v, placed %v, types %v, want alike, and %v as before", seed, name, fits,
					ok, v.Jobs[0].Spec.Types, types)
			}
			if typ, given := grant[0]; given && types.Has(typ) {
				v.Jobs[0].Spec.Types = sched.TypeSet(0).With(typ)
			}
			if want, can := by.Place(v, l, 0, n, nil); can != ok || !slices.Equal(got, want) {
				t.Fatalf("seed %d, %s, granted %v: %v %v, want %v %v", seed, name, grant, got, ok, want, can)
			}
			if b, bound := by.(sched.NodeBound); bound {
				want := b.Need(v, l, 0, n)
				if v.Jobs[0].Spec.Types = types; one.Need(v, l, 0, n) != want {
					t.Fatalf("seed %d, %s: need %+v, want %+v", seed, name, one.Need(v, l, 0, n), want)
				}
			}
			v.Jobs[0].Spec.Types = types
		}
	}
}

// Ensure that shape and revision are those of the rule wrapped, and nothing where it has none.
func TestOneTypeForwards(t *testing.T) {
	v := view(4)
	v.Jobs[0].Spec.Model, v.Jobs[0].Spec.GPUs = "vgg16", sched.Rigid(2)
	for _, c := range []struct {
		by    sched.Placer
		shape int32
	}{{place.Count{}, 0}, {place.Skew{Of: skew.Of, Limit: .1}, 1}, {place.Skew{Of: skew.Of, Limit: 1}, 0}} {
		one := &place.OneType{By: c.by, Of: granted{}.of}
		if got := one.Shape(v, 0); got != c.shape || one.Revision() != 0 ||
			one.Need(v, sched.NewLedger(v), 0, 2).One != (c.shape == 1) {
			t.Errorf("%T: shape %d, revision %d, need %+v", c.by, got, one.Revision(),
				one.Need(v, sched.NewLedger(v), 0, 2))
		}
	}
	if one := (&place.OneType{By: revised{}}); one.Revision() != 7 {
		t.Errorf("revision %d, want 7", one.Revision())
	}
}

type revised struct{ place.Count }

func (revised) Revision() uint64 { return 7 }
