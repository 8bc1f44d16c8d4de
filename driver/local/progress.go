package local

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

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
	maxReading = 4 << 10          // bytes of a line that are looked at
)

// odometer is what is known of the progress of a job, over all its attempts.
type odometer struct {
	step  int64         // last
	steps int64         // seen to be done
	took  time.Duration // by them
}

// work returns the time that the steps done so far take, without those that were lost and done again.
func (o *odometer) work() time.Duration {
	if o.steps == 0 {
		return 0
	}
	return time.Duration(float64(o.step) * float64(o.took) / float64(o.steps))
}

// tail reads what an attempt writes.
type tail struct {
	a     *attempt
	tell  func(sched.Event) // nil = nobody listens
	file  *os.File
	line  []byte // begun, not ended
	done  bool   // it said that it has done all
	epoch int64
	last  time.Time // of the last step
	told  time.Time
	quit  chan struct{}
	over  chan struct{}
}

func newTail(a *attempt, tell func(sched.Event)) *tail {
	return &tail{a: a, tell: tell, quit: make(chan struct{}), over: make(chan struct{})}
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
	if t.file != nil {
		_ = t.file.Close()
	}
}

func (t *tail) read() {
	if t.file == nil {
		f, err := os.Open(t.a.dir.Output())
		if err != nil {
			return
		}
		t.file = f
	}
	var b [32 << 10]byte
	for {
		n, err := t.file.Read(b[:])
		t.take(b[:n])
		if n == 0 || err != nil && err != io.EOF {
			return
		}
	}
}

// take looks at the lines that end in b. Of a long line only the beginning is kept.
func (t *tail) take(b []byte) {
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
		t.see(string(t.line))
		t.line, b = t.line[:0], b[i+1:]
	}
}

// see notes what a line says. What it does not know it passes over.
func (t *tail) see(line string) {
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
			t.step(n, time.Now())
		case name == "epoch" && n > t.epoch:
			t.epoch = n
			t.report(sched.Event{Kind: sched.EpochEnded, Value: float64(n)})
		}
	}
}

// step notes that n steps are done.
func (t *tail) step(n int64, now time.Time) {
	o := t.a.odo
	if !t.last.IsZero() && n > o.step {
		o.steps += n - o.step
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
