package local

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainyard/trainyard/sched"
)

// Progress is read from the lines a job writes, see docs/jobs.md:
//
//	TRAINYARD step=120 epoch=3 ...
//	TRAINYARD done ...
const progressMark = "TRAINYARD "

// Limits of the reading.
const (
	readEvery  = 200 * time.Millisecond
	tellEvery  = 10 * time.Second // at most so often in the log
	maxReading = 4 << 10          // bytes of a line that is looked at, and one
)

// odometer is what is known of the progress of a job, over all its attempts.
type odometer struct {
	step  int64         // last
	steps float64       // seen to be done
	took  time.Duration // by them
	known time.Duration // work that the log knows of, until steps tell
}

// maxWork bounds what lines out of their senses add up to.
const maxWork = 100 * 365 * 24 * time.Hour

// work returns the time that the steps done so far take, without those that were lost and done again.
func (o *odometer) work() time.Duration {
	if o.steps == 0 {
		return o.known
	}
	return time.Duration(min(float64(o.step)*float64(o.took)/o.steps, float64(maxWork)))
}

// tail reads what an attempt writes.
type tail struct {
	a     *attempt
	tell  func(sched.Event) // nil = nobody listens
	file  *os.File
	line  []byte // begun, not ended
	done  bool   // it said that it has done all
	epoch int64
	first time.Time // of the reading that met the first step: what was written before is no measure
	last  time.Time // of the last step
	told  time.Time
	quit  chan struct{}
	over  chan struct{}
}

func newTail(a *attempt, tell func(sched.Event)) *tail {
	return &tail{a: a, tell: tell, epoch: a.epoch, quit: make(chan struct{}), over: make(chan struct{})}
}

// run reads on until stop is called or the driver closes.
func (t *tail) run() {
	defer close(t.over)
	tick := time.NewTicker(readEvery)
	defer tick.Stop()
	for {
		select {
		case <-t.a.d.quit:
			return
		case <-t.quit:
			return
		case <-tick.C:
			t.read()
		}
	}
}

// stop ends run and reads the rest.
func (t *tail) stop() {
	close(t.quit)
	<-t.over
	t.finish()
}

// finish reads what there is to its end.
func (t *tail) finish() {
	t.read()
	if len(t.line) < maxReading { // its last words may lack a newline
		t.see(string(t.line), time.Now())
	}
	if t.file != nil {
		_ = t.file.Close()
	}
}

// lastWords is how much of an output is read of an attempt that is over.
const lastWords = 64 << 10

// skip goes to the last words of what was written, which may be gigabytes.
func (t *tail) skip() {
	f, err := openRegular(t.a.dir.Output())
	if err != nil {
		return
	}
	if info, err := f.Stat(); err == nil && info.Size() > lastWords {
		_, _ = f.Seek(-lastWords, io.SeekEnd) // else all of it is read
	}
	t.file = f
}

func (t *tail) read() {
	if t.file == nil {
		f, err := openRegular(t.a.dir.Output())
		if err != nil {
			return
		}
		t.file = f
	}
	now := time.Now()
	var b [32 << 10]byte
	for {
		n, err := t.file.Read(b[:])
		t.take(b[:n], now)
		if n == 0 || err != nil && err != io.EOF || isClosed(t.a.d.quit) {
			return
		}
	}
}

// openRegular opens a file for reading. The job may have put anything in its place, which must not stop us: not a pipe
// that waits for a writer, nor a link.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = f.Close()
		return nil, fmt.Errorf("%s is no file: %w", path, err)
	}
	return f, nil
}

// take looks at the lines that end in b, read now. Long lines are passed over.
func (t *tail) take(b []byte, now time.Time) {
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		part := b
		if i >= 0 {
			part = b[:i]
		}
		t.line = append(t.line, part[:min(len(part), maxReading-len(t.line))]...)
		if i < 0 {
			return
		}
		if len(t.line) < maxReading {
			t.see(string(t.line), now)
		}
		t.line, b = t.line[:0], b[i+1:]
	}
}

// see notes what a line says. What it does not know it passes over.
func (t *tail) see(line string, now time.Time) {
	rest, ok := strings.CutPrefix(line, progressMark)
	if !ok {
		return
	}
	for _, word := range strings.Fields(rest) {
		name, text, _ := strings.Cut(word, "=")
		n, err := strconv.ParseInt(text, 10, 64)
		switch {
		case word == "done":
			t.done = true
		case err != nil || n < 0:
		case name == "step":
			t.step(n, now)
		case name == "epoch" && n > t.epoch && n <= math.MaxInt32:
			t.epoch = n
			t.report(sched.Event{Kind: sched.EpochEnded, Value: float64(n)})
		}
	}
}

// step notes that n steps are done.
func (t *tail) step(n int64, now time.Time) {
	o := t.a.odo
	if t.first.IsZero() {
		t.first = now
	}
	if now.After(t.first) && n > o.step {
		o.steps += float64(n - o.step)
		o.took += now.Sub(t.last)
	}
	o.step, t.last = n, now
	if now.Sub(t.told) >= tellEvery && o.steps > 0 {
		t.told = now
		t.report(sched.Event{Kind: sched.Progressed, Work: o.work(), Rate: 1})
	}
}

func (t *tail) report(e sched.Event) {
	if t.tell != nil {
		t.tell(e)
	}
}
