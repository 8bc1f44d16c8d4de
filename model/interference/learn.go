package interference

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Learner fills a History from events: it takes the time of each epoch in which nothing changed on the job's GPUs, and
// an attempt that failed for want of memory while it shared them. Epoch ends must be watched for. The slow-down of a
// set is its epoch time over that of the job alone, so nothing is learned of a job whose model, on as many GPUs of that
// type, was never timed alone.
type Learner struct {
	History *History
	// Epoch is how long an epoch of a job takes alone, 0 = unknown, where that is known better than by its model: jobs
	// of a model may differ. It is no guess: what is made of one is taken for a slow-down. nil = it is not.
	Epoch func(v *sched.View, id sched.JobID) time.Duration

	alone   *History        // of epochs alone, in seconds where slow-downs go: sets of one
	on      [][]sched.JobID // by GPUID: the jobs whose attempts hold it
	jobs    []watched       // by JobID
	changed sched.Changes   // jobs of which no event need speak
}

// watched is what is remembered of a job.
type watched struct {
	gpus  []sched.GPUID
	from  sched.Time // its attempt works from here on; Never = it does not
	begin sched.Time // of the epoch; Never = unknown
	epoch int32      // that ended then; 0 = none had
}

// NewLearner returns a Learner for h.
func NewLearner(h *History) *Learner {
	return &Learner{History: h, alone: &History{HalfLife: h.HalfLife}}
}

var (
	_ sched.Observer = (*Learner)(nil)
	_ sched.Memory   = (*Learner)(nil)
	_ sched.Changer  = (*Learner)(nil)
)

// Observe folds an event.
func (l *Learner) Observe(v *sched.View, e *sched.Event) {
	l.meet(v)
	switch e.Kind {
	case sched.Ordered:
		switch sched.ActionKind(e.Code) {
		case sched.Start:
			l.enter(v, e.Job)
		case sched.Stop:
			l.jobs[e.Job].from = sched.Never
			l.disturb(e.Job)
		case sched.Adjust:
			l.disturb(e.Job)
		}
	case sched.AttemptStarted:
		l.started(v, e)
	case sched.AttemptEnded, sched.StartFailed:
		if e.Outcome == sched.Failed {
			l.failed(v, e)
		}
		l.leave(e.Job)
	case sched.EpochEnded:
		l.epoch(v, e)
	}
}

// meet takes note of jobs that are new: they have just arrived, or the Learner has.
func (l *Learner) meet(v *sched.View) {
	for id := len(l.jobs); id < len(v.Jobs); id++ {
		l.changed.Note(sched.JobID(id))
		l.jobs = append(l.jobs, watched{from: sched.Never, begin: sched.Never})
		if j := &v.Jobs[id]; j.HoldsDevices() {
			l.enter(v, sched.JobID(id))
			if j.Attempt == sched.Running {
				l.jobs[id].from = j.WorkFrom
			}
		}
	}
}

// started starts the first epoch of an attempt, known where it starts from nothing.
func (l *Learner) started(v *sched.View, e *sched.Event) {
	if v.Jobs[e.Job].Attempt != sched.Running {
		return
	}
	w := &l.jobs[e.Job]
	w.from = e.WorkFrom
	if e.Work == 0 {
		w.begin, w.epoch = max(e.WorkFrom, e.Time), 0
	}
}

func (l *Learner) enter(v *sched.View, id sched.JobID) {
	w := &l.jobs[id]
	w.gpus = append(w.gpus[:0], v.Jobs[id].GPUs...)
	for _, g := range w.gpus {
		for int(g) >= len(l.on) {
			l.on = append(l.on, nil)
		}
		l.on[g] = append(l.on[g], id)
	}
	l.disturb(id)
}

func (l *Learner) leave(id sched.JobID) {
	l.disturb(id)
	w := &l.jobs[id]
	for _, g := range w.gpus {
		l.on[g] = slices.DeleteFunc(l.on[g], func(other sched.JobID) bool { return other == id })
	}
	w.gpus, w.from, w.begin = w.gpus[:0], sched.Never, sched.Never
}

// disturb notes that something changes for job id and those next to it: the epochs they are in are no measure.
func (l *Learner) disturb(id sched.JobID) {
	for _, g := range l.jobs[id].gpus {
		for _, other := range l.on[g] {
			l.jobs[other].begin = sched.Never
			l.changed.Note(other)
		}
	}
}

// company returns the jobs on GPU g, in the order of their numbers.
func (l *Learner) company(g sched.GPUID) []sched.JobID { return slices.Sorted(slices.Values(l.on[g])) }

// neighbours returns the jobs that share GPUs with job id, itself among them, in the order of their numbers; ok is
// false where it has other company on one GPU than on another: how much the one slows it and how much the other no one
// can say. GPUs that it has for itself do not slow it.
func (l *Learner) neighbours(id sched.JobID) (list []sched.JobID, ok bool) {
	list = []sched.JobID{id}
	for _, g := range l.jobs[id].gpus {
		switch next := l.company(g); {
		case len(next) == 1:
		case len(list) == 1:
			list = next
		case !slices.Equal(next, list):
			return nil, false
		}
	}
	return list, true
}

// place returns where job id runs, and the models of list; ok is false where one is unknown, or there are too many, or
// the GPUs of id are of several types or shared by several mechanisms: what is measured there says nothing of any.
func (l *Learner) place(v *sched.View, id sched.JobID, list []sched.JobID) (p Place, models []string, ok bool) {
	gpus := l.jobs[id].gpus
	if len(gpus) == 0 {
		return p, nil, false
	}
	p = PlaceOf(v, gpus[0], len(gpus))
	for _, g := range gpus[1:] {
		if PlaceOf(v, g, len(gpus)) != p {
			return p, nil, false
		}
	}
	for _, j := range list {
		models = append(models, v.Jobs[j].Spec.Model)
	}
	return p, models, checkSet(p, models) == nil
}

// PlaceOf returns the place of a gang of a width on GPUs like g.
func PlaceOf(v *sched.View, g sched.GPUID, width int) Place {
	n := &v.Nodes[v.GPUs[g].Node].Spec
	p := Place{How: n.Sharing, Width: int32(width)}
	if int(n.Type) < len(v.Types) {
		p.GPU = v.Types[n.Type]
	}
	return p
}

// epoch takes the time of an epoch that was whole and undisturbed.
func (l *Learner) epoch(v *sched.View, e *sched.Event) {
	w := &l.jobs[e.Job]
	begin, next := w.begin, w.epoch+1
	w.begin, w.epoch = e.Time, int32(e.Value)
	if begin == sched.Never || begin >= e.Time || w.from == sched.Never || w.epoch != next {
		return
	}
	list, ok := l.neighbours(e.Job)
	if !ok {
		return
	}
	for _, j := range list { // one that was not at work all the time did not slow it as much
		if l.jobs[j].from > begin {
			return
		}
	}
	p, models, ok := l.place(v, e.Job, list)
	if !ok {
		return
	}
	model := v.Jobs[e.Job].Spec.Model
	took := e.Time.Sub(begin).Seconds()
	if len(list) == 1 {
		l.alone.time(p, model, took, e.Time)
		return
	}
	if base, known := l.epochAlone(v, e.Job, p); known {
		// What cannot be a slow-down, such as one of 1e9, is a fault of who reports: nothing is learned of it.
		_ = l.History.RecordOne(p, models, slices.Index(list, e.Job), took/base.Seconds(), e.Time)
	}
}

// epochAlone returns how long an epoch of job id takes alone in a place, as far as that is known.
func (l *Learner) epochAlone(v *sched.View, id sched.JobID, p Place) (time.Duration, bool) {
	if l.Epoch != nil {
		if d := l.Epoch(v, id); d > 0 {
			return d, true
		}
	}
	return l.Alone(p, v.Jobs[id].Spec.Model)
}

// time takes the length of an epoch alone.
func (h *History) time(p Place, model string, sec float64, at sched.Time) {
	e := h.entry(p, []string{model})
	e.slow[0].add(sec, h.decay(e, at))
}

// Alone returns the mean epoch time of a model alone in a place, if it was ever timed or given.
func (l *Learner) Alone(p Place, model string) (time.Duration, bool) {
	e := l.alone.find(placeName(p), []string{model}, 1)
	if e == nil {
		return 0, false
	}
	return sched.Seconds(e.slow[0].mean), true
}

// outOfMemory is what CUDA and the frameworks on it say when device memory is short.
const outOfMemory = "out of memory"

// ofHost starts what is said of an attempt that was short of the memory of its machine.
const ofHost = outOfMemory + ": used "

// failed remembers the sets of which one failed for want of memory: on which of its GPUs it was short it does not say.
func (l *Learner) failed(v *sched.View, e *sched.Event) {
	if !strings.Contains(strings.ToLower(e.Text), outOfMemory) || strings.HasPrefix(e.Text, ofHost) {
		return
	}
	for _, g := range l.jobs[e.Job].gpus {
		list := l.company(g)
		if p, models, ok := l.place(v, e.Job, list); ok && len(list) > 1 {
			_ = l.History.RecordOOM(p, models, e.Time) // the set was checked
		}
	}
}

// Changed appends the jobs whose epochs were disturbed; of others it remembers something else by events of their own.
func (l *Learner) Changed(dst []sched.JobID) (list []sched.JobID, known bool) {
	return l.changed.Changed(dst)
}

// Format names what is saved.
func (*Learner) Format() string { return "interference/1" }

// SaveJob appends what is remembered of job j.
func (l *Learner) SaveJob(j sched.JobID, b []byte) []byte {
	w := &l.jobs[j]
	b = binary.AppendVarint(binary.AppendVarint(b, int64(w.from)), int64(w.begin))
	b = binary.AppendVarint(b, int64(w.epoch))
	b = binary.AppendUvarint(b, uint64(len(w.gpus)))
	for _, g := range w.gpus {
		b = binary.AppendUvarint(b, uint64(g))
	}
	return b
}

// SaveRest appends all else: the History and the epochs alone.
func (l *Learner) SaveRest(b []byte) []byte {
	alone := l.alone.Save(nil)
	b = append(binary.AppendUvarint(b, uint64(len(alone))), alone...)
	return l.History.Save(b)
}

// LoadJob takes what SaveJob wrote of job j; jobs come in the order of their numbers.
func (l *Learner) LoadJob(j sched.JobID, b []byte) error {
	d := &decoder{b: b}
	w := watched{from: sched.Time(d.varint()), begin: sched.Time(d.varint()), epoch: int32(d.varint())}
	for range min(d.uvarint(), uint64(len(b))) {
		g := d.uvarint()
		if d.failed = d.failed || g > 1<<24; d.failed {
			break
		}
		w.gpus = append(w.gpus, sched.GPUID(g))
	}
	if d.failed || len(d.b) > 0 {
		return errors.New("interference: load: bytes that SaveJob did not write")
	}
	for int(j) >= len(l.jobs) {
		l.jobs = append(l.jobs, watched{from: sched.Never, begin: sched.Never})
	}
	l.jobs[j] = w
	for _, g := range w.gpus {
		for int(g) >= len(l.on) {
			l.on = append(l.on, nil)
		}
		l.on[g] = append(l.on[g], j)
	}
	return nil
}

// LoadRest takes what SaveRest wrote.
func (l *Learner) LoadRest(b []byte) error {
	d := &decoder{b: b}
	n := d.uvarint()
	if d.failed || n > uint64(len(d.b)) {
		return errors.New("interference: load: bytes that SaveRest did not write")
	}
	alone := &History{HalfLife: l.alone.HalfLife}
	if err := alone.Load(d.b[:n]); err != nil {
		return err
	}
	if err := l.History.Load(d.b[n:]); err != nil {
		return err
	}
	l.alone = alone
	return nil
}
