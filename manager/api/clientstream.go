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
}

// Logs calls tell with what a job wrote, piece by piece, and returns how it ended, or stands where nothing more is followed. When
// the stream breaks it goes on where it was.
func (c *Client) Logs(ctx context.Context, job string, o LogOptions, tell func(Output) error) (end OutputEnd, err error) {
	q := url.Values{"attempt": {strconv.Itoa(o.Attempt)}, "follow": {strconv.FormatBool(o.Follow)}, "tail": {strconv.Itoa(o.Tail)}}
	if !o.Since.IsZero() {
		q.Set("since", o.Since.UTC().Format(time.RFC3339Nano))
	}
	doc, err := c.Job(ctx, job) // a later job may have its name when the stream is asked for again
	if err != nil {
		return end, err
	}
	err = c.follow(ctx, jobPath(strconv.Itoa(doc.ID), "logs")+"?"+q.Encode(), func(e sseEvent) error {
		if e.kind == "end" {
			return cmp.Or(json.Unmarshal(e.data, &end), io.EOF)
		}
		var out Output
		if bad := readOutput(e.data, &out); bad != nil {
			return bad
		}
		return tell(out)
	})
	return end, err
}

// Events calls tell with the lines of the log from the one numbered from on, 0 = all, -1 = only what is new, as they become
// durable, until the context ends. When the stream breaks it goes on where it was.
func (c *Client) Events(ctx context.Context, from int64, tell func(seq uint64, line []byte) error) error {
	path := "/v1/events"
	if from >= 0 {
		path += "?from=" + strconv.FormatInt(from, 10)
	}
	return c.follow(ctx, path, func(e sseEvent) error {
		seq, err := strconv.ParseUint(e.id, 10, 64)
		if err != nil {
			return fmt.Errorf("event %q: %w", e.id, err)
		}
		return tell(seq, e.data)
	})
}

// errTold marks an error of those who are told: it ends the stream.
type errTold struct{ error }

// again is how long to wait before a stream that broke is asked for again.
const again = 250 * time.Millisecond

// follow calls tell with the events of a stream until it returns an error; io.EOF is the good end. A stream that breaks is
// asked for again, from its last event on, as long as the manager is there and something came since.
func (c *Client) follow(ctx context.Context, path string, tell func(sseEvent) error) error {
	header := http.Header{"Accept": {"text/event-stream"}}
	for {
		resp, err := c.do(ctx, http.MethodGet, path, nil, header)
		if err != nil {
			return err
		}
		err = readEvents(resp.Body, func(e sseEvent) error {
			wish := tell
			if e.kind == "problem" {
				wish = problemIn
			}
			if stop := wish(e); stop != nil {
				return errTold{stop}
			}
			header.Set("Last-Event-ID", e.id)
			return nil
		})
		_ = resp.Body.Close()
		if end := (errTold{}); errors.As(err, &end) {
			if errors.Is(end.error, io.EOF) {
				return nil
			}
			return end.error
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(again):
		}
	}
}

// problemIn is the error that the last event of a stream tells.
func problemIn(e sseEvent) error {
	var p Problem
	if err := json.Unmarshal(e.data, &p); err != nil {
		return err
	}
	return told(&p)
}

// sseEvent is a server-sent event. data is valid until the next.
type sseEvent struct {
	kind, id string
	data     []byte
}

// maxEvent bounds a line of a stream: of a log it grows with the GPUs of a target only.
const maxEvent = 32 << 20

// readEvents calls tell with the events of a stream. The end of it is io.ErrUnexpectedEOF.
func readEvents(r io.Reader, tell func(sseEvent) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxEvent)
	var e sseEvent
	var data []byte
	for lines.Scan() {
		line := lines.Bytes()
		if len(line) == 0 && e.data != nil {
			if err := tell(e); err != nil {
				return err
			}
			e = sseEvent{}
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "event":
			e.kind = string(value)
		case "id":
			e.id = string(value)
		case "data":
			data = append(data[:0], value...)
			e.data = data
		}
	}
	if lines.Err() != nil {
		return lines.Err()
	}
	return io.ErrUnexpectedEOF
}
