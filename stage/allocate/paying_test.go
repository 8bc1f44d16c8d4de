package allocate

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/model/elastic"
	"github.com/trainyard/trainyard/sched"
)

// scripted divides as its script says.
type scripted []int

func (s scripted) Divide(_ *sched.View, dst []int, _ []Claim, _ int) []int { return append(dst, s...) }

// Ensure that a job is resized only where that pays for its restart, or where another needs what it has.
func TestPaying(t *testing.T) {
	s := []float64{0, 1, 1.5, 1.6, 1.65} // at 1 to 4 GPUs
	held := func(k int, move float64) Claim {
		return Claim{Job: elastic.Job{S: s, Min: 1, Max: 4}, Held: k, Stay: s[k], Move: move}
	}
	narrow := held(3, .9)
	narrow.Max = 2
	for _, c := range []struct {
		name   string
		claims []Claim
		rule   scripted
		want   []int
	}{
		{"50 % more for 10 %", []Claim{held(1, .9)}, scripted{2}, []int{2}},
		{"7 % more for 10 %", []Claim{held(2, .9)}, scripted{3}, []int{2}},
		{"7 % more for nothing", []Claim{held(2, 1)}, scripted{3}, []int{3}},
		{"one GPU less for no one", []Claim{held(4, .9)}, scripted{3}, []int{4}},
		{"one GPU less for one who waits", []Claim{held(4, .9), held(0, .9)}, scripted{3, 1}, []int{3, 1}},
		{"one GPU less for a growth that does not pay", []Claim{held(2, .9), held(2, .9)}, scripted{3, 1}, []int{2, 2}},
		{"one GPU less for a growth that pays", []Claim{held(1, .9), held(3, .9)}, scripted{2, 2}, []int{2, 2}},
		{"two are given up, room for one", []Claim{held(2, .9), held(2, .9), held(0, .9)}, scripted{1, 1, 1},
			[]int{2, 1, 1}},
		{"all taken away", []Claim{held(2, .9)}, scripted{0}, []int{0}},
		{"more than it may have by now", []Claim{narrow}, scripted{2}, []int{2}},
	} {
		if got := (Paying{c.rule}).Divide(nil, nil, slices.Clone(c.claims), 4); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// Ensure, on random claims, that never more GPUs are given than there are, that no one who was given some is left
// without, and that every change that is left pays, or gives what is needed.
func TestPayingRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		gpus := 1 + r.IntN(12)
		claims, rule, left := []Claim(nil), scripted(nil), gpus
		free := gpus
		for range 1 + r.IntN(5) {
			c := Claim{Job: elastic.Job{S: make([]float64, gpus+1), Min: 1, Max: gpus}, Move: 1 - .3*r.Float64()}
			for k := 1; k <= gpus; k++ {
				c.S[k] = c.S[k-1] + r.Float64()*r.Float64()
			}
			c.Held = r.IntN(left + 1)
			left -= c.Held
			c.Stay = c.S[c.Held]
			w := r.IntN(free + 1)
			free -= w
			claims, rule = append(claims, c), append(rule, w)
		}
		got := Paying{rule}.Divide(nil, nil, slices.Clone(claims), gpus)
		sum := 0
		for _, k := range got {
			sum += k
		}
		if sum > gpus {
			t.Fatalf("%d GPUs of %d: %v of %v", sum, gpus, got, rule)
		}
		for i := range got {
			c := &claims[i]
			switch {
			case (got[i] == 0) != (rule[i] == 0), got[i] != rule[i] && got[i] != c.Held:
				t.Fatalf("%v of %v", got, rule)
			case got[i] > c.Held && c.Held > 0 && !c.pays(got[i]):
				t.Fatalf("claim %d grows from %d to %d for nothing: %v", i, c.Held, got[i], rule)
			case got[i] > 0 && got[i] < c.Held && !c.pays(got[i]) && gpus-sum >= c.Held-got[i]:
				t.Fatalf("claim %d is shrunk from %d to %d with %d free: %v", i, c.Held, got[i], gpus-sum, rule)
			}
		}
	}
}
