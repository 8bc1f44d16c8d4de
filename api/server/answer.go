package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/trainyard/trainyard/api"
)

// translated is an error of a host that is one of the contract too.
type translated struct{ host, contract error }

// Error is that of the host.
func (t translated) Error() string { return t.host.Error() }

// Unwrap returns both.
func (t translated) Unwrap() []error { return []error{t.host, t.contract} }

// problemOf is the answer for err; nil if there is none.
func problemOf(err error) error {
	if err == nil {
		return nil
	}
	if p := (*api.Problem)(nil); errors.As(err, &p) {
		return p
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: the manager is busy or its disk is slow", api.ErrTimeout)
	}
	for _, e := range hostErrors {
		if errors.Is(err, e.of) {
			err = translated{err, e.contract}
			break
		}
	}
	return api.ProblemOf(err)
}
