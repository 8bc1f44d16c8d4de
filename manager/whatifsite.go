package manager

import (
	"fmt"
	"strings"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/manager/whatifs"
	"github.com/trainyard/trainyard/system"
)

// SimulateBy has s say what would have been by a command, to which the systems are added: that of trainyard whatif.
func (s *Site) SimulateBy(command []string) { s.whatifs = whatifs.New(command, 0) }

// Simulates reports whether s can say what would have been.
func (s *Site) Simulates() bool { return s.whatifs != nil }

// AskWhatIf asks how the jobs up to event seq would have fared under other systems.
func (s *Site) AskWhatIf(who api.Who, q api.WhatIfQuestion, seq uint64) (api.WhatIf, error) {
	for _, name := range q.Systems {
		if _, err := system.Named(name); err != nil || strings.ContainsAny(name, ", ") {
			return api.WhatIf{}, fmt.Errorf("%w: system %q, want one of %s", api.ErrMalformed, name,
				strings.Join(system.Names(), ", "))
		}
	}
	return s.whatifs.Ask(who.Name, q.Systems, seq)
}

// WhatIf returns how far a question has come.
func (s *Site) WhatIf(id string) (api.WhatIf, error) { return s.whatifs.Get(id) }

// CancelWhatIf takes a question back.
func (s *Site) CancelWhatIf(who api.Who, id string) (api.WhatIf, error) {
	return s.whatifs.Cancel(id, who.Name, who.Role == api.Admin)
}

// Close ends what s has running.
func (s *Site) Close() {
	if s.whatifs != nil {
		s.whatifs.Close()
	}
}
