package eventlog

import (
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Schema names the format that Writer writes: by its number.
const (
	Schema = stem + "4"
	stem   = "trainyard.log/v"
)

// MaxLine is the longest line of a log in bytes, newline excluded: a Reader refuses a longer one. A line grows with the
// GPUs of a target only.
const MaxLine = 16 << 20

// Header is the first line of a log: what the cluster is at its start, nearly always empty, and what else a reader must
// know to replay the events behind it. A log may have several parts, each with a header of its own, where who wrote it
// started again.
type Header struct {
	Schema     string            // Schema; set by the writer
	Since      int               // number of the schema under which the log started; 0 = that of Schema
	Version    string            // of the program that wrote the log
	Origin     string            // what time 0 is: the first instant of a trace, or a date
	Zone       string            // time zone of weekly patterns and monthly budgets
	Trace      string            // "" = not from a trace
	Cluster    string            // as it was given
	System     string            // name of the system that decided
	Preset     string            // "" = none
	Round      time.Duration     // decisions at multiples of it only; 0 = the system's own
	Budget     float64           // GPUs that may be rented on average; 0 = none given
	NodeGPUs   int               // of the largest node that is owned or may be rented; 0 = unknown
	GPUs       int               // all that are owned or may be rented; 0 = unknown
	Settings   map[string]string // keys set, of system and runtime
	ShareLimit int               // tenants a GPU may have; 0 = 1
	Types      []string          // names of the GPU types by TypeID; nil = unknown
	Pools      []sched.PoolSpec  // by PoolID
	Seed       uint64            // of whatever was drawn at random
	State      []byte            // what the log goes on from, see Beginning; nil = an empty cluster
}

// Writer is a Sink that writes the log as lines of JSON, for people and machines: the header, then one event per
// line, as in
//
//	{"seq":7,"time":12.5,"batch":3,"event":"started","job":0,"attempt":1,"from":12.5,"rate":1}
//
// Times are exact decimal seconds, floats the shortest text that reads back as the same number ("NaN", "+Inf" and
// "-Inf" as strings), GPU sets arrays. Fields that are zero are left out, unless the kind of event gives zero a
// meaning; what the kind calls by a name of its own stands under that name (epoch, gpu, price, command, state). The
// batch is the number of the answer of the driver by which the event came or which caused it: events of one batch share
// one Decide. Nothing of an event is lost, so that Reader gives back what was written.
//
// It allocates nothing per event in steady state. After an error it writes nothing more; Close returns it.
type Writer struct {
	w     io.Writer
	buf   []byte // whole lines not yet written
	batch uint64
	err   error
}

var (
	_ Sink    = (*Writer)(nil)
	_ Batcher = (*Writer)(nil)
)

// flushAt is how many bytes Writer gathers before it writes them.
const flushAt = 64 << 10

// NewWriter returns a writer of a log that starts with h. It does not close w.
func NewWriter(w io.Writer, h Header) *Writer {
	l := &Writer{w: w, buf: make([]byte, 0, flushAt+4<<10)}
	l.line(AppendHeader(l.buf, h))
	return l
}

// BeginBatch notes that the events to come belong to the next batch.
func (l *Writer) BeginBatch() { l.batch++ }

// EndBatch returns the first error of all writes so far.
func (l *Writer) EndBatch() error { return l.err }

// Log writes event e.
func (l *Writer) Log(_ *sched.View, e *sched.Event) {
	if l.err == nil {
		l.line(AppendEvent(l.buf, max(l.batch, 1), e))
	}
}

// line takes buf, which is l.buf with one line appended.
func (l *Writer) line(buf []byte) {
	if n := len(buf) - len(l.buf); n > MaxLine {
		l.err = fmt.Errorf("log: write: a line has %d bytes, want at most %d", n, MaxLine)
		return
	}
	buf = append(buf, '\n')
	l.buf = buf
	if len(l.buf) >= flushAt {
		_ = l.Flush() // the first error sticks until Close
	}
}

// Flush writes what was gathered and returns the first error of all writes.
func (l *Writer) Flush() error {
	if l.err == nil && len(l.buf) > 0 {
		if _, err := l.w.Write(l.buf); err != nil {
			l.err = fmt.Errorf("log: write: %w", err)
		}
		l.buf = l.buf[:0]
	}
	return l.err
}

// Close writes what was gathered and returns the first error of all writes. It does not close the underlying writer.
func (l *Writer) Close() error { return l.Flush() }

// AppendHeader appends the first line of a log without its newline.
func AppendHeader(b []byte, h Header) []byte {
	h.Schema = Schema
	if h.Since > 0 { // it goes on as it started
		h.Schema = stem + strconv.Itoa(h.Since)
	}
	b = appendText(append(b, '{'), "schema", h.Schema)
	for _, f := range []struct{ name, text string }{{"version", h.Version}, {"origin", h.Origin}, {"zone", h.Zone},
		{"trace", h.Trace}, {"cluster", h.Cluster}, {"system", h.System}, {"preset", h.Preset}} {
		b = appendText(b, f.name, f.text)
	}
	if len(h.Settings) > 0 {
		b = append(key(b, "settings"), '{')
		for _, name := range slices.Sorted(maps.Keys(h.Settings)) {
			if b[len(b)-1] != '{' {
				b = append(b, ',')
			}
			b = appendQuoted(append(appendQuoted(b, name), ':'), h.Settings[name])
		}
		b = append(b, '}')
	}
	b = appendSeconds(b, "round", h.Round)
	b = appendFloat(b, "budget", h.Budget)
	b = appendInt(b, "node_gpus", h.NodeGPUs)
	b = appendInt(b, "gpus", h.GPUs)
	b = appendInt(b, "share_limit", h.ShareLimit)
	b = appendTexts(b, "types", h.Types)
	for i := range h.Pools {
		if b = append(b, ','); i == 0 {
			b = append(key(b[:len(b)-1], "pools"), '[')
		}
		b = append(appendPoolSpec(append(b, '{'), &h.Pools[i]), '}')
	}
	if len(h.Pools) > 0 {
		b = append(b, ']')
	}
	if h.Seed != 0 {
		b = strconv.AppendUint(key(b, "seed"), h.Seed, 10)
	}
	return append(appendText(b, "state", base64.StdEncoding.EncodeToString(h.State)), '}')
}

// AppendEvent appends e, which belongs to the given batch, as one line of the log without its newline.
func AppendEvent(b []byte, batch uint64, e *sched.Event) []byte {
	b = strconv.AppendUint(append(b, `{"seq":`...), e.Seq, 10)
	b = sched.AppendSeconds(append(b, `,"time":`...), time.Duration(e.Time))
	b = strconv.AppendUint(append(b, `,"batch":`...), batch, 10)
	b = appendWord(b, "event", e.Kind.String())
	f := formOf(e)
	b = appendID(b, "job", int32(e.Job), f.Job != sched.NotNamed)
	b = appendInt(b, "attempt", e.Attempt)
	if e.Outcome != sched.NoOutcome {
		b = appendWord(b, "outcome", e.Outcome.String())
	}
	b = appendID(b, "node", int32(e.Node), f.Node != sched.NotNamed)
	if f.Pool || e.Pool != 0 {
		b = strconv.AppendInt(key(b, "pool"), int64(e.Pool), 10)
	}
	b = f.appendValue(b, e.Value)
	b = f.appendCode(b, e.Code)
	b = appendSeconds(b, "at", time.Duration(e.At))
	b = appendSeconds(b, "work", e.Work)
	b = appendSeconds(b, f.fromKey(), time.Duration(e.WorkFrom))
	b = appendFloat(b, "rate", e.Rate)
	b = appendFloat32(b, "mem_gb", e.MemGB)
	if len(e.GPUs) > 0 || e.Kind == sched.Decided {
		b = appendIDs(b, "gpus", e.GPUs)
	}
	b = appendParts(b, e)
	return append(appendText(b, "text", e.Text), '}')
}

// appendParts appends what stands behind pointers, and the reason.
func appendParts(b []byte, e *sched.Event) []byte {
	if e.Spec != nil {
		b = append(appendJobSpec(append(key(b, "spec"), '{'), e.Spec), '}')
	}
	if e.Change != nil {
		b = append(appendChange(append(key(b, "change"), '{'), e.Change), '}')
	}
	if e.NodeSpec != nil {
		b = append(appendNodeSpec(append(key(b, "node_spec"), '{'), e.NodeSpec), '}')
	}
	if e.PoolSpec != nil {
		b = append(appendPoolSpec(append(key(b, "pool_spec"), '{'), e.PoolSpec), '}')
	}
	if e.Target != nil {
		b = append(appendTarget(append(key(b, "target"), '{'), e), '}')
	}
	if !sameReason(e.Why, sched.Reason{}) {
		b = appendReason(b, e.Why)
	}
	return b
}

// appendTarget appends the target of a decision. Its set is that of the event, and its job and reason are left out
// where they are as well.
func appendTarget(b []byte, e *sched.Event) []byte {
	t := e.Target
	if t.Job != e.Job {
		b = strconv.AppendInt(key(b, "job"), int64(t.Job), 10)
	}
	b = appendInt(b, "want", t.Want)
	b = appendInt(b, "batch", t.Batch)
	b = appendInt(b, "accum", t.Accum)
	b = appendFloat32(b, "lr_scale", t.LRScale)
	b = appendWordOf(b, "share", shareWords, int(t.Share))
	b = appendFloat(b, "cap_w", float64(t.Cap))
	if t.Trial {
		b = append(key(b, "trial"), "true"...)
	}
	b = appendWordOf(b, "at", boundaryWords, int(t.At))
	if !sameReason(t.Why, e.Why) {
		b = appendReason(b, t.Why)
	}
	return b
}

// sameReason compares numbers by their bits.
func sameReason(a, b sched.Reason) bool {
	return a.Code == b.Code && a.Job == b.Job && math.Float64bits(a.A) == math.Float64bits(b.A) &&
		math.Float64bits(a.B) == math.Float64bits(b.B)
}

func appendReason(b []byte, why sched.Reason) []byte {
	b = append(key(b, "why"), '{')
	if why.Code != sched.NoReason {
		b = appendWord(b, "code", why.Code.String())
	}
	if why.Job != 0 || why.Code == sched.WhyPreempted {
		b = strconv.AppendInt(key(b, "job"), int64(why.Job), 10)
	}
	b = appendFloat(b, "a", why.A)
	return append(appendFloat(b, "b", why.B), '}')
}

func appendJobSpec(b []byte, s *sched.JobSpec) []byte {
	b = appendText(b, "name", s.Name)
	b = appendText(b, "user", s.User)
	b = appendText(b, "group", s.Group)
	b = appendText(b, "model", s.Model)
	b = appendText(b, "class", s.Class)
	b = appendSeconds(b, "submit", time.Duration(s.Submit))
	b = appendInt(b, "priority", s.Priority)
	b = appendWidths(b, s.GPUs)
	if r := s.Batch; r != (sched.BatchRange{}) {
		b = appendIDs(b, "batch", []int32{r.Min, r.Max, r.PerGPU})
	}
	b = appendTypes(b, "types", s.Types)
	b = appendFloat32(b, "cpus", s.CPUs)
	b = appendFloat32(b, "memory_gb", s.MemoryGB)
	b = appendFloat32(b, "gpu_memory_gb", s.GPUMemGB)
	b = appendWordOf(b, "share", consentWords, int(s.Share))
	b = appendInt(b, "epochs", s.Epochs)
	b = appendFloat32(b, "util", s.Util)
	b = appendInt(b, "retries", s.Retries)
	if s.Saves {
		b = append(key(b, "saves"), "true"...)
	}
	b = appendWordOf(b, "preemptible", preemptWords, int(s.Preempt))
	b = appendSeconds(b, "wall_time", s.WallTime)
	b = appendSeconds(b, "deadline", time.Duration(s.Deadline))
	b = appendSeconds(b, "not_before", time.Duration(s.NotBef))
	if len(s.After) > 0 {
		b = appendIDs(b, "after", s.After)
	}
	b = appendTies(b, &s.Ties)
	return appendText(appendText(b, "task", s.Task), "key", s.Key)
}

// appendTies appends what is between a job and others, where something is.
func appendTies(b []byte, t *sched.Ties) []byte {
	if len(t.AfterOK) > 0 {
		b = appendIDs(b, "after_ok", t.AfterOK)
	}
	if len(t.AfterFail) > 0 {
		b = appendIDs(b, "after_fail", t.AfterFail)
	}
	if a := t.Array; a != (sched.Array{}) {
		b = appendIDs(b, "array", []int32{a.Place, a.Index, a.Size, a.AtOnce})
	}
	return b
}

// appendWidths appends a range of widths, as one number if the gang is rigid.
func appendWidths(b []byte, r sched.Range) []byte {
	if r.Min == r.Want && r.Want == r.Max {
		return strconv.AppendInt(key(b, "gpus"), int64(r.Want), 10)
	}
	return appendIDs(b, "gpus", []int32{r.Min, r.Want, r.Max})
}

func appendChange(b []byte, c *sched.JobChange) []byte {
	b = appendWidths(b, c.GPUs)
	b = appendInt(b, "priority", c.Priority)
	b = appendSeconds(b, "wall_time", c.WallTime)
	if b = appendSeconds(b, "deadline", time.Duration(c.Deadline)); c.Spec != nil {
		b = append(appendJobSpec(append(key(b, "spec"), '{'), c.Spec), '}')
	}
	return b
}

func appendNodeSpec(b []byte, s *sched.NodeSpec) []byte {
	b = appendText(b, "name", s.Name)
	b = strconv.AppendInt(key(b, "gpus"), int64(s.GPUs), 10)
	b = appendInt(b, "type", s.Type)
	b = appendInt(b, "rack", s.Rack)
	b = appendID(b, "pool", int32(s.Pool), true)
	b = appendFloat32(b, "cpus", s.CPUs)
	b = appendFloat32(b, "memory_gb", s.MemoryGB)
	b = appendFloat32(b, "gpu_memory_gb", s.GPUMemGB)
	b = appendWordOf(b, "sharing", sharingWords, int(s.Sharing))
	b = appendFloat(b, "idle_w", float64(s.IdleW))
	b = appendFloat(b, "busy_gpu_w", float64(s.BusyGPUW))
	b = appendFloat(b, "sleep_w", float64(s.SleepW))
	b = appendCurve(b, &s.Curve)
	b = appendSeconds(b, "wake", s.Wake)
	b = appendFloat(b, "dollars_hr", float64(s.DollarsHr))
	return appendTexts(b, "devices", s.Devices)
}

// appendCurve appends a power curve: its points as one array of uses and watts in turn.
func appendCurve(b []byte, c *sched.PowerCurve) []byte {
	b = appendFloat(b, "curve_scale_w", float64(c.Scale))
	b = appendFloat(b, "curve_exponent", c.Exponent)
	if len(c.Points) == 0 {
		return b
	}
	b = append(key(b, "curve_points"), '[')
	for i, p := range c.Points {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendNumber(b, p.Use, 64)
		b = append(b, ',')
		b = appendNumber(b, float64(p.Watts), 64)
	}
	return append(b, ']')
}

func appendPoolSpec(b []byte, s *sched.PoolSpec) []byte {
	b = appendText(b, "name", s.Name)
	b = appendInt(b, "type", s.Type)
	b = strconv.AppendInt(key(b, "gpus"), int64(s.GPUs), 10)
	b = appendFloat(b, "price", float64(s.Price))
	b = appendSeconds(b, "boot", s.Boot)
	b = appendSeconds(b, "billing", s.Billing)
	b = appendInt(b, "min", s.Min)
	b = appendInt(b, "max", s.Max)
	if s.FromJoin {
		b = append(key(b, "from_join"), "true"...)
	}
	return b
}
