package crashtest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/client"
)

// heldTasks is how many tasks the arrays have that are submitted held.
const heldTasks = 1000

// slurms returns a command of Slurm's words in the folder of the daemons.
func (d *daemons) slurms(out *bytes.Buffer, args ...string) *exec.Cmd {
	cmd := exec.Command(trainyard, args...)
	cmd.Dir, cmd.Stdout = d.dir, out
	cmd.Env = append(os.Environ(), client.StateVariable+"="+string(d.state))
	return cmd
}

// tasksIn counts the tasks of each array by state, and fails the test if one of them has been started.
func (d *daemons) tasksIn() map[int]map[string]int {
	d.t.Helper()
	doc, err := d.dial().Jobs(d.t.Context(), api.Filter{})
	if err != nil {
		d.t.Fatal(err)
	}
	arrays := make(map[int]map[string]int)
	for _, j := range doc.Jobs {
		if arrays[j.Array.First] == nil {
			arrays[j.Array.First] = make(map[string]int)
		}
		if arrays[j.Array.First][j.State]++; j.Attempt > 0 {
			d.t.Fatalf("%+v, want none started", j)
		}
	}
	return arrays
}

// Ensure that an array submitted held is held as a whole or is not there, wherever the daemon is killed and whether
// sbatch lives on or is killed along with it: no task ever starts. A release frees all tasks.
func TestSubmittedHeld(t *testing.T) {
	d := newDaemons(t, 2)
	d.end(d.up()) // there is a folder
	acknowledged, killed := map[int]bool{}, 0
	for i, point := range slices.Concat(mailPoints, []string{"commit.before", "commit.inside", "commit.after"}) {
		l := d.serve(point + ":1") // there is nothing to be made durable at its start
		var out bytes.Buffer
		sbatch := d.slurms(&out, "sbatch", "--patience", "5m", "--parsable", "-H", "-a", "0-"+strconv.Itoa(heldTasks-1),
			"-o", "/dev/null", "--wrap", "echo ran >> ran")
		must(t, sbatch.Start())
		if !l.within(patience) {
			l.kill()
			t.Errorf("%s is not passed", point)
		}
		if i%2 == 1 {
			_ = sbatch.Process.Kill() // it may have ended
		}
		l = d.up()
		if sbatch.Wait() == nil {
			first, err := strconv.Atoi(strings.TrimSpace(out.String()))
			must(t, err)
			acknowledged[first] = true
		} else if killed++; i%2 == 0 {
			t.Errorf("%s: sbatch fails", point)
		}
		for first, states := range d.tasksIn() {
			if states["held"] != heldTasks {
				t.Errorf("%s: array %d is %v, want all held", point, first, states)
			}
		}
		d.end(l)
	}
	l := d.up()
	arrays := d.tasksIn()
	if _, err := d.dial().Drain(t.Context(), true); err != nil { // none is to start, so that all can be counted
		t.Fatal(err)
	}
	for first := range acknowledged {
		if arrays[first] == nil {
			t.Errorf("array %d was acknowledged and is not there", first)
		}
	}
	for first := range arrays {
		must(t, d.slurms(new(bytes.Buffer), "slurm", "scontrol", "release", strconv.Itoa(first)).Run())
		if states := d.tasksIn()[first]; states["waiting"] != heldTasks {
			t.Errorf("array %d is %v, want all released", first, states)
		}
		break // one will do
	}
	if _, err := os.Stat(filepath.Join(d.dir, "ran")); err == nil {
		t.Error("a task ran")
	}
	d.end(l)
	t.Logf("%d arrays of %d tasks, %d of them acknowledged, %d sbatch killed", len(arrays), heldTasks,
		len(acknowledged), killed)
}

// stands returns how each task of the only array stands.
func (d *daemons) stands() (states []string) {
	d.t.Helper()
	doc, err := d.dial().Jobs(d.t.Context(), api.Filter{})
	if err != nil {
		d.t.Fatal(err)
	}
	for _, j := range doc.Jobs {
		states = append(states, j.State)
	}
	return states
}

// Ensure that what a user wants of an array, or of a part of it, is done with all of its tasks or with none, wherever
// the daemon is killed; and that it is done where it was acknowledged.
func TestCommandedWhole(t *testing.T) {
	d := newDaemons(t, 2)
	l := d.up()
	must(t, d.slurms(new(bytes.Buffer), "sbatch", "-H", "-a", "0-"+strconv.Itoa(heldTasks-1), "--wrap", "true").Run())
	if _, err := d.dial().Drain(t.Context(), true); err != nil { // none is to start
		t.Fatal(err)
	}
	d.end(l)
	steps := []struct {
		to   string
		of   []int // from, to
		args []string
	}{
		{"waiting", []int{0, heldTasks}, []string{"slurm", "scontrol", "release", "0"}},
		{"held", []int{0, 500}, []string{"pause", "0_[0-499]"}},
		{"waiting", []int{0, heldTasks}, []string{"resume", "0_*", "-y"}},
		{"held", []int{200, 900}, []string{"slurm", "scontrol", "hold", "0_[200-899]"}},
		{"waiting", []int{0, heldTasks}, []string{"slurm", "scontrol", "release", "0"}},
		{"done", []int{300, heldTasks}, []string{"slurm", "scancel", "0_[300-999]"}},
	}
	was, undone := slices.Repeat([]string{"held"}, heldTasks), 0
	for i, point := range slices.Concat(mailPoints, []string{"commit.before", "commit.inside", "commit.after"}) {
		step := &steps[i]
		to := slices.Clone(was)
		for k := step.of[0]; k < step.of[1]; k++ {
			to[k] = step.to
		}
		l := d.serve(point + ":1") // there is nothing to be made durable at its start
		d.answers(l)
		failed := d.slurms(new(bytes.Buffer), step.args...).Run()
		if !l.within(patience) {
			l.kill()
			t.Errorf("%s is not passed", point)
		}
		l = d.up()
		switch now := d.stands(); {
		case slices.Equal(now, to):
		case !slices.Equal(now, was):
			t.Errorf("%s: %v is done in part", point, step.args)
		case failed == nil:
			t.Errorf("%s: %v was acknowledged and is not done", point, step.args)
		default:
			undone++
			must(t, d.slurms(new(bytes.Buffer), step.args...).Run())
			if now = d.stands(); !slices.Equal(now, to) {
				t.Errorf("%s: %v, again, is not done", point, step.args)
			}
		}
		was = to
		d.end(l)
	}
	if undone == 0 || undone == len(steps) {
		t.Errorf("%d of %d commands were cut off, want some of them", undone, len(steps))
	}
}
