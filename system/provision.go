package system

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/provision"
)

// provision returns the rules of provision that s asks for, those of Provisioning that are for this system; narrows says that it may start
// jobs with fewer GPUs than they ask for.
func (i *Info) provision(k Knowledge, s *Settings, narrows bool) (rules []sched.Provisioner, err error) {
	if !i.Rents && len(k.Pools) > 0 {
		r := &provision.Rent{Keep: s.Seconds("keep", 0)}
		most, reserved := s.Int("max_gpus", 0), s.Int("reserve", 0)
		switch s.OneOf("provision", "follow", "follow", "reserve") {
		case "follow":
			r.Demand = &provision.Asked{Most: int32(most), Narrows: narrows, PerUser: int32(min(s.Int("user_limit", 0), math.MaxInt32))}
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
	limit, err := capLimit(k, s)
	if limit != nil {
		rules = append(rules, limit)
	}
	return rules, err
}

// capLimit returns the rule of power caps that is asked for, nil if none is.
func capLimit(k Knowledge, s *Settings) (*provision.Cap, error) {
	const wish = "off, WATTS as in 150W, or a slow-down >= 1"
	text := strings.TrimSpace(s.Text("power_cap"))
	if text == "" && !s.Has("power_cap") || text == "off" {
		return nil, nil
	}
	number, fixed := strings.CutSuffix(text, "W")
	x, err := strconv.ParseFloat(number, 64)
	if err != nil || !(x > 0 && x <= 1e6) || !fixed && x < 1 {
		s.wrong("power_cap", s.Text("power_cap"), wish)
		return nil, nil
	}
	if k.Caps == nil {
		return nil, errors.New("power_cap, but nothing is known of power caps: --power-caps")
	}
	if fixed {
		return &provision.Cap{Of: k.Caps, Fixed: sched.Watts(x)}, nil
	}
	return &provision.Cap{Of: k.Caps, Slow: x}, nil
}
