package local

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/trainyard/trainyard/attempt/progress"
	"github.com/trainyard/trainyard/driver/local/beneath"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/sched"
)

// Limits of the reading.
const (
	readEvery   = 200 * time.Millisecond
	reportEvery = 10 * time.Second // at most so often in the log, unless Options say otherwise
	// readFully is how many bytes of an output are looked at line by line each time. A job that writes more than that
	// in readEvery, which is 20 MB/s, has something else to say than its progress, and takes no processor from others:
	// of the rest only lines made for us are read.
	readFully = 4 << 20
)

// odometerFile keeps of a job, in its folder, how its progress is counted and how fast it was. It is no part of the
// log: without it a job is measured again.
const odometerFile = "odometer.json"

// maxOdometer bounds that file in bytes.
const maxOdometer = 1 << 20

// odometer returns that of a job: known is the work that the log knows of.
func (d *Driver) odometer(job sched.JobID, known time.Duration) *progress.Odometer {
	if o := d.runs.progress[job]; o != nil {
		return o
	}
	var kept progress.Kept
	path := filepath.Join("jobs", strconv.Itoa(int(job)), odometerFile)
	b, err := beneath.Read(string(d.o.State), path, maxOdometer)
	if err == nil {
		err = json.Unmarshal(b, &kept)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.o.Log.Warn("the speed of a job is measured again", "job", job, "error", fmt.Errorf("%s: %w", path, err))
		kept = progress.Kept{}
	}
	want := int(d.view.Jobs[job].Unit()) // as it arrived, whatever its user wants since
	d.runs.progress[job] = progress.NewOdometer(want, kept, known)
	d.runs.progress[job].Apart = d.o.Report / 2
	return d.runs.progress[job]
}

// keepOdometer writes down what is to be known of the job later.
func (a *attempt) keepOdometer() {
	name := filepath.Join("jobs", strconv.Itoa(int(a.job)), odometerFile)
	if err := a.d.o.State.Save(name, a.odo.Kept); err != nil {
		a.d.o.Log.Warn("the speed of a job cannot be kept", "job", a.job, "error", err)
	}
}

// countTenants lets the attempts know how many jobs compute on their GPUs.
func (d *Driver) countTenants() {
	up := make(map[sched.GPUID]int32)
	for job := range d.runs.live {
		if int(job) < len(d.view.Jobs) && d.view.Jobs[job].Up {
			for _, g := range d.view.Jobs[job].GPUs {
				up[g]++
			}
		}
	}
	for job, a := range d.runs.live {
		most := int32(1)
		if int(job) < len(d.view.Jobs) {
			for _, g := range d.view.Jobs[job].GPUs {
				most = max(most, up[g])
			}
		}
		a.tenants.Store(most)
	}
}

// tail reads how far an attempt is from what it writes: its output, errors included, its file of progress, and what it
// posts.
type tail struct {
	a      *attempt
	sink   func(sched.Event) // takes what is reported; nil = no one listens
	reader *progress.Reader
	files  [2]*os.File // by source; nil = not there yet
	posts  chan []byte // lines that it posted
	done   bool        // it said that it has done all
	ready  bool        // it said that all it has done is saved, and has made no step since
	epoch  int64       // the last that ended
	again  bool        // none is known of this attempt yet
	behind bool        // what is read was written long ago, for all that is known before an end was asked for
	// caughtUp: what was written before the tail started is read. All of it counts, for no one reads it again.
	caughtUp bool
	total    int64 // steps in all, as it says; 0 = not known
	reported time.Time
	tried    time.Time // to count them
	folder   string    // in which the job saves; "" = it is not looked at
	savings  savings
	slow     bool // it was reported that its pattern is
	quit     chan struct{}
	over     chan struct{}
}

// sources are the files that a tail reads.
var sources = [...]progress.Source{progress.Output, progress.File}

// readerOf returns what reads the logs of an order's job.
func readerOf(o *shim.Order) *progress.Reader {
	from, _ := progress.ParseFrom(o.Progress) // else all logs
	r := progress.NewReader(from)
	// it was looked at when the job was submitted
	if p, err := progress.ParsePattern(o.Pattern); o.Pattern != "" && err == nil {
		r.Match(p)
		r.Bound(threadTime)
	}
	return r
}

// newTail returns the tail of an attempt whose logs are read by reader.
func newTail(a *attempt, reader *progress.Reader, report func(sched.Event)) *tail {
	return &tail{a: a, sink: report, reader: reader, epoch: a.epoch, again: !a.adopted,
		behind: a.adopted && a.epoch == 0, posts: make(chan []byte), quit: make(chan struct{}),
		over: make(chan struct{})}
}

// run reads on until stop is called or the driver closes.
func (t *tail) run() {
	defer close(t.over)
	defer t.listen()()
	tick := time.NewTicker(min(readEvery, cmp.Or(t.a.d.o.Report, readEvery)))
	defer tick.Stop()
	for {
		select {
		case <-t.a.d.quit:
			return
		case <-t.quit:
			return
		case <-tick.C:
			t.read(t.quit)
		case body := <-t.posts:
			t.heard(body)
		}
	}
}

// stop ends run and reads the rest, as far as no one has to wait for it.
func (t *tail) stop() {
	close(t.quit)
	<-t.over
	t.finish()
}

// lastRead is how much of an output is read at the end of an attempt. What was written before that and not read yet is
// passed over: an end, and the GPUs that it frees, wait for no reading.
const lastRead = 4 << 20

// finish reads what there is to its end.
func (t *tail) finish() {
	for i, source := range sources {
		t.near(i, source)
	}
	t.caughtUp = true
	t.read(nil)
	for i, source := range sources {
		t.note(t.reader.End(source), time.Now()) // its last words may lack a newline
		if t.files[i] != nil {
			_ = t.files[i].Close()
		}
	}
	t.a.odo.Measure()
}

// keep writes down what later attempts are to know, if there is anything.
func (t *tail) keep() {
	if len(t.a.odo.Paces) > 0 || t.a.odo.SavedSteps > 0 || t.a.odo.FirstStep > 0 ||
		t.a.odo.Origin.Saved > 0 {
		t.a.keepOdometer()
	}
}

// save has the tail look at where the job of an order saves.
func (t *tail) save(o *shim.Order) {
	t.folder, t.savings.started = o.Checkpoint(), time.Now()
	if starting, err := t.a.dir.Starting(); err == nil {
		t.savings.started = starting.At.Add(-tick)
	}
}

// near goes near the end of what was written, if more is left to read than that.
func (t *tail) near(i int, source progress.Source) {
	if t.files[i] == nil {
		t.open(i, source)
	}
	if t.files[i] == nil {
		return
	}
	at, err := t.files[i].Seek(0, io.SeekCurrent)
	info, unknown := t.files[i].Stat()
	if err != nil || unknown != nil || info.Size()-at <= lastRead {
		return
	}
	t.judgeHead()
	_ = t.reader.End(source) // the line that it is in
	_, _ = t.files[i].Seek(info.Size()-lastRead, io.SeekStart)
}

// lastWords is how much of an output is read of an attempt that is over.
const lastWords = 64 << 10

// skip goes to the last words of what was written, which may be gigabytes. What the middle of a log counts is not
// known: only lines made for us are read.
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
	name := filepath.Base(t.a.dir.Output())
	if source == progress.File {
		name = "progress.jsonl"
	}
	if f, err := t.a.dir.Open(name); err == nil { // the job may have put anything in its place
		t.files[i] = f
	}
}

// read reads what was written since, until enough is closed: then the rest is left for later. So it is where a pattern
// has taken its time for now before all is read that was there at first.
func (t *tail) read(enough <-chan struct{}) {
	runtime.LockOSThread() // for its clock
	defer runtime.UnlockOSThread()
	defer t.noteDropped()
	now := time.Now()
	t.a.odo.Share(int(t.a.tenants.Load()))
	var b [32 << 10]byte
	for i, source := range sources {
		if t.files[i] == nil {
			t.open(i, source)
		}
		for sum := 0; t.files[i] != nil && !isClosed(t.a.d.quit); {
			if isClosed(enough) || !t.caughtUp && t.reader.Spent() {
				return
			}
			passHole(t.files[i])
			n, err := t.files[i].Read(b[:])
			t.take(source, b[:n], now)
			sum += n
			t.reader.Skim(sum >= readFully && t.caughtUp)
			if n == 0 || err != nil && err != io.EOF {
				break
			}
		}
		t.reader.Skim(false)
	}
	t.behind, t.caughtUp = false, true
	t.watch(now)
}

// passHole goes on with what is kept of a file: the middle of a long output is given back to the disk.
func passHole(f *os.File) {
	at, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return
	}
	from, _, err := shim.Data(f, at)
	if err != nil || from == math.MaxInt64 {
		from = at
	}
	_, _ = f.Seek(from, io.SeekStart)
}

// noteDropped notes that the pattern of the job is no longer used.
func (t *tail) noteDropped() {
	if t.slow || !t.reader.Dropped() {
		return
	}
	t.slow = true
	why := fmt.Sprintf("its progress pattern took more than %v of a processor in a second and is no longer used; "+
		"lines made for trainyard still count", progress.PatternTime)
	t.a.d.o.Log.Warn("the progress pattern of a job is dropped", "job", t.a.job, "why", why)
	t.a.d.runs.remark(t.a.job, why)
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
	t.ready = m.Has&progress.Ready != 0 || t.ready && m.Has&progress.Step == 0
	if m.Has&progress.Total != 0 {
		t.total = m.Total
	}
	if t.a.odo.See(now, &m) && now.Sub(t.reported) >= cmp.Or(t.a.d.o.Report, reportEvery) &&
		now.Sub(t.tried) >= readEvery &&
		t.a.odo.Known() {
		t.tried = now
		t.measured(now)
	}
	if m.Has&progress.Epoch != 0 {
		t.ended(int64(m.Epoch))
	}
	t.saw(&m, now)
}

// ended says that n epochs have ended, if that is news. A job that resumes says first where it is: what it has lost
// ends again.
func (t *tail) ended(n int64) {
	if t.again && n <= t.epoch {
		t.epoch = n
	}
	t.again = false
	if n <= t.epoch {
		return
	}
	if t.epoch = n; !t.behind {
		t.report(sched.Event{Kind: sched.EpochEnded, Value: float64(n)})
	}
}

// measured says how far the job is and how fast. What such rates mean is kept before the log has any. How many steps
// there are in all is reported where that says how long the job takes alone: whoever compares with that must not take
// it from a job that was slowed down by others whenever it was measured. A job that was measured otherwise, on other
// GPUs or next to others, says nothing before it is measured as it runs now: a guess would be taken for what is so.
func (t *tail) measured(now time.Time) {
	o := t.a.odo
	if o.Measure() {
		t.a.keepOdometer()
	}
	if o.Reference > 0 && !o.Measured() {
		return
	}
	t.reported = now
	t.report(t.progressed(o.Rate()))
}

// progressed says how far the job is; rate 0 = and not how fast.
func (t *tail) progressed(rate float64) sched.Event {
	o := t.a.odo
	e := sched.Event{Kind: sched.Progressed, Work: o.Work(), Rate: rate, Value: float64(o.Steps())}
	if o.Alone() {
		e.Code = int32(min(t.total, math.MaxInt32))
	}
	return e
}

func (t *tail) report(e sched.Event) {
	if t.sink != nil {
		t.sink(e)
	}
}
