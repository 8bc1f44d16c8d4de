package allocate

import "time"

// Constants are the choices of Clear that no user makes. docs/papers/combined.md says what they rest on.
type Constants struct {
	LoadWindow   time.Duration // over which arrivals make a load
	LeastWindow  time.Duration // so that a burst makes no rate
	LeastMoments int           // different times of arrival without which there is no load
	LevelEvery   time.Duration // the horizon falls by one level in it
	Stretch      float64       // the horizon is so many times the time in which the backlog drains, > 0

	KeepAfter time.Duration // after which a job that is worth the price has GPUs kept for it,
	KeepFor   time.Duration // and for how long

	HoldFor float64 // times its reference that the work of a running job must be to count again
	Above   float64 // times its own price that of another's step must be for a holder to give up GPUs: less is noise

	MostPriority int32         // steps of priority that count; each doubles what a delay weighs
	LongWait     time.Duration // of waiting, each of which after the first adds a job's weight once more
	MostUrgent   float64       // times the weight at most, as a deadline comes near
}

// Chosen returns the set that worth uses everywhere.
func Chosen() Constants {
	return Constants{
		LoadWindow: 6 * time.Hour, LeastWindow: time.Hour, LeastMoments: 10, LevelEvery: 15 * time.Minute, Stretch: 1,
		KeepAfter: time.Hour, KeepFor: 24 * time.Hour,
		HoldFor: 4, Above: 1 + 1./32,
		MostPriority: 10, LongWait: 24 * time.Hour, MostUrgent: 16,
	}
}
