package progress

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Odometer turns what a job says of its progress into the work that it has done and the rate at which it does more,
// over all its attempts, whatever their width and batch size.
//
// Progress is counted in samples: those that the job says; else its steps times the global batch size, where that is
// decided for it; else in steps. A count is turned into work by the reference: the speed that was measured first,
// scaled in proportion to the asked width. So an hour of work is what an hour on the asked GPUs achieves, as far as the
// first measurement shows, and the rate is 1 there. The reference is fixed for the life of the job: a rate means the
// same in all its attempts. Up to the first measurement the mean speed stands in for it.
//
// A job that goes back has lost work; what it counts by then is believed.
//
// Source: specification of the manager, section 5.3; the reference is ours.
type Odometer struct {
	Kept
	Apart  time.Duration // between the readings that a speed is measured from, at least; 0 = the default of Rate
	want   int           // width asked
	known  time.Duration // work that the log knows of, until counts come
	counts bool          // they do
	step   int64         // last
	count  float64       // last
	sum    float64       // seen to be counted, while there is no reference
	took   float64       // by that, in seconds on the asked width
	// of the reading that met the first count of the attempt: what was written before is no measure
	first   time.Time
	last    time.Time // of the last count
	turned  bool      // the first step of the attempt is known
	batch   int       // of the attempt; 0: the job chooses it
	footing Footing   // of the attempt
	window  Rate      // on this footing
}

// Kept is what of an Odometer outlives its process. The zero value knows nothing.
type Kept struct {
	Reference float64 `json:"reference"` // counts per second of work; 0 = nothing was measured yet
	// that was measured next to other jobs: how fast it is alone is not known
	Partner bool   `json:"beside,omitempty"`
	Samples bool   `json:"samples"`         // counts are samples that the job reported
	Batch   int    `json:"batch,omitempty"` // the last by which steps were counted; 0 = none was
	Marks   []Mark `json:"marks,omitempty"` // how steps are counted: by rising Step, the first 0
	Paces   []Pace `json:"paces,omitempty"` // what was measured, the latest last
	// SavedSteps is how many steps the newest checkpoint has at least, FirstStep what the job reported first, 1 at
	// least, when it had nothing to go on from; 0 = not known.
	SavedSteps int64 `json:"saved_steps,omitempty"`
	FirstStep  int64 `json:"first_step,omitempty"`
	// Reached is the last step reported. Wraps: the count goes back within an attempt, so that where one starts shows
	// nothing. Resumes: an attempt went on from what no one saw saved.
	Reached int64 `json:"reached,omitempty"`
	Wraps   bool  `json:"wraps,omitempty"`
	Resumes bool  `json:"resumes,omitempty"`
	// Origin is what the first step of the latest attempt is compared with.
	Origin Origin `json:"origin,omitzero"`
}

// Origin is what was kept when an attempt started. It outlives the process that watches the attempt: another one may be
// the first to read the first step.
type Origin struct {
	Attempt int32 `json:"attempt"`           // its number; 0 = none was started since this is written down
	Saved   int64 `json:"saved,omitempty"`   // steps that the newest checkpoint had at least; 0 = not known
	Reached int64 `json:"reached,omitempty"` // the last step of the attempts before it; 0 = not known
	Judged  bool  `json:"judged,omitempty"`  // the first step was compared
}

// validateSaves says what of the saves in k no one wrote.
func (k *Kept) validateSaves() error {
	if min(k.SavedSteps, k.FirstStep, k.Reached) < 0 {
		return fmt.Errorf("saved steps %d, first step %d, last step %d, want them >= 0", k.SavedSteps, k.FirstStep,
			k.Reached)
	}
	if o := &k.Origin; o.Attempt < 0 || min(o.Saved, o.Reached) < 0 {
		return fmt.Errorf("attempt %d started from step %d after %d, want them >= 0", o.Attempt, o.Saved, o.Reached)
	}
	return nil
}

// Mark is a step from which on each step is so many counts.
type Mark struct {
	Step    int64   `json:"step"`
	Count   float64 `json:"count"`
	PerStep float64 `json:"per_step"`
}

// Footing is what the speed of a job depends on.
type Footing struct {
	Width   int `json:"width"`   // GPUs
	Batch   int `json:"batch"`   // 0: the job chooses it
	Tenants int `json:"tenants"` // most jobs on one of its GPUs, itself included
}

// Pace is a speed measured, in counts per second.
type Pace struct {
	Footing
	PerSecond float64 `json:"per_second"`
}

// Validate says what of k no one measured.
func (k *Kept) Validate() error {
	if !(k.Reference >= 0) || math.IsInf(k.Reference, 1) || k.Batch < 0 {
		return fmt.Errorf("reference %v, batch %d, want them >= 0", k.Reference, k.Batch)
	}
	if bad := k.validateSaves(); bad != nil {
		return bad
	}
	if len(k.Paces) > mostPaces {
		return fmt.Errorf("%d paces, want at most %d", len(k.Paces), mostPaces)
	}
	for i := range k.Marks {
		if !k.markHolds(i) {
			return fmt.Errorf("mark %d: %+v, want steps that rise from 0, counts >= 0, more than 0 for each step",
				i, k.Marks[i])
		}
	}
	for i, p := range k.Paces {
		if p.Width < 1 || p.Batch < 0 || p.Tenants < 1 || !(p.PerSecond > 0) || math.IsInf(p.PerSecond, 1) {
			return fmt.Errorf("pace %d: %+v, want all > 0, the batch >= 0", i, p)
		}
	}
	return nil
}

// markHolds reports whether mark i counts upwards and follows the mark before it; the first is that of step 0.
func (k *Kept) markHolds(i int) bool {
	m := k.Marks[i]
	follows := m.Step == 0
	if i > 0 {
		follows = m.Step >= k.Marks[i-1].Step
	}
	return follows && m.Count >= 0 && m.PerStep > 0 && !math.IsInf(m.Count+m.PerStep, 1)
}

// Limits of what is believed of a job out of its senses.
const (
	MaxWork   = 100 * 365 * 24 * time.Hour
	leastRate = 1e-3
	mostRate  = 1e3
	mostPaces = 32 // remembered
)

// NewOdometer returns the odometer of a job that asked for so many GPUs, with what was kept of it, and the work that
// the log knows of.
func NewOdometer(want int, kept Kept, known time.Duration) *Odometer {
	o := &Odometer{Kept: kept, want: max(want, 1), known: known}
	o.Begin(o.want, 0)
	return o
}

// Begin says that an attempt on so many GPUs starts, or is met again. Its batch size is 0 if the job
// chooses it.
func (o *Odometer) Begin(width, batch int) {
	o.batch, o.footing = batch, Footing{Width: max(width, 1), Batch: batch, Tenants: 1}
	o.first, o.turned, o.window = time.Time{}, false, Rate{Apart: o.Apart}
}

// Number says which attempt of the job starts, or is met again. Of one that was met before by a process that wrote no
// Origin down it is not known whether what is saved is its own: it is not judged.
func (o *Odometer) Number(attempt int32, met bool) {
	if o.Origin.Attempt == attempt {
		return
	}
	unknown := met && o.Origin.Attempt == 0 && o.SavedSteps > 0
	o.Origin = Origin{Attempt: attempt, Saved: o.SavedSteps, Reached: o.Reached, Judged: unknown}
}

// Share says how many tenants the GPUs of the attempt have, itself included. Where that changes, it is measured again.
func (o *Odometer) Share(tenants int) {
	if n := max(tenants, 1); n != o.footing.Tenants {
		o.footing.Tenants, o.window = n, Rate{Apart: o.Apart}
	}
}

// See takes in what the job reported at a time, which must not fall, and reports whether that was progress.
func (o *Odometer) See(at time.Time, m *Reading) bool {
	var count float64
	switch stepped := m.Has&Step != 0; {
	case m.Has&Samples != 0:
		if stepped {
			o.step = m.Step
		}
		o.toSamples(m)
		count = float64(m.Samples)
	case stepped:
		if o.step = m.Step; o.Samples {
			return true
		}
		count = o.counted(m.Step, m.Again)
	default:
		return false
	}
	o.note(at, count, m.Again)
	return true
}

// note takes in a count, which may be one of something else than before.
func (o *Odometer) note(at time.Time, count float64, again bool) {
	if o.first.IsZero() {
		o.first = at
	}
	if at.After(o.first) {
		if count > o.count && !again {
			o.sum += count - o.count
			o.took += at.Sub(o.last).Seconds() * o.wide()
		}
		o.window.Add(at.Sub(o.first), count, again)
	}
	o.count, o.last, o.counts = count, at, true
}

// wide returns the width over the one asked.
func (o *Odometer) wide() float64 { return float64(o.footing.Width) / float64(o.want) }

// toSamples goes over to counting samples that are reported, at the first of them: what is done is worth what it was.
func (o *Odometer) toSamples(m *Reading) {
	if o.Samples {
		return
	}
	before := o.count
	if m.Has&Step != 0 && len(o.Marks) > 0 && !m.Again {
		before = o.counted(m.Step, false)
	}
	if k := float64(m.Samples) / before; k > 0 && !math.IsInf(k, 1) {
		o.scale(k)
	} else { // nothing relates the two
		o.known, o.Reference, o.Paces, o.sum, o.took = o.Work(), 0, nil, 0, 0
	}
	o.Samples, o.Marks, o.window = true, nil, Rate{Apart: o.Apart}
}

// scale makes each count k counts.
func (o *Odometer) scale(k float64) {
	o.count *= k
	o.sum *= k
	o.Reference *= k
	for i := range o.Paces {
		o.Paces[i].PerSecond *= k
	}
	for i := range o.Marks {
		o.Marks[i].Count *= k
		o.Marks[i].PerStep *= k
	}
}

// counted returns the count at a step. From the first step of an attempt on, steps count by the batch size of the
// attempt; those before it, done or not, as they did.
func (o *Odometer) counted(step int64, again bool) float64 {
	if o.batch > 0 && o.Batch == 0 { // so far steps; for want of better, of this batch size
		o.scale(float64(o.batch))
	}
	if o.batch > 0 {
		o.Batch = o.batch
	}
	each := float64(max(o.Batch, 1))
	if again || len(o.Marks) == 0 {
		o.Marks = append(o.Marks[:0], Mark{PerStep: each})
	}
	if !o.turned {
		o.turned = true
		o.Marks = slices.DeleteFunc(o.Marks, func(m Mark) bool { return m.Step > step })
		if last := &o.Marks[len(o.Marks)-1]; last.PerStep != each {
			o.Marks = append(o.Marks, Mark{step, last.at(step), each})
		}
	}
	i := len(o.Marks) - 1
	for i > 0 && o.Marks[i].Step > step {
		i--
	}
	return o.Marks[i].at(step)
}

func (m *Mark) at(step int64) float64 { return m.Count + float64(step-m.Step)*m.PerStep }

// Measure looks at how fast the job has become, and reports whether Kept has something to keep that it had not: a first
// pace on a footing.
func (o *Odometer) Measure() (news bool) {
	speed, ok := o.window.PerSecond()
	if !ok || !(speed > 0) {
		return false
	}
	if o.Reference == 0 {
		o.Reference, o.Partner = speed/o.wide(), o.footing.Tenants > 1
	}
	i := o.pace(func(f Footing) bool { return f == o.footing })
	if news = i < 0; !news {
		o.Paces = slices.Delete(o.Paces, i, i+1)
	}
	o.Paces = append(o.Paces, Pace{o.footing, speed})
	if len(o.Paces) > mostPaces {
		o.Paces = slices.Delete(o.Paces, 0, 1)
	}
	return news
}

// pace returns the latest pace on a footing that is right, -1 if there is none.
func (o *Odometer) pace(right func(Footing) bool) int {
	for i := len(o.Paces) - 1; i >= 0; i-- {
		if right(o.Paces[i].Footing) {
			return i
		}
	}
	return -1
}

// Known reports whether work follows from counts.
func (o *Odometer) Known() bool { return o.counts && (o.Reference > 0 || o.sum > 0) }

// Alone reports whether a second of work is known to be a second of the job alone on what it asked for.
func (o *Odometer) Alone() bool { return o.Reference > 0 && !o.Partner }

// Measured reports whether Rate was measured on the footing that the attempt has. On any other it is a guess.
func (o *Odometer) Measured() bool {
	return o.pace(func(f Footing) bool { return f == o.footing }) >= 0
}

// Steps returns the last step reported.
func (o *Odometer) Steps() int64 { return o.step }

// Work returns the work done, without what was lost, as far as it is known.
func (o *Odometer) Work() time.Duration {
	switch {
	case !o.Known():
		return o.known
	case o.Reference > 0:
		return bounded(o.count / o.Reference)
	}
	return bounded(o.count * o.took / o.sum)
}

func bounded(seconds float64) time.Duration {
	return time.Duration(min(seconds*float64(time.Second), float64(MaxWork)))
}

// Rate returns work per time on the footing that the attempt has: as measured there last; else as on the same width and
// batch size next to another number of tenants; else as measured last of all, in proportion to the width, the reference
// where nothing was.
func (o *Odometer) Rate() float64 {
	i := o.pace(func(f Footing) bool { return f == o.footing })
	if i < 0 {
		i = o.pace(func(f Footing) bool { return f.Width == o.footing.Width && f.Batch == o.footing.Batch })
	}
	if i < 0 {
		i = len(o.Paces) - 1
	}
	rate := o.wide()
	if i >= 0 && o.Reference > 0 {
		p := o.Paces[i]
		rate = p.PerSecond / o.Reference * float64(o.footing.Width) / float64(p.Width)
	}
	return min(max(rate, leastRate), mostRate)
}
