package allocate

import (
	"github.com/trainyard/trainyard/sched"
)

// weightOf returns the weight of job j, where it ends in so many seconds if it runs as it asks: job-seconds per second
// of delay. A step of priority doubles it; each further day of waiting after the second adds it once more; with a
// deadline it rises up to sixteenfold as the slack falls below the horizon.
func weightOf(c *Constants, now sched.Time, j *sched.Job, horizon, ends float64) float64 {
	w := 1.0
	for p := min(j.Spec.Priority, c.MostPriority); p > 0; p-- {
		w *= 2
	}
	for p := max(j.Spec.Priority, -c.MostPriority); p < 0; p++ {
		w /= 2
	}
	wait := now.Sub(j.Arrived) - j.RunNow(now)
	w = float64(w * max(1, wait.Seconds()/c.LongWait.Seconds()))
	if j.Spec.Deadline > 0 {
		w = float64(w * urgency(c.MostUrgent, now, j.Spec.Deadline, horizon, ends))
	}
	return w
}

// urgency returns what a deadline multiplies by. Once it has passed it falls to 1 within the time that the job still
// takes: lateness is then delay like any other.
func urgency(most float64, now, deadline sched.Time, horizon, ends float64) float64 {
	left := deadline.Sub(now).Seconds()
	if left < 0 {
		return max(1, most-float64((most-1)*(-left/max(ends, 1))))
	}
	slack := left - ends
	if slack <= horizon/most {
		return most
	}
	return max(1, horizon/slack)
}
