package system

import (
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/system/key"
)

// Begin returns the system that decides, or decided, the log that h heads. It is built from h and from what k knows in
// addition; Types, Pools, Budget, Round, PerNode and MostGPUs of k are those of h. ShareLimit of h becomes
// that of the system. adapt, if not nil, changes the stages of a system that has any, after the round of h.
func Begin(h *eventlog.Header, k Knowledge, adapt func(*pipeline.Stages)) (System, error) {
	info, err := Named(h.System)
	if err != nil {
		return System{}, err
	}
	k.Types, k.Pools, k.Budget, k.Round, k.PerNode, k.MostGPUs = h.Types, h.Pools, h.Budget, h.Round, h.NodeGPUs, h.GPUs
	if round := h.Round; round > 0 {
		more := adapt
		adapt = func(st *pipeline.Stages) {
			if st.Round = round; more != nil {
				more(st)
			}
		}
	}
	sys, err := info.Build(k, key.NewSettings(h.Settings), adapt)
	h.ShareLimit = max(sys.ShareLimit, 1)
	return sys, err
}
