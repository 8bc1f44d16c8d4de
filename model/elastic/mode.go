package elastic

// Mode says what becomes of a waiting job whose minimum is not to be had.
//
// That all jobs taking part can run is that their minima (Job.Least) fit: sum of k_min <= gpus. So nothing has to be
// divided to know it, and a job that enters may squeeze the others down to their minima.
//
// Source: claims 1 and 8 of US 11,586,475 (enter if there is enough for all, or be dropped); order and overtaking are
// ours.
type Mode uint8

// Modes of admission.
const (
	Queue    Mode = iota // it waits, and so do all behind it: no one is overtaken
	Drop                 // it is rejected, and the next is looked at
	Backfill             // it waits, and the next is looked at: those behind may overtake it, and starve it
)
