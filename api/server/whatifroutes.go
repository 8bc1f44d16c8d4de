package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/trainyard/trainyard/api"
)

// Operations that take a Simulator.
const (
	whatifID       = "whatif"
	whatifGetID    = "whatif-state"
	whatifCancelID = "whatif-cancel"
)

var ofSimulator = []string{whatifID, whatifGetID, whatifCancelID}

// Simulator is a Site that can say how the jobs of its log would have fared under other systems.
type Simulator interface {
	// Simulates reports whether it can.
	Simulates() bool
	// AskWhatIf asks about the log up to event seq. ErrBusy of api: another question is being answered.
	AskWhatIf(who api.Who, q api.WhatIfQuestion, seq uint64) (api.WhatIf, error)
	// WhatIf returns how far a question has come; ErrNoWhatIf of api.
	WhatIf(id string) (api.WhatIf, error)
	// CancelWhatIf takes a question back.
	CancelWhatIf(who api.Who, id string) (api.WhatIf, error)
}

// simulates reports whether the Site can say what would have been.
func simulates(world any) bool {
	s, able := world.(Simulator)
	return able && s.Simulates()
}

// whatifs answers what would have been. The guard has found that the Site can.
type whatifs struct{ s *Server }

type whatifInput struct{ Body api.WhatIfQuestion }

type aboutWhatIf struct {
	ID string `path:"id" maxLength:"64" doc:"of a question"`
}

// addTo adds the routes.
func (w whatifs) addTo(s *Server) {
	op := s.operation(http.MethodPost, "/v1/whatif", whatifID, "Simulate the log so far under other systems")
	op.DefaultStatus = http.StatusAccepted
	huma.Register(s.docs, op, func(ctx context.Context, in *whatifInput) (*answer[api.WhatIf], error) {
		callerOf(ctx).bodyRead()
		doc, err := w.ask(ctx, in)
		if err != nil {
			return nil, problemOf(err)
		}
		return &answer[api.WhatIf]{doc}, nil
	})
	get(s, "/v1/whatif/{id}", whatifGetID, "How far a simulation has come, and what came of it",
		func(_ context.Context, in *aboutWhatIf) (api.WhatIf, error) {
			return w.s.o.Site.(Simulator).WhatIf(in.ID)
		})
	post(s, "/v1/whatif/{id}/cancel", whatifCancelID, "Take a simulation back",
		func(ctx context.Context, in *aboutWhatIf) (api.WhatIf, error) {
			return w.s.o.Site.(Simulator).CancelWhatIf(callerOf(ctx).who, in.ID)
		})
}

func (w whatifs) ask(ctx context.Context, in *whatifInput) (api.WhatIf, error) {
	q := in.Body
	sorted := slices.Sorted(slices.Values(q.Systems))
	if len(slices.Compact(sorted)) < len(q.Systems) {
		return api.WhatIf{}, fmt.Errorf("%w: systems %q, want each once", api.ErrMalformed, q.Systems)
	}
	seq := w.s.o.Host.LastEvent()
	return w.s.o.Site.(Simulator).AskWhatIf(callerOf(ctx).who, q, seq)
}
