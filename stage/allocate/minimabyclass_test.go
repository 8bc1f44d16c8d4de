package allocate

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/trainyard/trainyard/model/elastic"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/order"
)

// Ensure that under every rule the fewest GPUs of higher classes come first: of those who take, none is left without
// while one of a lower class has enough for it; who runs is left without for a higher class only where the rule alone
// leaves it so; no more is given than there is; and nothing changes where all are of one class.
func TestClassesComeFirst(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 5))
		gpus, jobs := 1+r.IntN(8), 1+r.IntN(6)
		v := &sched.View{}
		claims := make([]Claim, jobs)
		for i := range claims {
			least := 1 + r.IntN(3)
			s := make([]float64, least+1+r.IntN(4))
			for k := least; k < len(s); k++ {
				s[k] = float64(k) * (1 - float64(k)/20)
			}
			held := 0
			if r.IntN(2) == 0 && least <= gpus {
				held = least
			}
			claims[i] = Claim{Job: elastic.Job{S: s, Min: least, Max: len(s) - 1}, ID: sched.JobID(i), Held: held,
				Move: 1, Left: float64(1 + r.IntN(100)), rank: i}
			v.Jobs = append(v.Jobs, sched.Job{Spec: &sched.JobSpec{Priority: int32(r.IntN(3))}})
		}
		pollux := &Pollux{PerNode: 4, Restart: noRestart, Seen: &Widest{}}
		for name, rule := range map[string]Rule{"afs-l": AFSL{}, "pollux": pollux} {
			alone := rule.Divide(v, nil, slices.Clone(claims), gpus)
			for _, take := range []bool{false, true} {
				ranked := slices.Clone(claims)
				c := classes{of: order.Classes{}, take: take}
				c.mark(v, rule, ranked, gpus)
				widths := rule.Divide(v, nil, ranked, gpus)
				checkClasses(t, v, ranked, widths, alone, gpus, take)
				if t.Failed() {
					t.Fatalf("seed %d: %s, take %v: %d GPUs to %+v: %v, alone %v", seed, name, take, gpus, ranked,
						widths, alone)
				}
			}
		}
	}
}

func checkClasses(t *testing.T, v *sched.View, claims []Claim, widths, alone []int, gpus int, take bool) {
	t.Helper()
	class := func(i int) int32 { return v.Jobs[claims[i].ID].Spec.Priority }
	one, sum, held := true, 0, 0
	for i := range claims {
		one, sum, held = one && class(i) == class(0), sum+widths[i], held+claims[i].Held
	}
	if one && !slices.Equal(widths, alone) {
		t.Error("all are of one class, want what the rule alone gives")
	}
	if sum > gpus {
		t.Errorf("%d GPUs are given", sum)
	}
	for i := range claims {
		least, _ := claims[i].Least()
		if one || widths[i] > 0 || least > gpus {
			continue
		}
		below := gpus - sum // what it could have of lower classes
		for k := range claims {
			if class(k) < class(i) && (take || claims[k].Held == 0) {
				below += widths[k]
			}
		}
		if below >= least {
			t.Errorf("job %d has nothing, %d GPUs of lower classes would do", i, below)
		}
		if !take && claims[i].Held > 0 && alone[i] > 0 && held <= gpus && onlyHigher(claims, widths, class, i) {
			t.Errorf("job %d runs and gives way to a higher class", i)
		}
	}
}

// onlyHigher reports whether all who have GPUs are of a higher class than claims[i].
func onlyHigher(claims []Claim, widths []int, class func(int) int32, i int) bool {
	for k := range claims {
		if widths[k] > 0 && class(k) <= class(i) {
			return false
		}
	}
	return true
}

func noRestart(string) time.Duration { return 0 }
