package api

import (
	"errors"
	"net/http"
)

// Errors of a Client. They wrap what the manager said in a sentence.
var (
	ErrNoManager = errors.New("no trainyard runs there")
	ErrNoJob     = errors.New("no such job")
	ErrNoGPU     = errors.New("no such GPU or slot")
	ErrNoEvent   = errors.New("no such event")
	ErrNoDecided = errors.New("is no decision") // an event that is none
	ErrElsewhere = errors.New("was decided by another system or version, of which the log does not keep enough")
	ErrDone      = errors.New("done already")
	ErrAmbiguous = errors.New("several jobs have that name")
	ErrEarly     = errors.New("not handed in yet; try again when it is")
	ErrFixed     = errors.New("this manager runs the jobs of a file and takes no others")
	ErrStopped   = errors.New("the manager stops")
	ErrRefused   = errors.New("refused")
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

// NewProblem returns a problem that is told as detail; err is what it wraps.
func NewProblem(status int, code, detail string, err error) *Problem {
	return &Problem{http.StatusText(status), status, detail, code, err}
}

// ProblemOf is how err is answered: with the code and status of the first of the errors above that it wraps, else as a
// fault.
func ProblemOf(err error) *Problem {
	for _, p := range problems {
		if errors.Is(err, p.err) {
			return NewProblem(p.status, p.code, err.Error(), err)
		}
	}
	return NewProblem(http.StatusInternalServerError, "", err.Error(), err)
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
