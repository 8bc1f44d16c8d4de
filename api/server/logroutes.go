package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/api/site"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
)

// logsInput says what of an output is wanted.
type logsInput struct {
	aboutJob
	Attempt int       `query:"attempt" minimum:"0" doc:"from this attempt on; 0 = the latest"`
	Follow  bool      `query:"follow" doc:"go on, through later attempts, until the job is done"`
	Since   time.Time `query:"since" doc:"from the first attempt that wrote something since. What is written bears no times"`
	Tail    int       `query:"tail" minimum:"-1" default:"-1" doc:"only so many of the last lines, of 8 MiB at most"`
	Rank    int       `query:"rank" minimum:"0" doc:"of the job's ranks, where each has an output of its own"`
	From    string    `header:"Last-Event-ID" doc:"go on behind this event"`
}

// logs sends what a job writes: events of type output, at last one of type end.
func (s *Server) logs(w http.ResponseWriter, r *http.Request, in *logsInput) error {
	c := callerOf(r.Context())
	board := s.o.Host.Board()
	read := site.Reading{Of: s.o.Site, Job: c.job, Rank: int32(in.Rank), From: site.Point{Attempt: int32(in.Attempt)},
		Follow: in.Follow, Lines: in.Tail, Since: in.Since}
	if in.From != "" {
		p, err := site.ParsePoint(s.o.Site, in.From)
		if err != nil {
			return err
		}
		read.From, read.Lines, read.Since = p, -1, time.Time{}
	}
	var row Row // as it stood last
	read.Current = func() (site.Standing, <-chan struct{}) {
		now, _, changed := board.Row(c.job)
		row = now
		return site.Standing{Done: row.State == sched.Done, Ended: row.Attempt == sched.Ended,
			Attempts: row.Attempts}, changed
	}
	if err := read.Settle(); err != nil {
		return err
	}
	out, ctx, stop := newStream(w, r)
	defer stop()
	read.Piece = func(p site.Point, text []byte) error { return out.output(p, in.Rank, text) }
	read.End = func(p site.Point) error {
		end := api.OutputEnd{Attempt: int(p.Attempt), State: rowState(&row), Outcome: row.Outcome.String(),
			ExitCode: int(row.Code)}
		return out.document("end", p.String(), end)
	}
	s.end(out, read.Run(ctx))
	return nil
}

// rowState says in a word how the job of a row stands.
func rowState(row *Row) string {
	return stateOf(nil, &sched.Job{State: row.State, Attempt: row.Attempt})
}

// eventsInput says from where on events are wanted.
type eventsInput struct {
	From string `query:"from" doc:"number of the first event; 0 = all, empty = only what is new"`
	Last string `header:"Last-Event-ID" doc:"go on behind this event"`
}

// first is the number of the first event that is wanted.
func (in *eventsInput) first(next uint64) (uint64, error) {
	text, behind := in.From, uint64(0)
	if in.Last != "" {
		text, behind = in.Last, 1
	}
	if text == "" {
		return next, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > api.MaxSeq {
		return 0, fmt.Errorf("%w: event %.40q, want a number from 0 to %d", api.ErrMalformed, text, uint64(api.MaxSeq))
	}
	return n + behind, nil
}

// events sends the lines of the log as they become durable: events of type event.
func (s *Server) events(w http.ResponseWriter, r *http.Request, in *eventsInput) error {
	from, err := in.first(s.o.Host.LastEvent() + 1)
	if err != nil {
		return err
	}
	if f, forgets := s.o.Host.(Forgetful); forgets && max(from, 1) < f.FirstEvent() {
		return api.Gone(from, f.FirstEvent())
	}
	out, ctx, stop := newStream(w, r)
	defer stop()
	// Should it break before anything is sent.
	if in.From == "" && in.Last == "" && out.start(strconv.FormatUint(from-1, 10)) != nil {
		return nil
	}
	s.end(out, s.o.Host.Events(ctx, from, func(seq uint64, line []byte) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return out.send("event", strconv.FormatUint(seq, 10), s.o.Site.Redact(line))
	}))
	return nil
}

// log writes the log so far: its header, then the lines.
func (s *Server) log(w http.ResponseWriter, r *http.Request, _ *nothing) error {
	last := s.o.Host.LastEvent()
	r.Header.Set("Accept", "text/plain") // no events of a stream
	out, ctx, stop := newStream(w, r)
	defer stop()
	if err := out.line(eventlog.AppendHeader(nil, s.o.Host.Header())); err != nil || last == 0 {
		return nil
	}
	s.end(out, s.o.Host.Events(ctx, 1, func(seq uint64, line []byte) error {
		if err := out.line(s.o.Site.Redact(line)); err != nil {
			return err
		}
		if seq == last {
			return errLast
		}
		return nil
	}))
	return nil
}

// errLast says that all was sent.
var errLast = errors.New("the last event")

// end says to the client of a stream why it ended early: without that it would ask for it again. One that left hears
// nothing.
func (s *Server) end(out *stream, err error) {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, errLast) {
		return
	}
	s.o.Log.Debug("a stream ends", "error", err)
	_ = out.document("problem", "", problemOf(err))
}

// output sends a piece of an output.
func (s *stream) output(p site.Point, rank int, text []byte) error {
	if s.text {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.write(text)
	}
	// Bytes that are no UTF-8 become U+FFFD.
	return s.document("output", p.String(), api.Output{Attempt: int(p.Attempt), Rank: rank, Text: string(text)})
}

// document sends a document as an event.
func (s *stream) document(kind, id string, doc any) error {
	b, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	return s.send(kind, id, b)
}

// line writes a line of text.
func (s *stream) line(b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf = append(append(s.buf[:0], b...), '\n')
	return s.write(s.buf)
}
