package site

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/sched"
)

// pollOutput is the time between looks at what an attempt writes.
const pollOutput = 200 * time.Millisecond

// Start is the place where every output starts.
const Start = "0"

// Point is how far an output was sent: a place in what an attempt wrote.
type Point struct {
	Attempt int32
	Place   string
}

// String is the id of an event of a stream. Clients send it back as it is.
func (p Point) String() string { return strconv.Itoa(int(p.Attempt)) + ":" + p.Place }

// ParsePoint reads the id of an event of a stream.
func ParsePoint(of Outputs, id string) (Point, error) {
	attempt, place, _ := strings.Cut(id, ":")
	n, err := strconv.ParseInt(attempt, 10, 32)
	if err != nil || n < 1 || strconv.FormatInt(n, 10) != attempt || place == "" || of.Place(place) != nil {
		return Point{}, fmt.Errorf("%w: place %q, want the id of an event of this stream", api.ErrMalformed, id)
	}
	return Point{int32(n), place}, nil
}

// Standing is how a job stands, as far as its output goes.
type Standing struct {
	Done     bool  // it will have no more attempts
	Ended    bool  // the last attempt writes no more
	Attempts int32 // that were started
}

// Reading reads the output of one rank of a job.
type Reading struct {
	Of      Outputs
	Job     sched.JobID
	Rank    int32
	From    Point     // attempt 0 = the latest; place "" = Start
	Follow  bool      // go on with what is written, and with the next attempts, until the job is done
	Lines   int       // only so many from the end; -1 = all
	Since   time.Time // leave out attempts that wrote nothing since; zero = none
	Current func() (now Standing, changed <-chan struct{})
	Piece   func(behind Point, text []byte) error
	End     func(at Point) error // all that there will be was read, or all that there is
}

// source is where an attempt writes.
func (r *Reading) source(attempt int32) Source { return Source{r.Job, attempt, r.Rank} }

// Settle finds where the output starts. There may be no attempt yet.
func (r *Reading) Settle() error {
	now, _ := r.Current()
	at := r.From
	switch {
	case at.Attempt < 0 || at.Attempt > max(now.Attempts, 1):
		return fmt.Errorf("%w: attempt %d, there were %d", api.ErrRefused, at.Attempt, now.Attempts)
	case at.Attempt == 0 && r.Since.IsZero():
		at.Attempt = max(now.Attempts, 1)
	case at.Attempt == 0:
		at.Attempt = 1
	}
	for ; at.Attempt < now.Attempts && !r.Since.IsZero(); at = (Point{at.Attempt + 1, Start}) {
		if last, known := r.Of.Last(r.source(at.Attempt)); known && !last.Before(r.Since) {
			break
		}
	}
	if at.Place == "" {
		at.Place = Start
	}
	r.From, r.Since = at, time.Time{}
	return nil
}

// Run reads the output, piece by piece, from where it starts. It waits for the one who takes the pieces and for no one
// else: a job writes, whoever reads.
func (r *Reading) Run(ctx context.Context) error {
	if err := r.Settle(); err != nil {
		return err
	}
	var open Output
	shut := func() {
		if open != nil {
			_ = open.Close()
		}
		open = nil
	}
	defer shut()
	for at := r.From; ctx.Err() == nil; {
		now, changed := r.Current()
		more, err := r.step(ctx, &open, &at, now)
		switch {
		case err != nil:
			return err
		case more:
			continue
		case r.Follow && now.Attempts > at.Attempt:
			shut()
			at = Point{at.Attempt + 1, Start}
			continue
		case !r.Follow || now.Done:
			return r.End(at)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-time.After(pollOutput):
		}
	}
	return ctx.Err()
}

// step takes the next piece, if there is one, of an attempt that may have nothing open yet.
func (r *Reading) step(ctx context.Context, open *Output, at *Point, now Standing) (more bool, err error) {
	if *open == nil {
		if *open, err = r.Of.Open(ctx, r.source(at.Attempt)); err != nil || *open == nil {
			return false, err
		}
		if r.Lines >= 0 {
			at.Place, r.Lines = (*open).Tail(at.Place, r.Lines), -1
		}
	}
	over := now.Done || now.Attempts > at.Attempt || now.Attempts == at.Attempt && now.Ended
	text, behind, err := (*open).Next(at.Place, over)
	if at.Place = behind; err != nil || len(text) == 0 {
		return false, err
	}
	return true, r.Piece(*at, text)
}
