package simulate

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/model/power"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// CapCurves are what GPUs do under power caps, by model in small letters and without signs: Zeus calls resnet50 what
// others call ResNet-50.
type CapCurves map[string]power.Caps

// ReadCaps reads a summary of Zeus: of a model measured with several batch sizes or optimisers the first counts.
func ReadCaps(r io.Reader, name string) (CapCurves, error) {
	profiles, err := power.ReadSummary(r, name)
	if err != nil {
		return nil, err
	}
	curves := make(CapCurves)
	for _, p := range profiles {
		if k := plain(p.Network); curves[k] == nil {
			curves[k] = p.Caps
		}
	}
	return curves, nil
}

// plain returns the letters and digits of a model's name, without the batch size that tables add.
func plain(model string) string {
	model, _, _ = strings.Cut(model, " (batch size")
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("-_ .", r) {
			return -1
		}
		return r
	}, strings.ToLower(model))
}

// Of returns the curve of a model, none where it is not known.
func (c CapCurves) Of(model string) power.Caps { return c[plain(model)] }

// slow has jobs under a cap run as fast as their curve says.
func (c CapCurves) slow(r *sim.Runtime) {
	if c == nil {
		return
	}
	r.Capped = func(j *trace.Job, limit sched.Watts) float64 {
		curve := c.Of(j.Spec.Model)
		if len(curve) == 0 {
			return 1
		}
		x, err := curve.At(max(limit, curve[0].Limit))
		if err != nil {
			return 1
		}
		return x.Speed / curve[len(curve)-1].Speed
	}
}

// within refuses a value of the key power_cap, such as 150W, that lies outside what was measured of a model of the
// trace.
func (c CapCurves) within(t *trace.Trace, text string) error {
	number, fixed := strings.CutSuffix(text, "W")
	x, err := strconv.ParseFloat(number, 64)
	if !fixed || err != nil { // what else is wrong with it the system says
		return nil
	}
	limit := sched.Watts(x)
	var seen []string
	for i := range t.Jobs {
		model := t.Jobs[i].Spec.Model
		if slices.Contains(seen, model) {
			continue
		}
		seen = append(seen, model)
		curve := c.Of(model)
		if len(curve) == 0 {
			continue
		}
		if last := curve[len(curve)-1].Limit; limit < curve[0].Limit || limit > last {
			return fmt.Errorf("power: cap %v W for %s, want one from %v to %v W, which were measured", float64(limit),
				model, float64(curve[0].Limit), float64(last))
		}
	}
	return nil
}
