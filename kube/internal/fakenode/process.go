package fakenode

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Process is what runs in a pod, as seen from inside.
type Process struct {
	Pod  *corev1.Pod     // as it was when the node first heard of it; not to be changed
	GPUs []string        // UUIDs, in the order in which the pod names its claims
	Term <-chan struct{} // closed at SIGTERM
	Kill <-chan struct{} // closed at SIGKILL: the process has to return, and the exit code is 137 whatever it says

	journal *journal
}

// killed is the exit code of a process that SIGKILL ended: 128 + 9.
const killed = 137

// Script returns a process that runs for d, or until it is asked to stop where d is 0, and then exits with 0. At
// SIGTERM it saves, which takes save, and exits with code.
func Script(d, save time.Duration, code int) func(*Process) int {
	return func(p *Process) int {
		if !p.sleep(d, p.Term) {
			return 0
		}
		if d := max(save, time.Nanosecond); p.sleep(d, nil) {
			return killed
		}
		return code
	}
}

// sleep returns after d, or never where d is 0, or once the process is killed or until is closed: it says whether one
// of these two was the cause.
func (p *Process) sleep(d time.Duration, until <-chan struct{}) bool {
	var over <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
		return false
	case <-until:
	case <-p.Kill:
	}
	return true
}
