package api

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// LogOptions say what of an output is wanted. The zero value: nothing of the past; see the fields.
type LogOptions struct {
	Attempt int       // from this attempt on; 0 = the latest
	Follow  bool      // go on, through later attempts, until the job is done
	Since   time.Time // from the first attempt that wrote something since; zero = all
	Tail    int       // only so many of the last lines; -1 = all
	Rank    int       // of the job's ranks, where each has an output of its own
}

// Logs calls show with what a job wrote, piece by piece, and returns how it ended, or stands where nothing more is
// followed. When the stream breaks it goes on where it was.
func (c *Client) Logs(
	ctx context.Context, job string, o LogOptions, show func(Output) error) (end OutputEnd, err error) {
	q := url.Values{"attempt": {strconv.Itoa(o.Attempt)}, "follow": {strconv.FormatBool(o.Follow)},
		"tail": {strconv.Itoa(o.Tail)}}
	if o.Rank > 0 {
		q.Set("rank", strconv.Itoa(o.Rank))
	}
	if !o.Since.IsZero() {
		q.Set("since", o.Since.UTC().Format(time.RFC3339Nano))
	}
	doc, err := c.Job(ctx, job) // a later job may have its name when the stream is asked for again
	if err != nil {
		return end, err
	}
	err = c.follow(ctx, jobPath(doc.name(), "logs")+"?"+q.Encode(), func(e StreamEvent) error {
		if e.Kind == "end" {
			return cmp.Or(json.Unmarshal(e.Data, &end), io.EOF)
		}
		var out Output
		if bad := readOutput(e.Data, &out); bad != nil {
			return bad
		}
		return show(out)
	})
	return end, err
}

// Events calls show with the lines of the log from the one numbered from on, 0 = all, -1 = only what is new, as they
// become durable, until the context ends. When the stream breaks it goes on where it was.
func (c *Client) Events(ctx context.Context, from int64, show func(seq uint64, line []byte) error) error {
	path := "/v1/events"
	if from >= 0 {
		path += "?from=" + strconv.FormatInt(from, 10)
	}
	return c.follow(ctx, path, func(e StreamEvent) error {
		seq, err := strconv.ParseUint(e.ID, 10, 64)
		if err != nil {
			return fmt.Errorf("event %q: %w", e.ID, err)
		}
		return show(seq, e.Data)
	})
}

// errEnough marks an error of the one who is called with the events: it ends the stream.
type errEnough struct{ error }

// again is how long to wait before a stream that broke is asked for again.
const again = 250 * time.Millisecond

// follow calls show with the events of a stream until it returns an error; io.EOF is the good end. A stream that breaks
// is asked for again, from its last event on, as long as the manager is there or its absence is borne: see Outlast. So
// is one that is refused because too many are open.
func (c *Client) follow(ctx context.Context, path string, show func(StreamEvent) error) error {
	header := http.Header{"Accept": {"text/event-stream"}}
	for tries := 0; ; {
		broke, err := c.stream(ctx, path, header, show)
		if !broke && !errors.As(err, new(errEnough)) && (errors.Is(err, ErrBusy) || hungUp(err, tries)) &&
			ctx.Err() == nil {
			tries++
			rest(ctx, tries)
			continue
		}
		tries = 0
		end := errEnough{}
		switch {
		case errors.As(err, &end) && errors.Is(end.error, io.EOF):
			return nil
		case end.error != nil:
			err = end.error
		}
		if broke {
			pause(ctx)
		} else if !c.away.outlasts(ctx, err) {
			return err
		}
	}
}

// mostRests is how many times longer than the first the rest between requests that are refused becomes.
const mostRests = 8

// rest waits before a request is made once more that was refused so many times because others are too many. Those who
// wait do not all ask at the same time.
func rest(ctx context.Context, refused int) {
	longest := again * time.Duration(min(refused, mostRests))
	pauseFor(ctx, longest/2+rand.N(longest/2))
}

// pause waits until something may be asked for again, or ctx ends, which the next request says.
func pause(ctx context.Context) { pauseFor(ctx, again) }

func pauseFor(ctx context.Context, long time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(long):
	}
}

// stream calls show with the events of a stream, and notes the last in header, until it breaks or show returns an
// error.
func (c *Client) stream(
	ctx context.Context, path string, header http.Header, show func(StreamEvent) error) (broke bool, err error) {
	resp, err := c.Do(ctx, http.MethodGet, path, nil, header)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	_ = c.away.bears(nil, time.Time{})
	err = ReadEvents(resp.Body, func(e StreamEvent) error {
		take := show
		switch {
		case e.Kind == "problem":
			take = problemIn
		case e.Data == nil: // nothing but where the stream is
			take = func(StreamEvent) error { return nil }
		}
		if stop := take(e); stop != nil {
			return errEnough{stop}
		}
		header.Set("Last-Event-ID", e.ID)
		return nil
	})
	return !errors.As(err, new(errEnough)), err
}

// problemIn is the error that the last event of a stream has.
func problemIn(e StreamEvent) error {
	var p Problem
	if err := json.Unmarshal(e.Data, &p); err != nil {
		return err
	}
	return received(&p)
}

// StreamEvent is a server-sent event.
type StreamEvent struct {
	Kind, ID string
	Data     []byte // valid until the next
}

// ReadEvents calls show with the events of a stream. The end of it is io.ErrUnexpectedEOF.
func ReadEvents(r io.Reader, show func(StreamEvent) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), MaxEvent)
	var e StreamEvent
	var data []byte
	for lines.Scan() {
		line := lines.Bytes()
		if len(line) == 0 && (e.Data != nil || e.ID != "") {
			if err := show(e); err != nil {
				return err
			}
			e = StreamEvent{}
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "event":
			e.Kind = string(value)
		case "id":
			e.ID = string(value)
		case "data":
			data = append(data[:0], value...)
			e.Data = data
		}
	}
	if lines.Err() != nil {
		return lines.Err()
	}
	return io.ErrUnexpectedEOF
}
