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

// Best returns the path that makes weight x delay + price x cost of the rest of a job least, from its phase on: path[0]
// is for s.Phase. It appends to path[:0]. Of equally good paths it takes the one that stays where it is, else the
// configuration listed first. It takes time O(phases x configurations), because what a change costs does not depend on
// what was before.
//
// Source: specs of BOA, section 3.2.
func (c *Class) Best(price float64, s State, path Path) Path {
	var t table
	return t.best(c, c.weight(), price, s, path)
}

// table is the memory of the dynamic program, used again and again.
type table struct {
	rate   []float64 // of configuration i: value lost per unit of time
	change []float64 // by changing to configuration i
	value  []float64 // of the best way to be in configuration i at the end of the phase
	from   []int32   // from[e*n+i]: configuration of the phase before, on that way
}

// best is Best for given worths of delay and cost.
func (t *table) best(c *Class, delay, cost float64, s State, path Path) Path {
	n, phases := len(c.Configs), len(c.Times)-s.Phase
	at, least := t.begin(c, delay, cost, s)
	for e := 1; e < phases; e++ {
		at, least = t.step(c.Times[s.Phase+e], t.from[e*n:(e+1)*n], at, least)
	}
	path = append(path[:0], make(Path, phases)...)
	for e := phases - 1; e >= 0; e-- {
		path[e] = at
		at = int(t.from[e*n+at])
	}
	return path
}

// step goes on by a phase: at is the configuration of least value before and after it.
func (t *table) step(times []float64, from []int32, at int, least float64) (int, float64) {
	n := len(times)
	value, rate, change := t.value[:n], t.rate[:n], t.change[:n]
	next, lowest := 0, math.Inf(1)
	for i, time := range times {
		v, f := value[i], i
		if w := least + change[i]; w < v {
			v, f = w, at
		}
		v += float64(rate[i] * time)
		value[i], from[i] = v, int32(f)
		if v < lowest {
			next, lowest = i, v
		}
	}
	return next, lowest
}

// begin computes the values at the end of the phase of s, and returns the configuration of least value, and that.
func (t *table) begin(c *Class, delay, cost float64, s State) (at int, least float64) {
	n := len(c.Configs)
	t.rate, t.value, t.change = resized(t.rate, n), resized(t.value, n), resized(t.change, n)
	t.from = resized(t.from, n*(len(c.Times)-s.Phase))
	least = math.Inf(1)
	for i, k := range c.Configs {
		t.rate[i] = delay + float64(cost*k.perTime())
		t.change[i] = t.rate[i] * c.Restart
		time := c.Times[s.Phase][i]
		if !math.IsInf(time, 1) {
			time *= 1 - s.Done
		}
		t.value[i] = float64(t.rate[i] * time)
		if i != s.Config {
			t.value[i] += t.change[i]
		}
		if t.value[i] < least {
			at, least = i, t.value[i]
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
