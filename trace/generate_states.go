package trace

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// State is a way jobs end: the share of jobs that do, and of all GPU time they take. The shares of each kind add up
// to 1.
type State struct {
	Name       string
	Jobs, Time float64
}

// endings draws how jobs end. Durations are drawn first, so that each width keeps its law; the state then depends on
// whether a job is heavy: whether its GPU time is above a cut beyond which nine tenths of all GPU time lie. With eps
// the share of heavy jobs and tau that of their GPU time, the probabilities of a state among heavy and light jobs, h
// and l, are what gives its shares of jobs and of GPU time:
//
//	eps h + (1-eps) l = Jobs
//	tau h + (1-tau) l = Time
//
// So every state has short jobs and long ones, and failures cost what they cost in the published shares.
type endings struct {
	cut          float64 // GPU-seconds
	light, heavy picker
}

// heavyTime is the share of GPU time that heavy jobs have.
const heavyTime = 0.9

func newEndings(g Generator) (endings, error) {
	if len(g.States) == 0 {
		return endings{}, nil
	}
	jobs, time := 0.0, 0.0
	for i, s := range g.States {
		if !printable(s.Name) || !(s.Jobs > 0 && s.Jobs <= 1) || !(s.Time >= 0 && s.Time <= 1) {
			return endings{}, fmt.Errorf("state %d is %q with shares %v, %v, want a name, a share of jobs above 0 to "+
				"1, of GPU time 0 to 1",
				i, clip(s.Name), s.Jobs, s.Time)
		}
		jobs, time = jobs+s.Jobs, time+s.Time
	}
	const rounding = .005 // published shares are rounded
	if math.Abs(jobs-1) > rounding || math.Abs(time-1) > rounding {
		return endings{}, fmt.Errorf("shares of states add up to %.4g of jobs, %.4g of GPU time, want 1", jobs, time)
	}
	e := endings{cut: g.cut()}
	eps, tau := g.above(e.cut)
	light, heavy := make([]float64, len(g.States)), make([]float64, len(g.States))
	for i, s := range g.States {
		p, q := s.Jobs/jobs, s.Time/time
		light[i] = (p*tau - q*eps) / (tau - eps)
		heavy[i] = (q*(1-eps) - p*(1-tau)) / (tau - eps)
		if !(light[i] >= 0 && heavy[i] >= 0) {
			return endings{}, fmt.Errorf("state %d is %q with shares %v of jobs, %v of GPU time, which these "+
				"durations cannot have: "+
				"%.3g of jobs have %.3g of GPU time", i, clip(s.Name), s.Jobs, s.Time, eps, tau)
		}
	}
	e.light = newPicker(len(light), func(i int) float64 { return light[i] })
	e.heavy = newPicker(len(heavy), func(i int) float64 { return heavy[i] })
	return e, nil
}

// pick draws the state of a job of so many GPU-seconds.
func (e *endings) pick(r *rand.Rand, work float64) int {
	if work > e.cut {
		return e.heavy.pick(r)
	}
	return e.light.pick(r)
}

// cut halves the interval of the logarithm of GPU time until heavy jobs have heavyTime of all.
func (g Generator) cut() float64 {
	low, high := math.Log(1e-6), math.Log(MaxGPUs*MaxTime.Seconds())
	for range 60 {
		mid := (low + high) / 2
		if _, time := g.above(math.Exp(mid)); time > heavyTime {
			low = mid
		} else {
			high = mid
		}
	}
	return math.Exp(low)
}

// above returns the share of jobs with more GPU-seconds than work, and the share of all GPU time they have.
func (g Generator) above(work float64) (jobs, time float64) {
	shares, all := 0.0, 0.0
	for _, w := range g.mix() {
		share, seconds := w.Durations.Above(work / float64(w.GPUs))
		jobs += w.Share * share
		time += w.Share * float64(w.GPUs) * seconds
		shares += w.Share
		all += w.Share * float64(w.GPUs) * w.Durations.Mean()
	}
	return jobs / shares, time / all
}
