package system

import (
	"errors"
	"math"

	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/provision"
	"github.com/trainyard/trainyard/system/key"
)

// provision returns the rules of provision that s asks for, those of Provisioning that are for this system; narrows
// says that it may start jobs with fewer GPUs than they ask for, rents that it rents by itself.
func (i *Info) provision(k Knowledge, s *key.Settings, narrows, rents bool) (rules []sched.Provisioner, err error) {
	if !rents && len(k.Pools) > 0 {
		r := &provision.Rent{Keep: Keep.Get(s)}
		most, reserved := MaxGPUs.Get(s), Reserve.Get(s)
		switch Provide.Get(s) {
		case "follow":
			r.Demand = &provision.Asked{Most: int32(most), Narrows: narrows,
				PerUser: int32(min(UserLimit.Get(s), math.MaxInt32))}
		case "reserve":
			if reserved < 1 {
				return nil, errors.New("provision=reserve without reserve, want the GPUs to rent")
			}
			r.Demand = provision.Always{GPUs: int32(reserved)}
		}
		rules = append(rules, r)
	}
	if dwell := Sleep.Get(s); dwell != never {
		rules = append(rules, &provision.Sleep{Dwell: dwell})
	}
	limit, err := capLimit(k, s)
	if limit != nil {
		rules = append(rules, limit)
	}
	return rules, err
}

// rents reports whether a rule rents nodes.
func rents(p sched.Provisioner) bool {
	_, ok := p.(*provision.Rent)
	return ok
}

// capLimit returns the rule of power caps that is asked for, nil if none is.
func capLimit(k Knowledge, s *key.Settings) (*provision.Cap, error) {
	limit := Caps.Get(s)
	switch {
	case limit == powerCap{}:
		return nil, nil
	case k.Caps == nil:
		return nil, errors.New("power_cap, but nothing is known of power caps: --power-caps")
	}
	return &provision.Cap{Of: k.Caps, Fixed: sched.Watts(limit.watts), Slow: limit.slow}, nil
}
