package controller

import (
	"context"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/sched"
)

// started is a start without a driver: what a host would have made of what the API has.
type started struct {
	*keeper

	state   *engine.State
	dec     sched.Decider
	renewed string
}

// start loads what the API has, as a host does.
func (c *Controller) start(ctx context.Context) (*started, error) {
	s := &started{keeper: &keeper{c: c}}
	past, err := s.Load(ctx)
	if err != nil {
		return nil, err
	}
	s.renewed = past.Renew
	if s.dec, err = s.system(&past.Header); err != nil {
		return nil, err
	}
	if s.state, err = engine.Restore(past.Header, past.State.View); err != nil {
		return nil, err
	}
	if m := past.State.Memory; m != nil {
		err = m.Load(s.state.View(), s.dec)
		if err != nil {
			return nil, err
		}
	}
	return s, s.Start(&host.Start{Context: ctx, Header: past.Header, View: s.state.View(), Decider: s.dec,
		Renewed: s.renewed})
}
