package system

import (
	"errors"
	"math"

	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/provision"
)

// provision returns the rules of provision that s asks for, those of Provisioning that are for this system.
func (i *Info) provision(k Knowledge, s *Settings) (rules []sched.Provisioner, err error) {
	if !i.Rents && len(k.Pools) > 0 {
		r := &provision.Rent{Keep: s.Seconds("keep", 0)}
		most, reserved := s.Int("max_gpus", 0), s.Int("reserve", 0)
		switch s.OneOf("provision", "follow", "follow", "reserve") {
		case "follow":
			r.Demand = &provision.Asked{Most: int32(most)}
		case "reserve":
			if reserved < 1 {
				return nil, errors.New("provision=reserve without reserve, want the GPUs to rent")
			}
			r.Demand = provision.Always{GPUs: int32(reserved)}
		}
		rules = append(rules, r)
	}
	if !math.IsInf(s.Float("sleep", math.Inf(1)), 1) || i.Sleeps && !s.Has("sleep") {
		rules = append(rules, &provision.Sleep{Dwell: s.Seconds("sleep", 0)})
	}
	return rules, nil
}
