package system

import (
	"math"

	"github.com/trainyard/trainyard/model/remaining"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/stage/allocate"
	"github.com/trainyard/trainyard/system/key"
	"github.com/trainyard/trainyard/system/worth"
)

// The keys of the system that puts one price on GPUs.
var (
	keySizes = key.Choice("sizes", "learned",
		"work of jobs: learned from those that ended and run; stated = their wall times and steps alone; oracle",
		"learned", "stated", "oracle")

	worthKeys = key.List{keySizes.Key, keyCurves.Key, LR.Key, KMax.Key}
)

// worthKnows is what that system knows.
func worthKnows(k Knowledge, s *key.Settings) (known worth.Known, err error) {
	known.Restart = k.restart(s)
	switch keySizes.Get(s) {
	case "oracle":
		if k.Work == nil {
			return known, errNoWork
		}
		known.Work = remaining.Known{Remainer: k.Work}
	case "stated":
		known.Work = remaining.NewStated()
	default:
		known.Work = remaining.NewSizes()
	}
	known.Speeds, err = curves(k, s, false)
	return known, err
}

// byWorth is that system.
func byWorth(k worth.Known, _ Facts, s *key.Settings) (pipeline.Stages, error) {
	p := worth.Params{Most: int32(min(KMax.Get(s), math.MaxInt32)), Place: placer(s), Unsaved: unsaved(s),
		Explores: keyCurves.Get(s) == "learned"}
	for i, name := range lrRules {
		if name == LR.Get(s) {
			p.LR = allocate.LRRule(i)
		}
	}
	return worth.Stages(k, p), nil
}
