package eventlog

import (
	"cmp"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/sched"
)

// eventScan reads the line of one event. What some keys mean depends on the kind, which may stand behind them: they are
// kept and looked at when all is read.
type eventScan struct {
	scan
	has      [4]bool // seq, time, batch, event
	job      bool
	node     bool
	value    []byte // key of Value
	code     []byte // key of Code
	word     string // of Code; "" = a number
	from     []byte // key of WorkFrom
	target   bool
	targetAs struct{ job, why bool } // the target has its own
}

// reasonWords are the words of all numbers a reason may have.
var reasonWords = list(sched.ReasonCode(255), sched.ReasonCode.String)

// read reads one line into rec, using target for the target of a decision and the memory of the GPUs there.
func (s *eventScan) read(line []byte, rec *Record, target *sched.Target) error {
	inner := s.scan
	*s = eventScan{scan: inner}
	s.reset(line)
	e := &rec.Event
	*e = sched.Event{Job: sched.None, Node: sched.None, GPUs: e.GPUs[:0]}
	*target = sched.Target{}
	s.object(func(key []byte) bool { return s.field(key, rec, target) })
	if s.end() == nil {
		s.at = nil
		s.settle(e, target)
	}
	return s.err
}

// field reads the value of one key.
func (s *eventScan) field(key []byte, rec *Record, target *sched.Target) bool {
	if s.place(key, rec) {
		return true
	}
	e := &rec.Event
	switch string(key) {
	case "job":
		e.Job, s.job = sched.JobID(s.integer(32)), true
	case "attempt":
		e.Attempt = int32(s.integer(32))
	case "outcome":
		e.Outcome = sched.Outcome(s.oneOf(outcomeWords))
	case "node":
		e.Node, s.node = sched.NodeID(s.integer(32)), true
	case "pool":
		e.Pool = sched.PoolID(s.integer(16))
	case "mem_gb":
		e.MemGB = s.float32()
	case "at":
		e.At = sched.Time(s.duration())
	case "work":
		e.Work = s.duration()
	case "rate":
		e.Rate = s.float(64)
	case "gpus":
		e.GPUs = int32s(&s.scan, e.GPUs)
	case "text":
		e.Text = s.text()
	case "why":
		e.Why = s.reason()
	default:
		return s.part(key, e, target) || s.byKind(key, e)
	}
	return true
}

// place reads what every event has: where it stands in the log, and its kind.
func (s *eventScan) place(key []byte, rec *Record) bool {
	e := &rec.Event
	switch string(key) {
	case "seq":
		e.Seq, s.has[0] = s.unsigned(), true
	case "time":
		e.Time, s.has[1] = sched.Time(s.duration()), true
	case "batch":
		rec.Batch, s.has[2] = s.unsigned(), true
	case "event":
		e.Kind, s.has[3] = sched.EventKind(s.oneOf(kindWords)), true
	default:
		return false
	}
	return true
}

// part reads what stands behind a pointer of the event.
func (s *eventScan) part(key []byte, e *sched.Event, target *sched.Target) bool {
	switch string(key) {
	case "spec":
		e.Spec = readJobSpec(&s.scan)
	case "change":
		e.Change = readJobChange(&s.scan)
	case "node_spec":
		e.NodeSpec = readNodeSpec(&s.scan)
	case "pool_spec":
		e.PoolSpec = readPoolSpec(&s.scan)
	case "target":
		s.readTarget(target)
		e.Target, s.target = target, true
	default:
		return false
	}
	return true
}

// byKind reads the keys that mean something for some kinds only.
func (s *eventScan) byKind(key []byte, e *sched.Event) bool {
	as := &s.value
	switch string(key) {
	case "code", "count":
		e.Code, as = int32(s.integer(32)), &s.code
	case "state", "command", "action", "what":
		s.word, as = s.text(), &s.code
		s.want(s.word != "", "a word")
	case "from", "not_before", "until":
		e.WorkFrom, as = sched.Time(s.duration()), &s.from
	case "value", "epoch", "gpu", "price", "steps", "watts":
		e.Value = s.float(64)
	default:
		return false
	}
	if len(*as) > 0 {
		s.fail("both it and %s, want one of them", *as)
	}
	*as = key
	return true
}

// settle gives the keys that depend on the kind their meaning, and checks that all is there.
func (s *eventScan) settle(e *sched.Event, target *sched.Target) {
	for i, name := range []string{"seq", "time", "batch", "event"} {
		if !s.has[i] {
			s.fail("no %s, want one", name)
			return
		}
	}
	f := formOf(e)
	if f.Job == sched.NotNamed && !s.job {
		e.Job = 0
	}
	if f.Node == sched.NotNamed && !s.node {
		e.Node = 0
	}
	s.settleKeys(e, f)
	s.settleParts(e, f)
	target.GPUs.Len = int32(len(e.GPUs))
	if !s.targetAs.job {
		target.Job = e.Job
	}
	if !s.targetAs.why {
		target.Why = e.Why
	}
}

// settleParts checks that the event names what its kind is about, and has the parts of its kind alone.
func (s *eventScan) settleParts(e *sched.Event, f *form) {
	switch {
	case (f.Job == sched.Named || f.Job == sched.Made) && e.Job < 0:
		s.fail("%v of job %d, want a job", e.Kind, e.Job)
	case (f.Node == sched.Named || f.Node == sched.Made) && e.Node < 0:
		s.fail("%v of node %d, want a node", e.Kind, e.Node)
	case (e.Spec != nil) != (e.Kind == sched.JobArrived):
		s.fail("%v with spec %v, want one for an arrival, and for it alone", e.Kind, e.Spec != nil)
	case (e.Change != nil) != (e.Kind == sched.JobChanged):
		s.fail("%v with change %v, want one for a job that changed, and for it alone", e.Kind, e.Change != nil)
	case (e.NodeSpec != nil) != (e.Kind == sched.NodeJoined):
		s.fail("%v with node_spec %v, want one for a node that joined, and for it alone", e.Kind, e.NodeSpec != nil)
	case (e.PoolSpec != nil) != (e.Kind == sched.PoolChanged):
		s.fail("%v with pool_spec %v, want one for a pool that changed, and for it alone", e.Kind, e.PoolSpec != nil)
	case s.target != (e.Kind == sched.Decided):
		s.fail("%v with target %v, want one for a decision, and for it alone", e.Kind, s.target)
	}
}

// settleKeys checks that Value, Code and WorkFrom stand under the names they have in form f.
func (s *eventScan) settleKeys(e *sched.Event, f *form) {
	switch {
	case len(s.value) > 0 && string(s.value) != cmp.Or(f.Value, "value"), len(s.value) == 0 && f.Value != "" && !f.Bare:
		s.fail("%v with key %q, want %q", e.Kind, s.value, cmp.Or(f.Value, "value"))
	case len(s.from) > 0 && string(s.from) != f.fromKey():
		s.fail("%v with key %q, want %q", e.Kind, s.from, f.fromKey())
	case len(s.code) > 0 && string(s.code) != "code" && string(s.code) != f.Code:
		s.fail("%v with key %q, want %q", e.Kind, s.code, cmp.Or(f.Code, "code"))
	case s.word != "":
		i := slices.Index(f.Words, s.word)
		if i < 0 {
			s.fail("%s %q, want one of %s", s.code, s.word, wanted(f.Words))
		}
		e.Code = int32(i)
	}
}

// oneOf reads one of words and returns its number.
func (s *scan) oneOf(words []string) int {
	text := s.raw()
	for i, w := range words {
		if w != "" && w == string(text) {
			return i
		}
	}
	s.fail("%q, want one of %s", text, wanted(words))
	return 0
}

// wanted lists words in an error, without the stopgaps of numbers that have none.
func wanted(words []string) string {
	known := slices.DeleteFunc(slices.Clone(words), func(w string) bool {
		return w == "" || strings.HasPrefix(w, "reason-")
	})
	return strings.Join(known, ", ")
}

// int32s reads an array of numbers into list, whose memory it uses again.
func int32s[T ~int32](s *scan, list []T) []T {
	list = list[:0]
	s.array(func() { list = append(list, T(s.integer(32))) })
	return list
}

func (s *scan) float32() float32 { return float32(s.float(32)) }

func (s *eventScan) reason() (why sched.Reason) {
	s.object(func(key []byte) bool {
		switch string(key) {
		case "code":
			why.Code = sched.ReasonCode(s.oneOf(reasonWords))
		case "job":
			why.Job = sched.JobID(s.integer(32))
		case "a":
			why.A = s.float(64)
		case "b":
			why.B = s.float(64)
		default:
			return false
		}
		return true
	})
	return why
}

func (s *eventScan) readTarget(t *sched.Target) {
	s.object(func(key []byte) bool {
		switch string(key) {
		case "job":
			t.Job, s.targetAs.job = sched.JobID(s.integer(32)), true
		case "want":
			t.Want = int32(s.integer(32))
		case "batch":
			t.Batch = int32(s.integer(32))
		case "accum":
			t.Accum = int16(s.integer(16))
		case "lr_scale":
			t.LRScale = s.float32()
		case "share":
			t.Share = sched.Share(s.oneOf(shareWords))
		case "cap_w":
			t.Cap = sched.Watts(s.float(64))
		case "trial":
			t.Trial = s.boolean()
		case "at":
			t.At = sched.Boundary(s.oneOf(boundaryWords))
		case "why":
			t.Why, s.targetAs.why = s.reason(), true
		default:
			return false
		}
		return true
	})
}

func readJobSpec(s *scan) *sched.JobSpec {
	p := new(sched.JobSpec)
	s.object(func(key []byte) bool {
		return readJobText(s, key, p) || readJobTime(s, key, p) || readJobNumber(s, key, p) || readSaving(s, key, p) ||
			readJobTies(s, key, p)
	})
	if err := p.Validate(); err != nil {
		s.fail("%w", err)
	}
	return p
}

// readArray reads which task of which array a job is.
func readArray(s *scan) sched.Array {
	x := int32s(s, []int32(nil))
	if len(x) != 4 {
		s.fail("array of %d numbers, want 4", len(x))
		return sched.Array{}
	}
	return sched.Array{Place: x[0], Index: x[1], Size: x[2], AtOnce: x[3]}
}

func readJobText(s *scan, key []byte, p *sched.JobSpec) bool {
	switch string(key) {
	case "name":
		p.Name = s.shared()
	case "user":
		p.User = s.shared()
	case "group":
		p.Group = s.shared()
	case "model":
		p.Model = s.shared()
	case "class":
		p.Class = s.shared()
	default:
		return false
	}
	return true
}

func readJobTime(s *scan, key []byte, p *sched.JobSpec) bool {
	switch string(key) {
	case "submit":
		p.Submit = sched.Time(s.duration())
	case "wall_time":
		p.WallTime = s.duration()
	case "deadline":
		p.Deadline = sched.Time(s.duration())
	case "not_before":
		p.NotBef = sched.Time(s.duration())
	default:
		return false
	}
	return true
}

func readJobTies(s *scan, key []byte, p *sched.JobSpec) bool {
	switch string(key) {
	case "after":
		p.After = int32s(s, p.After)
	case "after_ok":
		p.Ties.AfterOK = int32s(s, p.Ties.AfterOK)
	case "after_fail":
		p.Ties.AfterFail = int32s(s, p.Ties.AfterFail)
	case "array":
		p.Ties.Array = readArray(s)
	default:
		return false
	}
	return true
}

func readJobNumber(s *scan, key []byte, p *sched.JobSpec) bool {
	switch string(key) {
	case "priority":
		p.Priority = int32(s.integer(32))
	case "gpus":
		p.GPUs = readWidths(s)
	case "batch":
		x := s.three()
		p.Batch = sched.BatchRange{Min: x[0], Max: x[1], PerGPU: x[2]}
	case "types":
		p.Types = readTypes(s)
	case "cpus":
		p.CPUs = s.float32()
	case "memory_gb":
		p.MemoryGB = s.float32()
	case "gpu_memory_gb":
		p.GPUMemGB = s.float32()
	case "share":
		p.Share = sched.Consent(s.oneOf(consentWords))
	case "epochs":
		p.Epochs = int32(s.integer(32))
	case "util":
		p.Util = s.float32()
	case "retries":
		p.Retries = int32(s.integer(32))
	case "task":
		p.Task = s.shared()
	case "key":
		p.Key = s.text()
	default:
		return false
	}
	return true
}

// readSaving reads whether a job saves, and may be stopped.
func readSaving(s *scan, key []byte, p *sched.JobSpec) bool {
	switch string(key) {
	case "saves":
		p.Saves = s.boolean()
	case "preemptible":
		p.Preempt = sched.Preemptible(s.oneOf(preemptWords))
	default:
		return false
	}
	return true
}

func readJobChange(s *scan) *sched.JobChange {
	c := new(sched.JobChange)
	s.object(func(key []byte) bool {
		switch string(key) {
		case "gpus":
			c.GPUs = readWidths(s)
		case "priority":
			c.Priority = int32(s.integer(32))
		case "wall_time":
			c.WallTime = s.duration()
		case "deadline":
			c.Deadline = sched.Time(s.duration())
		case "spec":
			c.Spec = readJobSpec(s)
		default:
			return false
		}
		return true
	})
	if err := c.Validate(); err != nil {
		s.fail("%w", err)
	}
	return c
}

// readWidths reads a range of widths, written as one number if the gang is rigid.
func readWidths(s *scan) sched.Range {
	if s.space(); s.i < len(s.b) && s.b[s.i] != '[' {
		n := int32(s.integer(32))
		return sched.Range{Min: n, Want: n, Max: n}
	}
	x := s.three()
	return sched.Range{Min: x[0], Want: x[1], Max: x[2]}
}

func (s *scan) three() (x [3]int32) {
	s.ids = int32s(s, s.ids)
	if s.err == nil && len(s.ids) != len(x) {
		s.fail("%d numbers, want %d", len(s.ids), len(x))
	}
	copy(x[:], s.ids)
	return x
}

func readTypes(s *scan) (set sched.TypeSet) {
	s.array(func() {
		set = set.With(readGPUType(s))
	})
	return set
}

func readGPUType(s *scan) sched.TypeID {
	t := s.integer(16)
	s.want(t >= 0 && t < sched.MaxGPUTypes, "0 to 63")
	return sched.TypeID(t)
}

// maxNodeGPUs bounds what a node in a log may have, so that a wrong number is an error and not all of the memory.
const maxNodeGPUs = 1 << 20

func readNodeSpec(s *scan) *sched.NodeSpec {
	p := &sched.NodeSpec{Pool: sched.None}
	s.object(func(key []byte) bool {
		switch string(key) {
		case "name":
			p.Name = s.text()
		case "gpus":
			p.GPUs = int(s.integer(32))
			s.want(p.GPUs <= maxNodeGPUs, "at most 1048576")
		case "type":
			p.Type = readGPUType(s)
		case "rack":
			p.Rack = int32(s.integer(32))
		case "pool":
			p.Pool = sched.PoolID(s.integer(16))
		case "devices":
			p.Devices = s.texts()
		case "sharing":
			p.Sharing = sched.Mechanism(s.oneOf(sharingWords))
		default:
			return readNodeNumber(s, key, p)
		}
		return true
	})
	if err := p.Validate(); err != nil {
		s.fail("%w", err)
	}
	return p
}

func readPoolSpec(s *scan) *sched.PoolSpec {
	p := new(sched.PoolSpec)
	s.object(func(key []byte) bool {
		switch string(key) {
		case "name":
			p.Name = s.text()
		case "type":
			p.Type = readGPUType(s)
		case "gpus":
			p.GPUs = int(s.integer(32))
			s.want(p.GPUs <= maxNodeGPUs, "at most 1048576")
		case "price":
			p.Price = sched.Dollars(s.float(64))
		case "boot":
			p.Boot = s.duration()
		case "billing":
			p.Billing = s.duration()
		case "min":
			p.Min = int32(s.integer(32))
		case "max":
			p.Max = int32(s.integer(32))
		case "from_join":
			p.FromJoin = s.boolean()
		default:
			return false
		}
		return true
	})
	if err := p.Validate(); err != nil {
		s.fail("%w", err)
	}
	return p
}

// readPoints reads the points of a power curve: uses and watts in turn.
func readPoints(s *scan) (list []sched.PowerPoint) {
	n := 0
	s.array(func() {
		x := s.float(64)
		if n++; n%2 == 1 {
			list = append(list, sched.PowerPoint{Use: x})
			return
		}
		list[len(list)-1].Watts = sched.Watts(x)
	})
	s.want(n%2 == 0, "uses and watts in turn")
	return list
}

func (s *scan) texts() []string {
	list := []string{}
	s.array(func() { list = append(list, s.text()) })
	return list
}

func readNodeNumber(s *scan, key []byte, p *sched.NodeSpec) bool {
	switch string(key) {
	case "cpus":
		p.CPUs = s.float32()
	case "memory_gb":
		p.MemoryGB = s.float32()
	case "gpu_memory_gb":
		p.GPUMemGB = s.float32()
	case "idle_w":
		p.IdleW = sched.Watts(s.float(64))
	case "busy_gpu_w":
		p.BusyGPUW = sched.Watts(s.float(64))
	case "sleep_w":
		p.SleepW = sched.Watts(s.float(64))
	case "curve_scale_w":
		p.Curve.Scale = sched.Watts(s.float(64))
	case "curve_exponent":
		p.Curve.Exponent = s.float(64)
	case "curve_points":
		p.Curve.Points = readPoints(s)
	case "wake":
		p.Wake = s.duration()
	case "dollars_hr":
		p.DollarsHr = sched.Dollars(s.float(64))
	default:
		return false
	}
	return true
}
