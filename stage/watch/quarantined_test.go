package watch

import "github.com/trainyard/trainyard/sched"

// Quarantined reports whether GPU g is in quarantine by this stage's request.
func (s *Stragglers) Quarantined(g sched.GPUID) bool { return int(g) < len(s.gpus) && s.gpus[g].ours }
