package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/trainyard/trainyard/manager"
)

// Errors of a Client. They wrap what the manager said in a sentence.
var (
	ErrNoManager = errors.New("no trainyard runs there")
	ErrNoJob     = manager.ErrNoJob
	ErrNoGPU     = errors.New("no such GPU or slot")
	ErrNoEvent   = manager.ErrNoEvent
	ErrNoDecided = manager.ErrNoDecision  // an event that is none
	ErrElsewhere = manager.ErrOtherSystem // decided by one that is not here any more
	ErrDone      = manager.ErrDone
	ErrAmbiguous = errors.New("several jobs have that name")
	ErrEarly     = errors.New("not handed in yet; try again when it is")
	ErrFixed     = manager.ErrFixed   // this manager takes no jobs
	ErrStopped   = manager.ErrStopped // it is about to end
	ErrRefused   = manager.ErrRefused
	ErrMalformed = errors.New("not understood")
	ErrForbidden = errors.New("not allowed")
	ErrTimeout   = errors.New("no answer in time")
	ErrBusy      = errors.New("too many at a time")
)

// Problem is the answer to a request that came to nothing, as application/problem+json (RFC 9457).
type Problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail" doc:"for people"`
	Code   string `json:"code,omitempty" doc:"for programs"`
	err    error
}

// Error returns the sentence for people.
func (p *Problem) Error() string { return p.Detail }

// Unwrap returns the error of which p tells.
func (p *Problem) Unwrap() error { return p.err }

// GetStatus returns the status of HTTP.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType is that of a problem.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// problems are the errors that have a code. The first that fits holds.
var problems = []struct {
	code   string
	status int
	err    error
}{
	{"no-job", http.StatusNotFound, ErrNoJob},
	{"no-gpu", http.StatusNotFound, ErrNoGPU},
	{"no-event", http.StatusNotFound, ErrNoEvent},
	{"no-decision", http.StatusConflict, ErrNoDecided},
	{"other-system", http.StatusConflict, ErrElsewhere},
	{"done", http.StatusConflict, ErrDone},
	{"ambiguous", http.StatusConflict, ErrAmbiguous},
	{"early", http.StatusTooEarly, ErrEarly},
	{"fixed", http.StatusConflict, ErrFixed},
	{"stopped", http.StatusServiceUnavailable, ErrStopped},
	{"refused", http.StatusUnprocessableEntity, ErrRefused},
	{"malformed", http.StatusBadRequest, ErrMalformed},
	{"forbidden", http.StatusForbidden, ErrForbidden},
	{"timeout", http.StatusGatewayTimeout, ErrTimeout},
	{"busy", http.StatusTooManyRequests, ErrBusy},
}

// problemOf is how err is told; nil if there is none.
func problemOf(err error) error {
	if err == nil {
		return nil
	}
	if p := (*Problem)(nil); errors.As(err, &p) {
		return p
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: the manager is busy or its disk is slow", ErrTimeout)
	}
	for _, p := range problems {
		if errors.Is(err, p.err) {
			return &Problem{http.StatusText(p.status), p.status, err.Error(), p.code, err}
		}
	}
	const status = http.StatusInternalServerError
	return &Problem{Title: http.StatusText(status), Status: status, Detail: err.Error(), err: err}
}

// told is the error of which a problem that was received tells.
func told(p *Problem) error {
	for _, x := range problems {
		if x.code == p.Code {
			return &Problem{p.Title, p.Status, p.Detail, p.Code, x.err}
		}
	}
	if p.Status < http.StatusInternalServerError {
		p.err = ErrMalformed
	}
	return p
}
