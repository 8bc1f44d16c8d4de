package eventlog

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/sched"
)

// ErrNewer is wrapped by the error about a log that this program is too old for. Its text says both versions.
var ErrNewer = errors.New("was written by a newer Trainyard")

// ErrHeader is wrapped by the error about a header behind the first: the log has another part.
var ErrHeader = errors.New("a header, want an event")

// ErrCutShort is wrapped by the error about a last line without an end, as a crash leaves it. All lines before it are
// whole.
var ErrCutShort = errors.New("cut short, want a newline at its end")

// Record is one line of a log: an event and the batch it belongs to, counted from 1.
type Record struct {
	Batch uint64 // from 1, never falls
	Event sched.Event
}

// Reader reads what Writer wrote. It is strict: a key or word it does not know, a repeated key, a value out of range, a
// line that is cut short or longer than 16 MiB, a sequence number that is not the next, a time or a batch that falls is
// an error that names file and line and says what is wanted. So is another header, unless the log is read part by part.
type Reader struct {
	in     *bufio.Reader
	name   string
	line   int
	long   []byte // a line longer than the buffer of in
	from   int    // the line of the header
	head   []byte // the header of the part that comes next, once Next has met it
	header Header
	steps  []upcaster
	rec    Record
	target sched.Target
	event  eventScan
	err    error
}

// upcaster rewrites the lines of one schema as lines of the next.
type upcaster struct {
	from string
	line func(line []byte) []byte // header and events; may change line and return it
}

// upcasters lead from each older schema to the next, oldest first, the last of them to Schema.
//
// v1 knew neither what a job saves (events saved, keys saves and preemptible of arrivals) nor that it may not be
// stopped, v2 not that priorities of real jobs are classes, and v3 neither that they share GPUs by figures alone nor
// that an attempt started over: all their lines mean the same in what came next.
var upcasters = []upcaster{
	{"trainyard.log/v1", func(line []byte) []byte { return line }},
	{"trainyard.log/v2", func(line []byte) []byte { return line }},
	{"trainyard.log/v3", func(line []byte) []byte { return line }},
}

// NewReader reads the header of a log. Errors call the log by name.
func NewReader(r io.Reader, name string) (*Reader, error) {
	l := &Reader{in: bufio.NewReaderSize(r, flushAt), name: name}
	if mark, _ := l.in.Peek(3); string(mark) == "\ufeff" { // an editor put it there
		_, _ = l.in.Discard(len(mark))
	}
	line, err := l.next()
	switch {
	case errors.Is(err, io.EOF):
		return nil, l.fail("nothing there, want a header")
	case err != nil:
		return nil, err
	}
	if err := l.begin(line); err != nil {
		return nil, err
	}
	return l, nil
}

// begin reads a header, and has the events behind it go on from what it says.
func (l *Reader) begin(line []byte) (err error) {
	if l.steps, err = stepsFrom(schemaOf(line), upcasters); err != nil {
		return l.fail("%w", err)
	}
	l.header, l.rec, l.from = Header{}, Record{}, l.line
	var s scan
	s.reset(l.upcast(line))
	readHeader(&s, &l.header)
	if err = s.end(); err != nil {
		return l.fail("header: %w", err)
	}
	b, err := l.header.Beginning()
	if err != nil {
		return l.fail("header: %w", err)
	}
	if b != nil {
		l.rec.Event.Seq, l.rec.Event.Time = b.View.Version, b.View.Now
	}
	return nil
}

// headerMark is how each header starts.
var headerMark = []byte(`{"schema":`)

// Another goes on to the next part, once the events of the one before were read to their end, and reports whether there
// is one.
func (l *Reader) Another() (bool, error) {
	if !errors.Is(l.err, ErrHeader) {
		//nolint:errorlint // see Records
		if l.err == io.EOF {
			return false, nil
		}
		return false, l.err
	}
	l.err = nil
	return true, l.begin(l.head)
}

// Line returns the number of the line in which the part starts, from 1.
func (l *Reader) Line() int { return l.from }

// Header returns the first line of the log, or of the part that Another went on to.
func (l *Reader) Header() Header { return l.header }

// Next returns the next event, io.EOF after the last, or the first error, which stays. The record and its GPUs and
// Target are valid until the next call; its Spec and NodeSpec may be kept.
func (l *Reader) Next() (*Record, error) {
	if l.err != nil {
		return nil, l.err
	}
	line, err := l.next()
	if err != nil {
		l.err = err
		return nil, err
	}
	if bytes.HasPrefix(line, headerMark) {
		l.head = append(l.head[:0], line...)
		return nil, l.fail("%w", ErrHeader)
	}
	seq, time, batch := l.rec.Event.Seq, l.rec.Event.Time, l.rec.Batch
	if err := l.event.read(l.upcast(line), &l.rec, &l.target); err != nil {
		return nil, l.fail("%w", err)
	}
	switch e := &l.rec.Event; {
	case e.Seq != seq+1:
		return nil, l.fail("seq %d, want %d", e.Seq, seq+1)
	case e.Time < time:
		return nil, l.fail("time %v after %v, want a time that does not fall", e.Time, time)
	case l.rec.Batch < max(batch, 1):
		return nil, l.fail("batch %d, want at least %d", l.rec.Batch, max(batch, 1))
	}
	return &l.rec, nil
}

// Records returns the rest of the log as a sequence, which ends after the last event or with an error. Records are
// valid for one turn, as with Next.
func (l *Reader) Records() iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		for {
			rec, err := l.Next()
			//nolint:errorlint // at the end Next returns io.EOF itself; a reader's fault that wraps it is no end
			if err == io.EOF || !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

// Part is Records up to the next header.
func (l *Reader) Part() iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		for rec, err := range l.Records() {
			if errors.Is(err, ErrHeader) || !yield(rec, err) {
				return
			}
		}
	}
}

func (l *Reader) fail(format string, args ...any) error {
	l.err = fmt.Errorf("log: %s: line %d: %w", l.name, l.line, fmt.Errorf(format, args...))
	return l.err
}

// next returns the next line without its newline, valid until the next call; io.EOF if there is none.
func (l *Reader) next() ([]byte, error) {
	l.line++
	l.long = l.long[:0]
	for {
		part, err := l.in.ReadSlice('\n')
		if len(l.long)+len(bytes.TrimSuffix(part, []byte("\n"))) > MaxLine {
			return nil, l.fail("more than %d bytes, want at most that", MaxLine)
		}
		switch {
		case err == nil && len(l.long) == 0:
			return part[:len(part)-1], nil
		case err == nil || errors.Is(err, bufio.ErrBufferFull):
			l.long = append(l.long, part...)
			if err == nil {
				return l.long[:len(l.long)-1], nil
			}
		case err == io.EOF && len(l.long)+len(part) == 0:
			return nil, io.EOF
		case err == io.EOF:
			return nil, l.fail("%w", ErrCutShort)
		default:
			return nil, l.fail("%w", err)
		}
	}
}

func (l *Reader) upcast(line []byte) []byte {
	for _, u := range l.steps {
		line = u.line(line)
	}
	return line
}

// schemaOf returns the schema that a header names, which it must do before anything else; "" if it does not.
func schemaOf(line []byte) string {
	var s scan
	s.reset(line)
	schema := ""
	s.object(func(key []byte) bool {
		if string(key) != "schema" {
			return false
		}
		schema = s.text()
		s.stop = true
		return true
	})
	return schema
}

// stepsFrom returns the upcasters that lead from schema to Schema.
func stepsFrom(schema string, all []upcaster) ([]upcaster, error) {
	if schema == Schema {
		return nil, nil
	}
	for i := range all {
		if all[i].from == schema {
			return all[i:], nil
		}
	}
	stem, ours, _ := strings.Cut(Schema, "/v")
	current, _ := strconv.Atoi(ours)
	if version, ok := strings.CutPrefix(schema, stem+"/v"); ok {
		if n, err := strconv.Atoi(version); err == nil && n > current {
			return nil, fmt.Errorf("schema %s %w, want %s or older", schema, ErrNewer, Schema)
		}
	}
	return nil, fmt.Errorf(`schema %q, want a header that starts with {"schema":%q`, schema, Schema)
}

// readHeader reads the first line.
func readHeader(s *scan, h *Header) {
	s.object(func(key []byte) bool {
		return readHeaderText(s, key, h) || readHeaderNumber(s, key, h) || readHeaderPart(s, key, h)
	})
}

func readHeaderText(s *scan, key []byte, h *Header) bool {
	switch string(key) {
	case "schema":
		began := s.text()
		if h.Schema = Schema; began != Schema {
			h.Since, _ = strconv.Atoi(strings.TrimPrefix(began, stem))
		}
	case "version":
		h.Version = s.text()
	case "origin":
		h.Origin = s.text()
	case "zone":
		h.Zone = s.text()
	case "trace":
		h.Trace = s.text()
	case "cluster":
		h.Cluster = s.text()
	case "system":
		h.System = s.text()
	case "preset":
		h.Preset = s.text()
	default:
		return false
	}
	return true
}

func readHeaderNumber(s *scan, key []byte, h *Header) bool {
	switch string(key) {
	case "round":
		h.Round = s.duration()
		s.want(h.Round >= 0, ">= 0")
	case "budget":
		h.Budget = s.float(64)
		s.want(h.Budget >= 0, ">= 0")
	case "node_gpus":
		h.NodeGPUs = s.count(32)
	case "gpus":
		h.GPUs = s.count(32)
	case "share_limit":
		h.ShareLimit = s.count(16)
	case "seed":
		h.Seed = s.unsigned()
	default:
		return false
	}
	return true
}

func readHeaderPart(s *scan, key []byte, h *Header) bool {
	switch string(key) {
	case "settings":
		h.Settings = s.settings()
	case "types":
		h.Types = s.texts()
	case "pools":
		s.array(func() { h.Pools = append(h.Pools, *readPoolSpec(s)) })
	case "state":
		h.State = s.bytes()
	default:
		return false
	}
	return true
}

// count reads a whole number of so many bits that is not below 0.
func (s *scan) count(bits int) int {
	n := int(s.integer(bits))
	s.want(n >= 0, ">= 0")
	return n
}

// bytes reads a text that stands for bytes.
func (s *scan) bytes() []byte {
	b, err := base64.StdEncoding.DecodeString(s.text())
	if err != nil {
		s.fail("%v, want base64", err)
	}
	return b
}

func (s *scan) settings() map[string]string {
	m := make(map[string]string)
	s.object(func(key []byte) bool {
		name := string(key)
		m[name] = s.text()
		return true
	})
	return m
}
