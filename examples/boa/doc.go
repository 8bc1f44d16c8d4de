// Boa runs the same real trainings under BOA, which rents slots to a budget, and on slots that are reserved, and says
// what a simulation makes of the same runs:
//
//	go run ./examples/boa [--jobs 20] [--budget 4] [--slots 12] [--seed 1] [--seeds 3] [--json]
//
// Jobs are those of examples/trainer, of two kinds: a wide one, of which 95 % runs in parallel, and a narrow one, of
// which 60 % does. What a step takes is set, and waited out, so that a machine of few processors runs many slots truly;
// the training itself is real. They arrive at random. Before each run, and after the last, a few of them run on slots
// of their own, which says what a start and an end cost here and now: the mean of before and after is all a simulation
// gets to know of this machine. The runs, one after the other:
//
//	boa       boa-exact with perfect information on a machine whose slots are offered one by one
//	elastic   as many slots as BOA had on average, rounded, always there, divided among the jobs by the same speeds
//	fifo      the same slots, jobs in order of arrival on the width that they ask for
//
// and the simulation of each. Slot-seconds are slots rented, or reserved, from the first arrival to the last end.
package main
