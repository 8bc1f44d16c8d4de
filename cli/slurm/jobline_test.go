package slurm

import (
	"testing"

	"github.com/trainyard/trainyard/api"
)

// Ensure that a job that rests is pending for the reason that Slurm has for it, on a machine and on a cluster.
func TestReasonOfAJobThatRests(t *testing.T) {
	for why, want := range map[string]string{
		"is paused by its user; `trainyard resume 3` lets it wait for its turn": "JobHeldUser",
		"suspended by its user":                                 "JobHeldUser",
		"held: the API server refuses its pods: exceeded quota": "JobHeldAdmin",
	} {
		l := line{Job: api.Job{State: "held", Why: why}}
		if got := l.reason(); got != want || l.where() != "("+want+")" || l.state() != pending {
			t.Errorf("%q: %s, %s", why, got, l.where())
		}
	}
}
