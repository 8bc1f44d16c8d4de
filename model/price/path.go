package price

import "math"

// State is where a job is: in a phase, of which a share is done, in a configuration.
type State struct {
	Phase  int
	Done   float64 // 0..1
	Config int     // that it runs in; -1 = none
}

// Start is the state of a job that has just arrived.
var Start = State{Config: -1}

// Best returns the path that makes weight x delay + price x cost of the rest of a job least, from its phase on: path[0] is
// for s.Phase. It appends to path[:0]. Of equally good paths it takes the one that stays where it is, else the
// configuration listed first. It takes time O(phases x configurations), because what a change costs does not depend
// on what was before.
//
// Source: specs of BOA, section 3.2.
func (c *Class) Best(price float64, s State, path Path) Path {
	var t table
	return t.best(c, c.weight(), price, s, path)
}

// table is the memory of the dynamic program, used again and again.
type table struct {
	rate  []float64 // of configuration i: value lost per unit of time
	value []float64 // of the best way to be in configuration i at the end of the phase
	from  []int32   // from[e*n+i]: configuration of the phase before, on that way
}

// best is Best for given worths of delay and cost.
func (t *table) best(c *Class, delay, cost float64, s State, path Path) Path {
	n, phases := len(c.Configs), len(c.Times)-s.Phase
	t.begin(c, delay, cost, s)
	for e := 1; e < phases; e++ {
		g, least := t.least()
		from := t.from[e*n : (e+1)*n]
		for i, time := range c.Times[s.Phase+e] {
			stay, change := t.value[i], least+float64(t.rate[i]*c.Restart)
			from[i] = int32(i)
			if change < stay {
				stay, from[i] = change, int32(g)
			}
			t.value[i] = stay + float64(t.rate[i]*time)
		}
	}
	at, _ := t.least()
	path = append(path[:0], make(Path, phases)...)
	for e := phases - 1; e >= 0; e-- {
		path[e] = at
		at = int(t.from[e*n+at])
	}
	return path
}

// begin computes the values at the end of the phase of s.
func (t *table) begin(c *Class, delay, cost float64, s State) {
	n := len(c.Configs)
	t.rate, t.value = resized(t.rate, n), resized(t.value, n)
	t.from = resized(t.from, n*(len(c.Times)-s.Phase))
	for i, k := range c.Configs {
		t.rate[i] = delay + float64(cost*k.perTime())
		time := c.Times[s.Phase][i] * (1 - s.Done)
		if math.IsInf(c.Times[s.Phase][i], 1) {
			time = math.Inf(1)
		}
		if i != s.Config {
			time += c.Restart
		}
		t.value[i] = float64(t.rate[i] * time)
	}
}

// least returns the configuration of least value, and that.
func (t *table) least() (int, float64) {
	at, least := 0, math.Inf(1)
	for i, v := range t.value {
		if v < least {
			at, least = i, v
		}
	}
	return at, least
}

func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
