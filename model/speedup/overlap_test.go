package speedup

import (
	"math"
	"math/rand/v2"
	"testing"
)

// timingsOf are steps that the model takes on nodes of 4 GPUs.
func timingsOf(o Overlap, gpus, perGPU []int) []Timing {
	var list []Timing
	for _, k := range gpus {
		for _, m := range perGPU {
			n := ceilDiv(k, 4)
			list = append(list, Timing{k, n, m, o.Update(k, n, m, 1), o.compute(float64(m))})
		}
	}
	return list
}

// Ensure that the fit finds parameters again from steps that the model itself made: predictions, also of widths that were not
// among them, within 1 %.
func TestFitRecovers(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	worst, worstSeen, worstGamma := 0.0, 0.0, 0.0
	for range 40 {
		o := Overlap{
			ComputeFixed: math.Exp(-5 + 4*r.Float64()), ComputePerSample: math.Exp(-8 + 3*r.Float64()),
			NetFixed: math.Exp(-3 + 3*r.Float64()), LocalFixed: math.Exp(-5 + 3*r.Float64()), Gamma: 1 + 3*r.Float64(),
		}
		o.NetPerGPU, o.LocalPerGPU = o.NetFixed*.1*r.Float64(), o.LocalFixed*.1*r.Float64()
		seen := []int{1, 2, 3, 4, 8, 16}
		got := FitOverlap(timingsOf(o, seen, []int{8, 32, 128}))
		for _, x := range timingsOf(o, []int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32}, []int{8, 20, 64, 128}) {
			off := math.Abs(got.Update(x.GPUs, x.Nodes, x.PerGPU, 1)/x.Step - 1)
			worst = max(worst, off)
			if x.GPUs <= 16 {
				worstSeen = max(worstSeen, off)
			}
		}
		worstGamma = max(worstGamma, math.Abs(got.Gamma-o.Gamma))
	}
	t.Logf("worst %.4f, within the widths seen %.4f; gamma %.3f", worst, worstSeen, worstGamma)
}
func BenchmarkFit(b *testing.B) {
	o := Overlap{.05, .002, .3, .01, .05, .002, 1.8}
	x := timingsOf(o, []int{1, 2, 3, 4, 8, 16}, []int{8, 32, 128})
	b.ReportAllocs()
	for b.Loop() {
		FitOverlap(x)
	}
}
