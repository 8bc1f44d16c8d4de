package shim

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/driver/local/procs"
)

// draw reads a tree of processes, a line each, indented by its depth: its program, and what else it is: handles, asked,
// overdue, late (born after all that were asked), newborn, rank=N (also what it inherits), stopped. The n-th has the
// pid n.
func draw(t *testing.T, tree string) (list []node) {
	t.Helper()
	var above []int // pids by depth
	for line := range strings.Lines(strings.Trim(tree, "\n")) {
		text := strings.TrimLeft(line, "\t")
		depth := len(line) - len(text)
		words := strings.Fields(text)
		n := node{Member: procs.Member{PID: len(list) + 1, Name: words[0], Program: words[0]}, seen: 1}
		if above = above[:depth]; depth > 0 {
			n.Parent = above[depth-1]
			n.Env = list[n.Parent-1].Env
		}
		above = append(above, n.PID)
		for _, word := range words[1:] {
			switch key, value, _ := strings.Cut(word, "="); key {
			case "handles":
				n.Handles = true
			case "asked":
				n.asked = 1
			case "overdue":
				n.asked, n.overdue = 1, true
			case "late":
				n.seen = 2
			case "newborn":
				n.Handles, n.newborn = true, true
			case "rank", "task":
				env := map[string]string{map[string]string{"rank": "LOCAL_RANK", "task": "SLURM_STEP_ID"}[key]: value}
				for k, v := range n.Env {
					env[k] = v
				}
				n.Env = env
			default:
				t.Fatalf("%q in %q", word, line)
			}
		}
		list = append(list, n)
	}
	return list
}

// Ensure that those are asked who can save, and no one who should be left alone.
func TestAudience(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, to, tree, want string }{
		{"topmost", "", "sh\n\tpython handles\n\t\tworker handles\n\tpython handles\n", "2 4"},
		{"no one", "", "sh\n\tpython\n\t\tworker\n", "1 2 3"},
		{"asked once", "top", "python handles asked\n\tworker handles\n", ""},
		{"no one, and all are asked", "", "sh asked\n\tpython asked\nforked\n", ""},
		{"a shell shields no one", "", "bash handles\n\tpython handles\n\t\tworker handles\n", "1 2"},
		{"a asked shell shields no one", "", "bash handles asked\n\tpython handles\n", "2"},
		{"whom a asked shell waits for", "", "bash handles asked\n\tsleep\n", ""},
		{"whom it waits for long", "", "bash handles overdue\n\tsh\n\t\tsleep\n\tsleep late\n", "2 3"},
		{"whom it waits for, who saves", "", "bash handles overdue\n\tsleep\n\tpython handles asked\n", ""},
		{"what saves in a trap", "", "bash handles asked\n\trclone handles late\n\t\trclone handles late\n", ""},
		{"who may not have run its program yet", "", "bash handles\n\tbash newborn\n", "1"},
		{"it, of one that was asked", "", "bash handles asked\n\tbash newborn\n", ""},
		{"it, of one that waits for long", "", "bash handles overdue\n\tbash newborn\n\tsleep\n", ""},
		{"it, of who has ended", "", "bash newborn\nsh\n", ""},
		{"below who is no shell, born late", "", "bash handles asked\n\ttorchrun\n\t\tpython handles late\n", "3"},
		{"ranks", "",
			"torchrun handles\n\tpython handles rank=0\n\t\tworker handles\n\tpython handles rank=1\n", "2 4"},
		{"innermost ranks", "", "slurmstepd handles\n\ttorchrun handles task=0\n\t\tpython handles rank=0\n", "3"},
		{"below a rank", "", "torchrun handles\n\tsh rank=0\n\t\tpython handles\n", "3"},
		{"above ranks that cannot", "", "torchrun handles\n\tpython rank=0\n\tpython rank=1\n", "1"},
		{"above ranks, asked", "", "torchrun handles asked\n\tpython handles rank=0\n", ""},
		{"one rank can", "", "torchrun handles\n\tpython rank=0\n\tpython handles rank=1\n", "3"},
		{"next to ranks", "", "sh\n\tserver handles\n\ttorchrun handles\n\t\tpython handles rank=0\n", "4"},
		{"the first process is a rank", "", "python handles rank=0\n\tworker handles\n", "1"},
		{"who passes it on", "", "timeout handles\n\tpython handles\n", "2"},
		{"who passes it on to no one else that can", "", "timeout handles\n\tpython\n", "1"},
		{"orphans", "", "server\npython handles\n", "2"},
		{"leader", "leader", "sh\n\tpython handles\n", "1"},
		{"leader, asked", "leader", "sh asked\n\tpython handles\n", ""},
		{"leader, gone", "leader", "", ""},
	} {
		var got []string
		for _, i := range audience(c.to, 1, draw(t, c.tree)) {
			got = append(got, strconv.Itoa(i+1))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: asked %v, want %s of\n%s", c.name, got, c.want, c.tree)
		}
	}
}

// Ensure that a script does not go on when that for which it waits has ended, and that no rank is stopped.
func TestWaiting(t *testing.T) {
	t.Parallel()
	for tree, want := range map[string]string{
		"sh\n\tsh\n\t\tpython handles asked\n\tsh\n":                         "1 2",
		"bash handles asked\n\tpython asked\n":                               "",
		"python\n\tsh\n\t\tpython handles asked\n":                           "",
		"sh\n\ttorchrun\n\t\tsh rank=0\n\t\t\tpython handles asked rank=0\n": "1",
		"sh\n\tpython handles\n":                                             "",
	} {
		var got []string
		for _, i := range newFamily(draw(t, tree)).waiting() {
			got = append(got, strconv.Itoa(i+1))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%v wait, want %s of\n%s", got, want, tree)
		}
	}
}

// Ensure that the record says of which rank a process is, and that no name a job chose harms who reads it.
func TestRecipient(t *testing.T) {
	t.Parallel()
	list := draw(t, "torchrun\n\tsh rank=3\n\t\tpython\n")
	list[2].Name = "\x1b[31m\u00e9very long name"
	f := newFamily(list)
	got := fmt.Sprint(f.recipient(0), f.recipient(1), f.recipient(2))
	if want := "{torchrun 1 } {sh 2 3} {?[31m??very?long 3 3}"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
