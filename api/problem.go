package api

import (
	"errors"
	"fmt"
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
	ErrEarly     = errors.New("not submitted yet; try again when it is")
	ErrFixed     = errors.New("this manager runs the jobs of a file and takes no others")
	ErrStopped   = errors.New("the manager stops")
	ErrRefused   = errors.New("refused")
	ErrMalformed = errors.New("not understood")
	ErrForbidden = errors.New("not allowed")
	ErrTimeout   = errors.New("no answer in time")
	ErrBusy      = errors.New("too many at a time")
	ErrNoNode    = errors.New("no such node")
	ErrNotHere   = errors.New("not served here") // by this kind of host; a Problem names what is
	// of events; a Problem says from where on they are
	ErrGone       = errors.New("no longer kept")
	ErrNotLeading = errors.New("not leading, another process decides") // tried again like a manager that is away
	ErrKeyUsed    = errors.New("the key was used for other jobs")
	ErrFull       = errors.New("no room on the disk")
	ErrInUse      = errors.New("in use")                // of a GPU or slot that is to be forgotten
	ErrChanged    = errors.New("has changed meanwhile") // of a request under If-Match
	// ErrNoWhatIf: a question that no one asked, or long ago.
	ErrNoWhatIf = errors.New("no such question")
	ErrNoHelp   = errors.New("no longer helps") // of a remedy
	// ErrUnknown is none of a manager's: it may have what it was asked for, or not.
	ErrUnknown = errors.New("it is not known whether the jobs were submitted")
)

// Problem is the answer to a request that came to nothing, as application/problem+json (RFC 9457).
type Problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail" doc:"for people"`
	Code   string `json:"code,omitempty" doc:"for programs"`
	// Instead and From are additions of single codes.
	Instead string `json:"instead,omitempty" doc:"of not-here: what to use instead"`
	From    uint64 `json:"from,omitempty" doc:"of gone: the first event that is still kept"`
	err     error
}

// Error returns the sentence for people.
func (p *Problem) Error() string { return p.Detail }

// Unwrap returns the error behind p.
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
	{"no-node", http.StatusNotFound, ErrNoNode},
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
	{"not-here", http.StatusNotImplemented, ErrNotHere},
	{"gone", http.StatusGone, ErrGone},
	{"not-leading", http.StatusServiceUnavailable, ErrNotLeading},
	{"key-used", http.StatusConflict, ErrKeyUsed},
	{"full", http.StatusInsufficientStorage, ErrFull},
	{"in-use", http.StatusConflict, ErrInUse},
	{"changed", http.StatusPreconditionFailed, ErrChanged},
	{"no-whatif", http.StatusNotFound, ErrNoWhatIf},
	{"no-help", http.StatusConflict, ErrNoHelp},
}

// NewProblem returns a problem; err is what it wraps.
func NewProblem(status int, code, detail string, err error) *Problem {
	return &Problem{Title: http.StatusText(status), Status: status, Detail: detail, Code: code, err: err}
}

// Refusal is a problem of code forbidden, of a status that says how: 401, 403, 404, 405, 421.
func Refusal(status int, format string, args ...any) *Problem {
	return NewProblem(status, "forbidden", fmt.Sprintf(format, args...), ErrForbidden)
}

// NotHere is the problem of an operation that a host does not serve.
func NotHere(what, instead string) *Problem {
	detail := what + " is not served here"
	if instead != "" {
		detail += "; use " + instead
	}
	p := NewProblem(http.StatusNotImplemented, "not-here", detail, ErrNotHere)
	p.Instead = instead
	return p
}

// Gone is the problem of events that are no longer kept; from is the first that is.
func Gone(wanted, from uint64) *Problem {
	detail := fmt.Sprintf("event %d is no longer kept; events from %d on are", wanted, from)
	p := NewProblem(http.StatusGone, "gone", detail, ErrGone)
	p.From = from
	return p
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

// received returns p, which an answer had, with the error of its code.
func received(p *Problem) error {
	for _, x := range problems {
		if x.code == p.Code {
			p.err = x.err
			return p
		}
	}
	if p.Status < http.StatusInternalServerError {
		p.err = ErrMalformed
	}
	return p
}
