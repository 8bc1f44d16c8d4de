// Package scenario holds nothing but tests: each system drives real processes on slots of this machine, and the log
// must show what the system is for.
//
//	elastic, optimus   a training changes its width and its batch size, and goes on from its checkpoint
//	eaco               two jobs share a slot, and one is taken off when an epoch takes too long
//	pal                a job leaves a slot on which its steps take long
//	boa                slots are rented to a budget, and let go
//
// That Tiresias preempts and resumes is shown by cmd/trainyard (TestTenJobs, TestTorchrunIsPreempted), through the
// program itself. What is expected is what happens and in which order, never how long it takes: the machine may be
// busy.
package scenario
