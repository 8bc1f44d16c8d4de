package simulate

import (
	"strconv"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
)

// Draws reports whether something of the world is drawn at random, so that another seed may give another simulation:
// failures of nodes, noise in reports, or noise in how jobs slow each other down. A preset's own simulator draws
// nothing of these. The request is checked.
func (s *Request) Draws() bool {
	if s.Engine() != Engine {
		return false
	}
	set := s.keys()
	return s.Fails() || system.ReportNoise.Get(set) > 0 ||
		s.Sharing != nil && system.InterferenceNoise.Get(set) > 0
}

// Fails reports whether nodes fail. Those that are rented do not. The request is checked.
func (s *Request) Fails() bool {
	return s.Cluster.Failures.MTBF > 0 && s.Engine() == Engine && s.rented(s.keys()).Nodes != nil
}

// rented returns the cluster, its nodes rented where the system rents all.
func (s *Request) rented(set *key.Settings) *cluster.Cluster {
	if s.info().RentsUnder(s.Budget, set) {
		return s.Cluster.ToRent(system.BootDelay.Get(set))
	}
	return s.Cluster
}

// Rents reports whether nodes are rented, and how many GPUs on average at most; 0 = any number. The request is checked.
func (s *Request) Rents() (most float64, rents bool) {
	set := s.keys()
	return s.info().BudgetUnder(s.Budget, set), s.info().RentsUnder(s.Budget, set) || len(s.Cluster.Pools) > 0
}

// Seeded returns the request with all seeds of what Draws names raised by n.
func (s *Request) Seeded(n int) Request {
	r, c := *s, *s.Cluster
	c.Failures.Seed += uint64(n)
	r.Cluster, r.NoiseSeed = &c, s.NoiseSeed+uint64(n)
	if s.Sharing != nil {
		r.Settings = withDefaults(s.Settings, nil)
		r.Settings[system.InterferenceSeed.Name] = strconv.Itoa(system.InterferenceSeed.Get(s.keys()) + n)
	}
	return r
}

// keys are the settings of a request that is checked.
func (s *Request) keys() *key.Settings {
	var defaults map[string]string
	if p := PresetNamed(s.Preset); p != nil {
		defaults = p.Defaults(s.System)
	}
	return key.NewSettings(withDefaults(s.Settings, defaults)).Bind(KeysOf(s.info(), s.Preset), s.Scores != nil,
		s.Files)
}

// info is the system of a request that is checked.
func (s *Request) info() *system.Info {
	info, err := system.Named(s.System)
	if err != nil {
		panic("simulate: " + err.Error())
	}
	return info
}
