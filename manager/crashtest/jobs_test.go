package crashtest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The moments at which a job's user cancels it, as the lines of the program show them.
const (
	whileWaiting  = "it waits"
	whileRunning  = "runs on"
	whileStopping = "is asked to stop"
	whileHeld     = "accepted"
)

// job is an entry of the job file, and the truth about it.
type job struct {
	name    string
	command []string
	gpus    int
	submit  string
	extra   string // more keys of the job file
	cancel  string // at which moment; "" = never

	status string // how it ends
	code   int    // exit code of its last attempt, unless it is cancelled
	steps  int    // it trains, if it finishes
}

// train is the command of a trainer with steps of 20 ms.
func train(steps int, more ...string) []string {
	return append([]string{trainer, "--steps", fmt.Sprint(steps), "--step-time", "20ms", "--batch", "16",
		"--checkpoint-every", "10"}, more...)
}

func finishes(name string, gpus, steps int, submit string) job {
	return job{name: name, command: train(steps), gpus: gpus, submit: submit, status: "finished", steps: steps}
}

func fails(name string, gpus, code int, submit string, command ...string) job {
	return job{name: name, command: command, gpus: gpus, submit: submit, status: "failed", code: code}
}

// victim is a job without end, but for a user who loses patience.
func victim(name, when, submit string, more ...string) job {
	return job{name: name, command: train(1<<20, more...), gpus: 1, submit: submit, cancel: when, status: "cancelled"}
}

// jobs are what a campaign runs on four slots: long ones that are preempted by the short ones that come later, some
// that fail in all the ways there are, some that are cancelled.
func jobs() []job {
	list := []job{
		finishes("long-1", 1, 120, "0s"), finishes("long-2", 2, 200, "0s"), finishes("long-3", 1, 120, "0s"),
		finishes("long-4", 2, 200, "300ms"),
		victim("waits", whileWaiting, "100ms"),
		victim("runs", whileRunning, "1s"),
		victim("stops", whileStopping, "200ms", "--save-time", "10s"), // the grace is over long before
		victim("held", whileHeld, "0s"),
		fails("shell", 1, 7, "500ms", "sh", "-c", strings.Join(train(15), " ")+"; exit 7"),
		fails("nothing", 1, 127, "600ms", filepath.Join(filepath.Dir(trainer), "no-such-program")),
		fails("early", 1, 3, "700ms", train(40, "--fail-at", "12")...),
		fails("again", 1, 3, "800ms", train(40, "--fail-at", "8")...),
		finishes("once", 1, 30, "900ms"),
	}
	list[7].extra = "after: [long-2]"
	list[11].extra = "retries: 1"
	list[12].command, list[12].extra = train(30, "--fail-at", "15", "--fail-once"), "retries: 2"
	for i := range 11 {
		list = append(list, finishes(fmt.Sprintf("short-%d", i+1), 1+i%2, 10+10*(i%3), fmt.Sprintf("%dms", 1200+600*i)))
	}
	return list
}

// writeJobs writes the job file and makes the ledger's folder.
func writeJobs(t testing.TB, dir string, list []job) (path string) {
	t.Helper()
	ledger := filepath.Join(dir, "ledger")
	if err := os.Mkdir(ledger, 0o700); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "defaults: {grace: 300ms, preemptible: true, env: {TRAINER_LEDGER: %q}}\njobs:\n", ledger)
	for _, j := range list {
		command, err := json.Marshal(j.command)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "  - name: %s\n    command: %s\n    gpus: %d\n    submit: %s\n", j.name, command, j.gpus,
			j.submit)
		if j.extra != "" {
			fmt.Fprintf(&b, "    %s\n", j.extra)
		}
	}
	path = filepath.Join(dir, "jobs.yaml")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
