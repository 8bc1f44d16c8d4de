package pollux

import (
	"fmt"
	"math"
)

// share is what a job holds of a node.
type share struct{ node, gpus int }

// job is a Job and its progress.
type job struct {
	*Job
	Outcome
	index     int
	held      []share // in the order in which the nodes were taken
	placement []int   // GPUs of held
	gpus      int     // their sum
	fixed     int     // global batch size; 0: chosen by what is learnt
	local     int     // samples of a micro-batch on one GPU
	accum     int     // micro-batches of an update but the last
	restart   int64   // seconds until it makes progress
	epoch     int
	progress  float64
	ends      []float64 // progress at the end of each epoch
	learnt    model     // Pollux only
}

func newJob(j *Job, index int) *job {
	n := &job{Job: j, Outcome: Outcome{Name: j.Name, Start: -1, Finish: -1}, index: index}
	sum := 0.0
	for _, size := range j.App.Statistics.Sizes() {
		sum += size
		n.ends = append(n.ends, sum)
	}
	return n
}

func (j *job) done() bool { return j.Finish >= 0 }

// batch is the global batch size as it is.
func (j *job) batch() int { return j.gpus * j.local * (j.accum + 1) }

// advance lets seconds pass from now on. slow is the share of speed that is left.
//
// As released, time to the end of an epoch is rounded to whole seconds, and the batch size is chosen again at the end
// of each epoch and of each interval.
func (j *job) advance(now, seconds int64, slow float64) error {
	if j.done() {
		return nil
	}
	if j.gpus == 0 {
		j.wait(now, seconds)
		return nil
	}
	delay := min(j.restart, seconds)
	j.restart -= delay
	j.wait(now, delay)
	j.GPUSeconds += delay * int64(j.gpus)
	now, seconds = now+delay, seconds-delay
	for seconds > 0 && !j.done() {
		speed, err := j.speed(slow)
		if err != nil {
			return err
		}
		spent := seconds
		if reached := j.progress + float64(speed*float64(seconds)); reached < j.ends[j.epoch] {
			j.progress = reached
		} else {
			spent = int64(math.RoundToEven((j.ends[j.epoch] - j.progress) / speed))
			j.progress = j.ends[j.epoch]
			j.epoch++
			if j.epoch == len(j.ends) {
				j.Finish = now + spent
			}
		}
		now, seconds = now+spent, seconds-spent
		j.GPUSeconds += spent * int64(j.gpus)
		if !j.done() {
			j.rebatch()
		}
	}
	return nil
}

// wait counts seconds without progress, as far as the job has been submitted.
func (j *job) wait(now, seconds int64) {
	j.Waited += max(0, now+seconds-max(now, j.Submit))
}

// speed returns the true progress per second as things are, and lets Pollux see what a step took.
func (j *job) speed(slow float64) (float64, error) {
	step, sync, ok := j.App.Steps.Placed(j.placement, j.local)
	if !ok || !(step > 0) {
		return 0, fmt.Errorf("published: job %s: no time of a step of %s on %v GPUs with %d samples each", j.Job.Name,
			j.App.Name, j.placement, j.local)
	}
	sqr, variance := j.App.Statistics.Gradient(j.epoch, j.batch())
	scale := float64(j.batch()) / float64(j.App.Start)
	gain := (variance + sqr) / (variance/scale + sqr)
	if j.learnt.on {
		j.learnt.observe(len(j.held), j.gpus, j.local, step, sync, sqr, variance)
	}
	return gain / (step + float64((step-sync)*float64(j.accum))) * slow, nil
}

// move gives the job other GPUs, none if held is empty.
func (j *job) move(held []share, now, restart int64) {
	j.held, j.placement, j.gpus = held, j.placement[:0], 0
	for _, s := range held {
		j.placement = append(j.placement, s.gpus)
		j.gpus += s.gpus
	}
	if j.gpus == 0 {
		return
	}
	j.rebatch()
	j.restart = restart
	if j.Start < 0 {
		j.Start = now
	} else {
		j.Restarts++
	}
}

// rebatch sets the samples on each GPU and the micro-batches.
func (j *job) rebatch() {
	switch {
	case j.fixed > 0:
		j.local, j.accum = j.App.split(j.fixed, j.gpus, j.fixed > j.App.Start)
	case !j.learnt.fitted():
		batch := max(j.App.Start, j.App.MinPerGPU*j.gpus)
		j.local, j.accum = j.App.split(batch, j.gpus, batch > j.App.Start)
	default:
		_, j.local, j.accum = j.learnt.optimize(j.App, len(j.held), j.gpus)
	}
	j.local = min(j.local, j.App.Max/(j.gpus*(j.accum+1)))
}

// split divides a batch among GPUs and micro-batches that fit. One GPU that probes makes at least two of them, from
// whose difference gradient noise is measured.
func (a *App) split(batch, gpus int, probe bool) (local, accum int) {
	each := ceilDiv(batch, gpus)
	accum = ceilDiv(each, a.MaxPerGPU) - 1
	if gpus == 1 && probe {
		accum = max(1, accum)
	}
	return ceilDiv(each, accum+1), accum
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
