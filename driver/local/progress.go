package local

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainyard/trainyard/driver/local/progress"
	"github.com/trainyard/trainyard/sched"
)

// Limits of the reading.
const (
	readEvery = 200 * time.Millisecond
	tellEvery = 10 * time.Second // at most so often in the log
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

// tail reads how far an attempt is from what it writes: its output, errors included, its file of progress, and what it posts.
type tail struct {
	a      *attempt
	tell   func(sched.Event) // nil = nobody listens
	reader *progress.Reader
	files  [2]*os.File // by source; nil = not there yet
	posts  chan []byte // lines that it posted
	done   bool        // it said that it has done all
	epoch  int64
	first  time.Time // of the reading that met the first step: what was written before is no measure
	last   time.Time // of the last step
	told   time.Time
	quit   chan struct{}
	over   chan struct{}
}

// sources are the files that a tail reads.
var sources = [...]progress.Source{progress.Output, progress.File}

func newTail(a *attempt, tell func(sched.Event)) *tail {
	return &tail{a: a, tell: tell, reader: progress.NewReader(progress.Auto), epoch: a.epoch,
		posts: make(chan []byte), quit: make(chan struct{}), over: make(chan struct{})}
}

// run reads on until stop is called or the driver closes.
func (t *tail) run() {
	defer close(t.over)
	defer t.listen()()
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
		case body := <-t.posts:
			t.heard(body)
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
	for i, source := range sources {
		t.note(t.reader.End(source), time.Now()) // its last words may lack a newline
		if t.files[i] != nil {
			_ = t.files[i].Close()
		}
	}
}

// lastWords is how much of an output is read of an attempt that is over.
const lastWords = 64 << 10

// skip goes to the last words of what was written, which may be gigabytes. What the middle of a log counts is not known: only
// lines made for us are read.
func (t *tail) skip() {
	t.reader = progress.NewReader(progress.Own)
	for i, source := range sources {
		t.open(i, source)
		if t.files[i] == nil {
			continue
		}
		if info, err := t.files[i].Stat(); err == nil && info.Size() > lastWords {
			_, _ = t.files[i].Seek(-lastWords, io.SeekEnd) // else all of it is read
		}
	}
}

// open opens a file, if it is there.
func (t *tail) open(i int, source progress.Source) {
	path := t.a.dir.Output()
	if source == progress.File {
		path = filepath.Join(string(t.a.dir), "progress.jsonl")
	}
	if f, err := openRegular(path); err == nil {
		t.files[i] = f
	}
}

// read reads what was written since.
func (t *tail) read() {
	now := time.Now()
	var b [32 << 10]byte
	for i, source := range sources {
		if t.files[i] == nil {
			t.open(i, source)
		}
		for t.files[i] != nil && !isClosed(t.a.d.quit) {
			n, err := t.files[i].Read(b[:])
			t.take(source, b[:n], now)
			if n == 0 || err != nil && err != io.EOF {
				break
			}
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

// take looks at the lines that end in b, read now.
func (t *tail) take(source progress.Source, b []byte, now time.Time) {
	for m := range t.reader.Read(source, b) {
		t.note(m, now)
	}
}

// note notes what a line says.
func (t *tail) note(m progress.Reading, now time.Time) {
	t.done = t.done || m.Has&progress.Done != 0
	if m.Has&progress.Step != 0 {
		t.step(m.Step, m.Anew, now)
	}
	if n := int64(m.Epoch); m.Has&progress.Epoch != 0 && n > t.epoch {
		t.epoch = n
		t.report(sched.Event{Kind: sched.EpochEnded, Value: float64(n)})
	}
}

// step notes that n steps are done, which may count something else than before.
func (t *tail) step(n int64, anew bool, now time.Time) {
	o := t.a.odo
	if t.first.IsZero() {
		t.first = now
	}
	if now.After(t.first) && n > o.step && !anew {
		o.steps += float64(n - o.step)
		o.took += now.Sub(t.last)
	}
	o.step, t.last = n, now
	if now.Sub(t.told) >= tellEvery && o.steps > 0 {
		t.told = now
		t.report(sched.Event{Kind: sched.Progressed, Work: o.work(), Rate: 1, Value: float64(o.step)})
	}
}

func (t *tail) report(e sched.Event) {
	if t.tell != nil {
		t.tell(e)
	}
}
