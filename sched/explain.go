package sched

// Fact is one figure on which decisions about a job rest, for people: a number with its unit, or a word.
type Fact struct {
	Name  string  // what it is, in words joined by '-': "attained-service"
	Text  string  // where a word says it; "" = Value does
	Value float64 // may be infinite
	Unit  string  // of Value: "GPU-seconds", "s", "GPUs"; "" = a pure number
}

// Explainer is a Decider, a stage or an estimator that can say on what its decisions about a job rest.
type Explainer interface {
	// Explain says the figures of job j as of v.Now, the weightiest first; nothing of a job it does not know. It is
	// called between two instants only, for people who ask, and changes nothing that a decision, or what is saved,
	// depends on.
	Explain(v *View, j JobID, say func(Fact))
}
