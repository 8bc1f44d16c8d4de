package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"strings"
	"time"
)

// KeyHeader is the header that names a submission. The one who asks again under a key of his gets the same answer, and
// the jobs are there once; other jobs under it are ErrKeyUsed.
const KeyHeader = "Idempotency-Key"

const (
	maxKey   = 64 // bytes of a key
	keyChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-"
)

// CheckKey returns what keeps a text from being a key, or nil. The error wraps ErrMalformed.
func CheckKey(key string) error {
	if key == "" || len(key) > maxKey || strings.Trim(key, keyChars) != "" {
		return fmt.Errorf("%w: key %q, want 1 to %d of A-Z a-z 0-9 . _ : -", ErrMalformed,
			key[:min(len(key), maxKey+1)], maxKey)
	}
	return nil
}

// Retry says how long SubmitOnce goes on asking.
type Retry struct {
	Patience time.Duration // from the first try on; 0 = it asks once
	// Again is called before it asks the second time, with why and whether a manager may have been reached. false: it
	// asks no more. nil: it does.
	Again func(why error, reached bool) bool
}

// SubmitOnce is Submit under a key. As long as the patience lasts it asks again where no manager answers, where that
// stops, or is too busy: the jobs are there once, whatever became of the managers. ErrUnknown: a manager may have got
// them; to ask again under the same key says so. ErrNoManager alone: none has. Where the command of a context is not
// there, or a server shows a certificate of another, it does not ask again.
func (c *Client) SubmitOnce(ctx context.Context, in Submission, key string, r Retry) (doc Submitted, err error) {
	body, unreadable := json.Marshal(in)
	if bad := cmp.Or(CheckKey(key), unreadable, checkLength(body)); bad != nil {
		return doc, bad
	}
	reached := false
	for began := time.Now(); ; {
		tried, failed := c.submitKeyed(ctx, body, key, &doc)
		if errors.Is(failed, ErrNotHere) { // a host that knows no keys has taken nothing: once is all that may be asked
			return c.Submit(ctx, in)
		}
		if failed == nil || !comesAgain(ctx, failed) {
			return doc, failed
		}
		reached = reached || tried && mayHaveIt(failed)
		over := ctx.Err() != nil || lasts(failed) || time.Since(began)+again > r.Patience
		if !over && r.Again != nil {
			over = !r.Again(failed, reached)
			r.Again = nil
		}
		if over && reached {
			return doc, fmt.Errorf("%w: %w", ErrUnknown, failed)
		}
		if over {
			return doc, failed
		}
		pause(ctx)
	}
}

// submitKeyed asks once, and reports whether anything of it was sent.
func (c *Client) submitKeyed(ctx context.Context, body []byte, key string, doc *Submitted) (sent bool, err error) {
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent = true }})
	err = c.askWith(ctx, http.MethodPost, "/v1/jobs", body, http.Header{KeyHeader: {key}}, doc)
	return sent, err
}

// comesAgain reports whether another try may do better.
func comesAgain(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return true // it is over, and of the outcome nothing is known
	}
	for _, passing := range []error{ErrNoManager, ErrStopped, ErrTimeout, ErrBusy, ErrNotLeading} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}

// lasts reports whether the next try would fail in the same way: a program that is not there, or the certificate of
// another.
func lasts(err error) bool {
	command, other := (*commandError)(nil), (*certificateError)(nil)
	return errors.As(err, &command) && command.lasting || errors.As(err, &other)
}

// mayHaveIt reports whether the one that was reached may have taken what it was asked for. Who is too busy, or does not
// lead, says so before.
func mayHaveIt(err error) bool {
	command := (*commandError)(nil)
	unsent := errors.As(err, &command) && command.unsent
	return !unsent && !errors.Is(err, ErrBusy) && !errors.Is(err, ErrNotLeading)
}
