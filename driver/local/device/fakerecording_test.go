package device

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Ensure that what is recorded plays back as it was.
func TestRecording(t *testing.T) {
	f := NewFake(Device{Name: "A", Type: "h", MemoryGB: 80, LimitW: 700}, Device{Name: "B", Type: "h"})
	var out bytes.Buffer
	rec, err := Record(t.Context(), f, &out)
	if err != nil {
		t.Fatal(err)
	}
	var want []*Sample
	for _, r := range []Reading{users(7, 200), Blank(), {Use: .5, Watts: 1e-3, Throttle: 5, Lost: "x", Display: true}} {
		f.Set("A", r)
		s, failed := rec.Sample(t.Context())
		if failed != nil {
			t.Fatal(failed)
		}
		want = append(want, s)
	}
	f.Fail(errors.New("no"))
	if _, err = rec.Sample(t.Context()); err == nil {
		t.Error("no error of the one that is recorded")
	}
	p, err := ReadRecording(&out, "rec")
	if err != nil {
		t.Fatal(err)
	}
	list, err := p.List(t.Context())
	if err != nil || !reflect.DeepEqual(list, f.list) {
		t.Errorf("%+v, %v, want %+v", list, err, f.list)
	}
	for _, w := range want {
		got, failed := p.Sample(t.Context())
		if failed != nil || !got.At.Equal(w.At) || !reflect.DeepEqual(got.Readings, w.Readings) {
			t.Errorf("%+v, %v, want %+v", got, failed, w)
		}
	}
	if _, err = p.Sample(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("%v, want EOF", err)
	}
}

const devicesLine = `[{"name":"A","type":"h"}]` + "\n"

// Ensure that a recording that is not one is refused with its line.
func TestBadRecordings(t *testing.T) {
	for text, want := range map[string]string{
		"": "rec: no devices, want a first line that lists some",
		"{}\n": "rec: line 1: json: cannot unmarshal object into Go value of type " +
			"[]device.Device; want the list of devices",
		`[{"name":"A"},{"name":"A"}]`: "rec: line 1: A twice, want each device once",
		devicesLine + "x":             "rec: line 2: invalid character 'x' looking for",
		devicesLine + `{"at":"2026-01-02T00:00:00Z"}` + "\n" + `{"at":"2026-01-01T00:00:00Z"}`: "rec: line 3: at " +
			"2026-01-01 00:00:00 +0000 UTC, want no time before that of the last sample",
		devicesLine + `{"readings":{"A":{"watts":-5}}}`: "rec: line 2: A: " +
			"number -5, want one >= 0, or -1 where it is unknown",
		devicesLine + `{"readings":{"A":{"use":2}}}`: "rec: line 2: A: use " +
			"2, want 0 to 1",
	} {
		_, err := ReadRecording(strings.NewReader(text), "rec")
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// FuzzRecording has any text read as a recording: it is refused, or plays back as it would be recorded.
func FuzzRecording(f *testing.F) {
	f.Add(devicesLine + `{"at":"2026-01-02T00:00:00Z","readings":{"A":{"watts":5,"processes":[{"pid":1,"mib":-3}]}}}`)
	f.Add(devicesLine + `{"partial":true}`)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ReadRecording(strings.NewReader(text), "rec")
		if err != nil {
			return
		}
		w := NewWatch(DefaultRule, p.list)
		var m Meter
		for s, err := p.Sample(t.Context()); err == nil; s, err = p.Sample(t.Context()) {
			w.See(s, owners(false))
			m.See(s)
		}
		for name, mean := range m.Take() {
			if !(mean.Use >= 0 && mean.Use <= 1.000001) && mean.Use != Unknown {
				t.Errorf("%s: use %v", name, mean.Use)
			}
		}
	})
}

// Ensure that all who ask while a look is under way share the next one, and that a look that hangs holds no one up for
// long, nor is started twice.
func TestSampler(t *testing.T) {
	t.Parallel()
	f := NewFake(Device{Name: "A"})
	counted := &counting{Fake: f}
	s := NewSampler(counted, 50*time.Millisecond)
	defer s.Close()
	answer := f.Hang()
	for range 3 {
		if _, err := s.Sample(t.Context()); err == nil || err.Error() != "no look at the devices within 50ms" {
			t.Fatalf("%v, want it given up", err)
		}
	}
	if counted.calls() != 1 {
		t.Errorf("%d looks started, want the one that hangs", counted.calls())
	}
	s.patience = time.Minute
	answers := make(chan *Sample, 20)
	for range cap(answers) {
		go func() {
			got, err := s.Sample(t.Context())
			if err != nil {
				t.Error(err)
			}
			answers <- got
		}()
	}
	time.Sleep(10 * time.Millisecond)
	f.Set("A", users(7))
	answer()
	for range cap(answers) {
		if got := <-answers; got == nil || len(got.Readings["A"].Processes) != 1 {
			t.Errorf("%+v, want what is there now", got)
		}
	}
	if n := counted.calls(); n > 1+cap(answers) {
		t.Errorf("%d looks", n)
	}
}

// counting counts the looks started.
type counting struct {
	*Fake
	n atomic.Int32
}

func (c *counting) calls() int { return int(c.n.Load()) }

func (c *counting) Sample(ctx context.Context) (*Sample, error) {
	c.n.Add(1)
	return c.Fake.Sample(ctx)
}

// Ensure that a session of two GPUs is followed as it went: B is held by a notebook at first, which leaves; someone
// calls and goes again; a job on A dies and its memory stays for a while; B is not looked at once, then lost, then
// back.
func TestSession(t *testing.T) {
	file, err := os.Open("testdata/session.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	p, err := ReadRecording(file, "session.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	w := NewWatch(DefaultRule, p.list)
	var reported []string
	last := []sched.GPUState{sched.GPUInUse, sched.GPUInUse}
	for s, err := p.Sample(t.Context()); err == nil; s, err = p.Sample(t.Context()) {
		o := owners(false)
		o.Held = func(name string) bool {
			return name == "A" && s.At.Minute() == 0 && s.At.Second() >= 15 && s.At.Second() < 60
		}
		w.See(s, o)
		for i := range last {
			if d := w.Of(i); d.State != last[i] {
				last[i] = d.State
				reported = append(reported, fmt.Sprintf("%s %s %d %s", s.At.Format("04:05"), d.Name, d.State, d.Why))
			}
		}
	}
	want := []string{"00:00 B 1 in use by process 200 (8.0 GiB)", "00:36 B 0 ", "01:02 A 3 87.9 GiB of its memory " +
		"are in use by no process",
		"01:20 B 2 it is not there", "01:26 A 0 ", "01:36 B 0 "}
	if !slices.Equal(reported, want) {
		t.Errorf("%q, want %q", reported, want)
	}
}
