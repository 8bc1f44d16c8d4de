package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/term"
)

// cards are pretended GPUs: each is a file in a folder, by its UUID, which holds its index.
type cards struct{ dir string }

// newCards makes a nvidia-smi that shows cards.
func newCards(t *testing.T) cards {
	t.Helper()
	c := cards{t.TempDir()}
	write(t, `#!/bin/sh
cd '`+c.dir+`/cards' || exit 9
for uuid in *; do
	test -e "$uuid" || continue
	read -r index < "$uuid"
	case $1 in
	--query-gpu=uuid,name,*) echo "$uuid, NVIDIA H200, $index, 00000000:0$index:00.0, 143771, 700.00, Disabled" ;;
	--query-gpu=uuid,pci*) echo "$uuid, 00000000:0$index:00.0, 4, 0, 75.31, 31, 0x0000000000000001, Disabled" ;;
	esac
done
`, 0o700, c.dir, "bin", "nvidia-smi")
	if err := os.Mkdir(filepath.Join(c.dir, "cards"), 0o700); err != nil {
		t.Fatal(err)
	}
	return c
}

// uuid names a card as no other test does: the locks of GPUs are the machine's.
func (c cards) uuid(name string) string { return fmt.Sprintf("GPU-%d-%s", os.Getpid(), name) }

// plug puts a card in, or moves it to another index.
func (c cards) plug(t *testing.T, name string, index int) {
	t.Helper()
	whole := filepath.Join(c.dir, name)
	write(t, fmt.Sprintln(index), 0o600, whole)
	if err := os.Rename(whole, filepath.Join(c.dir, "cards", c.uuid(name))); err != nil {
		t.Fatal(err)
	}
}

// pull takes a card out.
func (c cards) pull(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(c.dir, "cards", c.uuid(name))); err != nil {
		t.Fatal(err)
	}
}

// gpus returns the GPUs of the folder, by name.
func (r *live) gpus(t *testing.T) map[string]api.GPU {
	t.Helper()
	out, _ := trainyard(t, term.ExitOK, "nodes", "--state", r.state(), "--json")
	var doc api.Nodes
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatal(err)
	}
	list := make(map[string]api.GPU)
	for i := range doc.GPUs {
		list[doc.GPUs[i].Name] = doc.GPUs[i]
	}
	return list
}

// answers starts serve again and waits until it answers.
func (r *live) answers(t *testing.T) {
	t.Helper()
	r.start(t)
	await(t, "it answers", func() bool {
		return exec.CommandContext(t.Context(), filepath.Join(programs, "trainyard"), "nodes", "--state",
			r.state()).Run() == nil
	})
}

// leave ends serve, which leaves its jobs alone.
func (r *live) leave(t *testing.T) {
	t.Helper()
	if err := r.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	r.end(t, term.ExitOK)
}

// Ensure that GPUs come and go while serve runs and between two of them: a job keeps its own, a new one is used at
// once, one that is gone is missing, and one that is back, at another index, has its old number. One that is missing
// can be forgotten, one that is held or there cannot. The log decides again alike, whatever the system.
func TestGPUsComeAndGo(t *testing.T) {
	for _, system := range []string{"tiresias-las", "elastic"} {
		t.Run(system, func(t *testing.T) {
			c := newCards(t)
			c.plug(t, "a", 0)
			t.Setenv("PATH", filepath.Join(c.dir, "bin")+":"+os.Getenv("PATH"))
			r := startServing(t, "--system", system)
			submit := func(code int, gpus string, command ...string) string {
				_, said := trainyard(t, code, append([]string{"submit", "--state", r.state(), "--gpus", gpus, "--"},
					command...)...)
				return said
			}
			wantSaid(t, submit(term.ExitRefused, "2", "true"), "needs 2 GPUs, there are 1")
			submit(term.ExitOK, "1", "sh", "-c", "until [ -e "+r.dir+"/go ]; do sleep 0.02; done")
			submit(term.ExitOK, "1", "true")
			c.plug(t, "b", 1)
			_, _ = trainyard(t, term.ExitOK, "wait", "--state", r.state(), "1")
			if g := r.gpus(t)[c.uuid("a")]; !slices.Equal(g.Jobs, []int{0}) {
				t.Errorf("%+v, want job 0 there still", g)
			}
			submit(term.ExitOK, "2", "true")
			r.leave(t)

			c.pull(t, "a")
			c.plug(t, "b", 0)
			r.answers(t)
			list := r.gpus(t)
			if a, b := list[c.uuid("a")], list[c.uuid("b")]; a.State != "missing" || !slices.Equal(a.Jobs, []int{0}) ||
				b.State != "in-use" || len(list) != 2 {
				t.Errorf("%+v, want a missing under job 0, and b in use", list)
			}
			forget := func(code int, what string) string {
				_, said := trainyard(t, code, "gpus", "forget", "--state", r.state(), what)
				return said
			}
			wantSaid(t, forget(term.ExitConflict, c.uuid("a")), "in use: job 0 holds it")
			wantSaid(t, forget(term.ExitConflict, c.uuid("b")), "it is there")
			wantSaid(t, forget(term.ExitNotFound, "GPU-none"), "no such GPU")
			r.release(t)
			_, _ = trainyard(t, term.ExitOK, "wait", "--state", r.state(), "0")
			if f := diagnosed(t, r.state(), "devices"); f.State != isWrong ||
				!strings.Contains(f.Do, "gpus forget "+c.uuid("a")) {
				t.Errorf("%+v, want a missing, and how to forget it", f)
			}
			wantSaid(t, forget(term.ExitOK, c.uuid("a")), "is forgotten")
			if f := diagnosed(t, r.state(), "devices"); f.State != isFine {
				t.Errorf("%+v, want it fine", f)
			}
			out, _ := trainyard(t, term.ExitOK, "nodes", "--state", r.state())
			if strings.Contains(out, c.uuid("a")) || r.gpus(t)[c.uuid("a")].State != "forgotten" {
				t.Errorf("%s\nwant no a", out)
			}
			wantSaid(t, submit(term.ExitRefused, "2", "true"), "needs 2 GPUs, there are 1")
			r.leave(t)

			r.answers(t)
			if a := r.gpus(t)[c.uuid("a")]; a.State != "forgotten" {
				t.Errorf("%+v after a restart, want it forgotten", a)
			}
			c.plug(t, "a", 1)
			_, _ = trainyard(t, term.ExitOK, "wait", "--state", r.state(), "2") // which needs both
			r.leave(t)
			lines, _ := trainyard(t, term.ExitOK, "events", "--state", r.state())
			log := filepath.Join(r.dir, "log.jsonl")
			write(t, lines, 0o600, log)
			for _, flags := range [][]string{nil, {"--reload"}} {
				out, _ = trainyard(t, term.ExitOK, append([]string{"replay", log}, flags...)...)
				wantSaid(t, out, "every decision of ")
			}
		})
	}
}

// Ensure that slots join and leave with --slots, are kept to by the next serve, and can be forgotten.
func TestSlotsComeAndGo(t *testing.T) {
	t.Parallel()
	r := startServing(t, "--slots", "1")
	r.leave(t)
	r.args = append(r.args[:len(r.args)-1], "3")
	r.answers(t)
	wantSaid(t, r.stderr.String(), "--slots 3: there were 1 slot before")
	_, _ = trainyard(t, term.ExitOK, "run", "--state", r.state(), "--gpus", "3", "--", "true")
	r.leave(t)
	r.args = r.args[:len(r.args)-2]
	r.answers(t)
	_, _ = trainyard(t, term.ExitOK, "run", "--state", r.state(), "--gpus", "3", "--", "true")
	r.leave(t)
	r.args = append(r.args, "--slots", "2")
	r.answers(t)
	if s := r.gpus(t)["slot-2"]; s.State != "missing" {
		t.Errorf("%+v, want it missing", s)
	}
	_, _ = trainyard(t, term.ExitOK, "gpus", "forget", "--state", r.state(), "slot-2")
	r.leave(t)
	r.args = r.args[:len(r.args)-2]
	r.answers(t)
	if s := r.gpus(t)["slot-2"]; s.State != "forgotten" {
		t.Errorf("%+v, want it forgotten", s)
	}
	_, _ = trainyard(t, term.ExitOK, "run", "--state", r.state(), "--gpus", "2", "--", "true")
}
