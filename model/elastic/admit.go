package elastic

// Mode says what becomes of a waiting job whose minimum is not to be had.
type Mode uint8

// Modes of admission.
const (
	Queue    Mode = iota // it waits, and so do all behind it: nobody is overtaken
	Drop                 // it is rejected, and the next is looked at
	Backfill             // it waits, and the next is looked at: those behind may overtake it, and starve it
)

// Verdict is what becomes of a waiting job.
type Verdict uint8

// Verdicts.
const (
	Wait Verdict = iota
	Enter
	Reject
)

// Admit appends to dst a verdict for each waiting job, in the order of arrival. held is the sum of the minima of the jobs that
// take part already, which are never evicted; minima holds the smallest possible width of each waiting job, >= 1 (see
// Job.Least).
//
// That all jobs taking part can run is that their minima fit: sum of k_min <= gpus. So nothing has to be divided to know it, and
// a job that enters may squeeze the others down to their minima.
//
// A job with a minimum above gpus never enters. In mode Queue all behind it wait for ever: who knows that the cluster will not
// grow should reject it on arrival.
//
// Source: claims 1 and 8 of US 11,586,475 (enter if there is enough for all, or be dropped); order and overtaking are ours.
func Admit(dst []Verdict, held int, minima []int, gpus int, mode Mode) []Verdict {
	free, blocked := gpus-held, false
	for _, least := range minima {
		switch {
		case !blocked && least <= free:
			free -= least
			dst = append(dst, Enter)
		case mode == Drop:
			dst = append(dst, Reject)
		default:
			blocked = mode == Queue
			dst = append(dst, Wait)
		}
	}
	return dst
}
