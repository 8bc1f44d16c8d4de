// Package device knows the GPUs of this machine, and CPU slots where it has none: what there is, what each does at the
// moment, and what may be given to jobs.
//
// A Backend lists the devices and looks at them; a look is a Sample. There are several: nvidia-smi (SMI), NVML where
// built with the tag nvml, CPU slots (Slots), a scripted one for tests (Fake) and one that plays a recording back
// (Replay). A Sampler shares the looks among all who want one, and never waits for a driver that hangs.
//
// Everything that is concluded from samples is pure, has no clock and nothing to save: who comes back after a restart
// concludes the same from the next sample.
//
//   - Watch says which devices may be given to jobs: not those that someone else uses, whose memory is not free, or
//     which are gone. Short visits do not count.
//   - Check says when devices are free after a job, or that they do not become so.
//   - Meter makes mean power and use of samples.
//
// The package does not know about jobs or events; processes are ours by a predicate.
package device
