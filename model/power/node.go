package power

import (
	"math"
	"slices"
	"sort"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// A node of 8 V100s, by a least-squares fit of the Fan-Weber-Barroso shape to the ten sets of tables 1 to 4 of the EaCO
// paper: idle + scale (2u - u^exponent). Its mean error there is 2.2 %, its worst 69 W. The idle power is what the fit
// extrapolates to; the paper gives none.
const (
	FittedIdleW    sched.Watts = 650.4
	FittedScaleW   sched.Watts = 1310.9
	FittedExponent float64     = 1.550
)

// Node is the power of a node. Use of a GPU is the share of time in which a kernel runs on it, 0..1.
type Node struct {
	Idle  sched.Watts // with no GPU in use
	Sleep sched.Watts // asleep
	Wake  time.Duration

	gpus  int
	full  sched.Watts // beyond idle with all GPUs in use
	curve sched.PowerCurve
}

// Of returns the power of a node of a valid specification, of which it keeps the points of the curve.
func Of(s *sched.NodeSpec) Node {
	n := Node{Idle: s.IdleW, Sleep: s.SleepW, Wake: s.Wake, gpus: s.GPUs, curve: s.Curve}
	switch {
	case s.Curve.None():
		n.full = s.BusyGPUW * sched.Watts(s.GPUs)
	case len(s.Curve.Points) > 0:
		n.full = s.Curve.Points[len(s.Curve.Points)-1].Watts - n.Idle
	default:
		n.full = s.Curve.Scale
	}
	return n
}

// At returns the power at mean use u of the GPUs; u is taken to be in 0..1.
func (n *Node) At(u float64) sched.Watts { return n.Idle + n.busy(u) }

// busy returns the power beyond idle at mean use u.
func (n *Node) busy(u float64) sched.Watts {
	u = min(max(u, 0), 1)
	switch points := n.curve.Points; {
	case n.curve.None():
		return sched.Watts(u) * n.full
	case len(points) > 0:
		i := sort.Search(len(points)-1, func(i int) bool { return points[i+1].Use >= u })
		p, q := points[i], points[i+1]
		return p.Watts - n.Idle + (q.Watts-p.Watts)*sched.Watts((u-p.Use)/(q.Use-p.Use))
	}
	return n.curve.Scale * sched.Watts(2*u-math.Pow(u, n.curve.Exponent))
}

// GPU returns what each GPU adds to the idle node at mean use u.
func (n *Node) GPU(u float64) sched.Watts { return n.busy(u) / sched.Watts(n.gpus) }

// Tenant is a job on a node.
type Tenant struct {
	GPUs float64 // GPUs of the node that it holds
	Own  float64 // of them, those that are its own, one of k tenants counting 1/k
	Part float64 // of them, those that are its own by use, k tenants of one use counting 1/k
	Use  float64 // mean use of them alone, 0..1
	Cap  float64 // its power under its cap over that without, 0..1; 1 = no cap
}

// Draw is the power of a node and who answers for it. Total = Idle + what is charged to the tenants, which Node.Draw
// returns, so that energies of jobs, idle and sleeping nodes add up to the meter.
type Draw struct {
	Total sched.Watts
	Idle  sched.Watts // of the GPUs that no one holds
}

// Draw splits the power of a node that is up among its tenants and appends what each answers for to dst, in their
// order. use is the mean over all GPUs of the node of min(1, sum of the uses of the jobs on it); metered is the power
// as measured, 0 = unknown. The rule:
//
//   - Power beyond idle goes by solo-power shares: what each tenant would draw beyond idle if it were alone on the
//     node, under its cap. Without a meter that power is the model's at use, times the mean of the caps' factors by
//     GPUs in use.
//   - Idle power goes by GPUs: each carries an equal part, which its tenants share evenly, and no one if it has none.
//   - Metered power beyond idle where the model expects none goes by GPUs, the tenants of one by their use, and to no
//     one if there is no tenant.
func (n *Node) Draw(use float64, tenants []Tenant, metered sched.Watts, dst []sched.Watts) ([]sched.Watts, Draw) {
	from := len(dst)
	dst = slices.Grow(dst, len(tenants))
	solo, inUse, capped, own, part := sched.Watts(0), 0.0, 0.0, 0.0, 0.0
	for i := range tenants {
		t := &tenants[i]
		w := n.busy(t.GPUs*t.Use/float64(n.gpus)) * sched.Watts(t.Cap)
		dst = append(dst, w)
		solo += w
		inUse += t.GPUs * t.Use
		capped += t.GPUs * t.Use * t.Cap
		own += t.Own
		part += t.Part
	}
	idle, busy := n.Idle, sched.Watts(0)
	if inUse > 0 {
		busy = n.busy(use) * sched.Watts(capped/inUse)
	}
	if metered > 0 {
		idle = min(n.Idle, metered)
		busy = metered - idle
	}
	charged := sched.Watts(0)
	for i := range tenants {
		w := &dst[from+i]
		switch {
		case solo > 0:
			*w *= busy / solo
		default:
			*w = busy * sched.Watts(tenants[i].Part/part)
		}
		*w += idle * sched.Watts(tenants[i].Own/float64(n.gpus))
		charged += *w
	}
	if len(tenants) == 0 {
		return dst, Draw{Total: idle + busy, Idle: idle + busy}
	}
	free := max(idle*sched.Watts(1-own/float64(n.gpus)), 0)
	return dst, Draw{Total: charged + free, Idle: free}
}
