package manager

import (
	"errors"
	"math"
	"slices"
	"syscall"
	"testing"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local/procs"
)

// Ensure that a signal goes to the tasks of steps, to the process that the shim started and to none that it adopted, or
// to all.
func TestAddressees(t *testing.T) {
	t.Parallel()
	const shimPID = 5
	batch := []string{task.SlurmFolder + "=/x"}
	all := []procs.Member{
		{PID: 8, Parent: shimPID, Start: 90, Name: "daemon"}, // pids are used again
		{PID: 10, Parent: shimPID, Start: 10, Name: "bash"}, {PID: 11, Parent: 10, Start: 11, Name: "srun"},
		{PID: 12, Parent: 11, Start: 12, Name: "python"}, {PID: 13, Parent: 12, Start: 13, Name: "worker"},
		{PID: 20, Parent: shimPID, Start: 10, Name: "orphan"},
	}
	for to, want := range map[string][]int{"": {12, 13}, "main": {10}, "all": {8, 10, 11, 12, 13, 20}} {
		list, err := addressees(all, to, batch, shimPID)
		var got []int
		for i := range list {
			got = append(got, list[i].PID)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("to %q: %v, %v, want %v", to, got, err, want)
		}
	}
	if _, err := addressees(all[:2], "", batch, shimPID); !errors.Is(err, api.ErrRefused) {
		t.Errorf("a script without steps: %v", err)
	}
	if list, err := addressees(all[:2], "", nil, shimPID); err != nil || len(list) != 2 {
		t.Errorf("no batch script: %v, %v", list, err)
	}
}

// Ensure that a signal that reaches no process is refused.
func TestSendToNone(t *testing.T) {
	t.Parallel()
	gone := procs.Member{PID: math.MaxInt32, Start: 1}
	for _, to := range [][]procs.Member{nil, {gone}} {
		if reached, err := send(to, syscall.SIGCONT); reached || !errors.Is(err, api.ErrRefused) {
			t.Errorf("%+v: %v, %v", to, reached, err)
		}
	}
}
