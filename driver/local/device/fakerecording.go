package device

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
)

// Replay plays a recording back: each sample once, in order, with the times at which they were taken. When it is over,
// samples fail with io.EOF.
type Replay struct {
	list    []Device
	mu      sync.Mutex
	samples []Sample // to come
}

var _ Backend = (*Replay)(nil)

// maxLine bounds a line of a recording: a sample of hundreds of devices with hundreds of processes each.
const maxLine = 4 << 20

// ReadRecording reads lines of JSON, as Recording writes them: the list of devices, then a sample each, in order of
// time. Name is that of the file, for errors.
func ReadRecording(r io.Reader, name string) (*Replay, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	p := &Replay{}
	for n := 1; lines.Scan(); n++ {
		err := p.line(lines.Bytes(), n == 1)
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", name, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(p.list) == 0 {
		return nil, fmt.Errorf("%s: no devices, want a first line that lists some", name)
	}
	return p, nil
}

// line takes one line of a recording.
func (p *Replay) line(b []byte, first bool) error {
	if first {
		if err := json.Unmarshal(b, &p.list); err != nil {
			return fmt.Errorf("%w; want the list of devices", err)
		}
		return unique(p.list)
	}
	var s Sample
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	if n := len(p.samples); n > 0 && s.At.Before(p.samples[n-1].At) {
		return fmt.Errorf("at %v, want no time before that of the last sample", s.At)
	}
	for name, r := range s.Readings {
		if err := r.validate(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	p.samples = append(p.samples, s)
	return nil
}

// validate returns the first thing wrong with r.
func (r *Reading) validate() error {
	for _, x := range []float64{r.UsedMiB, r.Use, r.Watts, r.Joules, r.Celsius} {
		if !(x >= 0) && x != Unknown {
			return fmt.Errorf("number %v, want one >= 0, or %d where it is unknown", x, Unknown)
		}
	}
	if r.Use > 1 {
		return fmt.Errorf("use %v, want 0 to 1", r.Use)
	}
	return nil
}

// List returns the devices of the recording.
func (p *Replay) List(context.Context) ([]Device, error) { return slices.Clone(p.list), nil }

// Sample returns the next sample; io.EOF after the last.
func (p *Replay) Sample(context.Context) (*Sample, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.samples) == 0 {
		return nil, io.EOF
	}
	s := &p.samples[0]
	p.samples = p.samples[1:]
	return s, nil
}

// Locks returns none.
func (*Replay) Locks() string { return "" }

// Node returns none.
func (*Replay) Node(*Device) string { return "" }

// Env returns nothing.
func (*Replay) Env([]Device) []string { return nil }

// Recording writes down what a backend says, for Replay.
type Recording struct {
	Backend
	mu  sync.Mutex
	out *json.Encoder
}

// Record starts a recording of b: it writes the list of devices, and from then on each sample as it is taken.
func Record(ctx context.Context, b Backend, w io.Writer) (*Recording, error) {
	list, err := b.List(ctx)
	if err != nil {
		return nil, err
	}
	r := &Recording{Backend: b, out: json.NewEncoder(w)}
	return r, r.out.Encode(list)
}

// Sample takes a sample and writes it down. One that fails is not.
func (r *Recording) Sample(ctx context.Context) (*Sample, error) {
	s, err := r.Backend.Sample(ctx)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return s, r.out.Encode(s)
}
