package sched

// Pricer is a Decider or a stage that puts one price on the GPUs of each type. It is asked between two instants only,
// for people who ask, and changes nothing by that.
type Pricer interface {
	// Prices says the price of a GPU of each type as of the last decision, in order of types: so many seconds that
	// jobs wait are saved by each second of one. It is >= 0, and 0 where none that wants a GPU lacks it. It says
	// nothing before the first decision.
	Prices(say func(t TypeID, price float64))
	// Bids says what the jobs that took part in the last decision bid, in no order; one of them alone if only is not
	// None.
	Bids(v *View, only JobID, say func(j JobID, b Bid))
}

// Bid is what GPUs are worth to a job.
type Bid struct {
	Type  TypeID  // that it holds, or bids for
	Price float64 // of a GPU of that type
	Held  int     // GPUs that it has
	Holds float64 // what the last step of those is worth, by GPU; +Inf = at any price; 0 where it holds none
	Wants int     // GPUs that it asks for next, in all; 0 = no more than it has
	Worth float64 // what each of those beyond Held is worth to it, as Holds
	Left  float64 // seconds of work that it is expected to have left, as it asked to run
	Kept  bool    // GPUs are kept for it
	// Assumed says that nothing is known of what is left: Left is a guess that no job supports.
	Assumed bool
}
