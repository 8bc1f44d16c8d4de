package metrics_test

import "github.com/trainyard/trainyard/sched"

// purse is the naive twin of sched.Loss: what a job has lost by stops for others, added up from its events alone.
type purse struct {
	lost, claimed float64 // seconds of work
	kept          float64 // seconds of work that the job has in all when no attempt is live

	ordered, up, stop sched.Time // when the attempt was ordered, came up, and was ordered to stop; None = not yet
	gpus              int
	base              float64 // seconds of work with which it started
	made              progress

	paused, cancelled, requeued bool
}

// progress is what is known of the work of an attempt: so many seconds of it at a time, and how fast it grows then.
type progress struct {
	work float64
	at   sched.Time
	rate float64
}

func (p *progress) by(t sched.Time) float64 {
	return p.work + max(t.Sub(p.at), 0).Seconds()*p.rate
}

func reported(e *sched.Event) progress { return progress{e.Work.Seconds(), e.WorkFrom, e.Rate} }

// note takes an event of job j.
func (p *purse) note(e *sched.Event, j *sched.Job) {
	switch e.Kind {
	case sched.Ordered:
		p.order(e, len(j.GPUs))
	case sched.AttemptStarted:
		p.up, p.base, p.made = e.Time, e.Work.Seconds(), reported(e)
	case sched.Progressed:
		p.made = reported(e)
	case sched.JobCommanded:
		p.command(sched.Command(e.Code), j.HoldsDevices())
	case sched.Saved:
		if e.Code == sched.FromZero || e.Code == sched.StartedOver {
			p.lost, p.claimed = p.lost+p.claimed, 0
		}
	case sched.AttemptEnded:
		p.end(e, float64(p.gpus)/float64(j.Spec.GPUs.Want))
	}
}

func (p *purse) order(e *sched.Event, gpus int) {
	switch sched.ActionKind(e.Code) {
	case sched.Start:
		p.gpus = gpus
		p.ordered, p.up, p.stop = e.Time, sched.None, sched.None
		p.base, p.made = p.kept, progress{work: p.kept}
		p.requeued = false
	case sched.Stop:
		p.stop = e.Time
	}
}

func (p *purse) command(c sched.Command, live bool) {
	switch c {
	case sched.PauseJob:
		p.paused = true
	case sched.ResumeJob:
		p.paused = false
	case sched.CancelJob:
		p.cancelled = true
	case sched.RequeueJob:
		p.requeued = live
	}
}

// end takes the end of an attempt that is as wide, in parts of what the job asks for, as width says.
func (p *purse) end(e *sched.Event, width float64) {
	p.kept = e.Work.Seconds()
	if e.Outcome != sched.Preempted || p.paused || p.cancelled || p.requeued {
		p.claimed = 0
		return
	}
	if p.stop < 0 {
		p.stop = e.Time
	}
	ran, made := 0.0, 0.0
	if p.up >= 0 {
		ran, made = max(p.stop.Sub(p.up), 0).Seconds(), p.made.by(p.stop)-p.base
	}
	speed := width
	if made > 1e-9 && ran > 0 {
		speed = made / ran
	} else {
		made = ran * speed
	}
	saved := min(max(p.kept-p.base, 0), made)
	waste := e.Time.Sub(p.ordered).Seconds() - ran
	p.lost, p.claimed = p.lost+made-saved+max(waste, 0)*speed, p.claimed+saved
}
