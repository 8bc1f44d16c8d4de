// Command compare measures whether the tree got slower since a commit.
//
//	compare [-only REGEXP] [-pairs N] [-list] BASE
//
// It checks BASE out into a folder of its own and builds both. Each workload is a process that does the same with
// either build: a simulation, or a benchmark. They run in turn, -pairs times: base, head, and base again, so that a
// pair of head over base stands next to one of base over base. What counts is CPU seconds, user and system, of the
// process and those that it waits for; of benchmarks, allocations too, and what CPU time they report of their own.
//
// The table has for each workload the median of base and of head, the median change over the pairs, and the spread:
// half the range between the quartiles of base over base. A change counts as slower when it is above the bound, 3 %, by
// more than the spread. The size of the binary (1 %) and the CPU of a cold build (5 %) are workloads, too. The exit
// code is 1 when something got slower or could not be measured.
//
// What needs shared data or a Kubernetes control plane is left out, with a line that says so, where there is none. Data
// is that of TRAINYARD_DATA; a control plane that of TRAINYARD_KUBE_BINS, else of bin/kube/current.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	var o options
	flag.StringVar(&o.only, "only", "", "run only the workloads whose name matches this `regexp`")
	flag.IntVar(&o.pairs, "pairs", 10, "times that each workload runs; those of Philly at most five")
	flag.BoolVar(&o.list, "list", false, "list the workloads")
	flag.Parse()
	if flag.NArg() > 0 {
		o.base = flag.Arg(0)
	}
	if err := run(context.Background(), os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

type options struct {
	only  string
	pairs int
	list  bool
	base  string
}

// errSlower says that the table has a workload beyond its bound.
var errSlower = errors.New("slower than the bound allows")

func run(ctx context.Context, out io.Writer, o options) error {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	if o.list {
		for _, w := range workloads(nil) {
			if only.MatchString(w.name) {
				fmt.Fprintln(out, w.name)
			}
		}
		return nil
	}
	if o.base == "" || o.pairs < 1 {
		return errors.New("want a commit to compare with, and at least one pair")
	}
	scratch, err := os.MkdirTemp("", "compare")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	head, err := os.Getwd()
	if err != nil {
		return err
	}
	base := &tree{name: "base", dir: filepath.Join(scratch, "base"), out: filepath.Join(scratch, "out-base")}
	if err := worktree(ctx, head, base.dir, o.base); err != nil {
		return err
	}
	defer removeWorktree(head, base.dir)
	trees := []*tree{base, {name: "head", dir: head, out: filepath.Join(scratch, "out-head")}}
	for _, t := range trees {
		if err := t.build(ctx); err != nil {
			return err
		}
	}
	in := &inputs{dir: filepath.Join(scratch, "in"), head: head, data: os.Getenv("TRAINYARD_DATA"),
		kube: binaries(head)}
	if err := in.prepare(ctx, base.binary()); err != nil {
		return err
	}
	return compare(ctx, out, o, only, in, trees)
}

// compare measures the workloads one after the other and prints a row of each as it is done.
func compare(ctx context.Context, out io.Writer, o options, only *regexp.Regexp, in *inputs, trees []*tree) error {
	fmt.Fprintf(out, "| workload | unit | %s | head | change | spread | bound | |\n", o.base)
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|---|")
	slower, failed := false, false
	for _, w := range workloads(in) {
		if !only.MatchString(w.name) {
			continue
		}
		if w.needs != "" {
			fmt.Fprintf(out, "| %s | | | | | | | left out: needs %s |\n", w.name, w.needs)
			continue
		}
		rows, err := measure(ctx, w, trees, min(o.pairs, w.most()))
		if err != nil {
			failed = true
			fmt.Fprintf(out, "| %s | | | | | | | failed: %s |\n", w.name, oneLine(err))
			continue
		}
		for _, r := range rows {
			slower = slower || r.slower()
			fmt.Fprintln(out, r)
		}
	}
	switch {
	case failed:
		return errors.New("not all could be measured")
	case slower:
		return errSlower
	}
	return nil
}

// binaries returns the folder of the binaries of a control plane, as the tests of the tree find it; empty if there is
// none.
func binaries(head string) string {
	if dir := os.Getenv("TRAINYARD_KUBE_BINS"); dir != "" {
		return dir
	}
	dir, err := filepath.EvalSymlinks(filepath.Join(head, "bin", "kube", "current"))
	if err != nil {
		return ""
	}
	return dir
}

func oneLine(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if len(text) > 200 {
		text = text[:100] + " ... " + text[len(text)-95:]
	}
	return strings.ReplaceAll(text, "|", "/")
}

// worktree checks a commit out.
func worktree(ctx context.Context, repository, dir, commit string) error {
	cmd := exec.CommandContext(ctx, "git", "-C", repository, "worktree", "add", "--detach", dir, commit)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git worktree add %s: %w: %s", commit, err, text)
	}
	return nil
}

func removeWorktree(repository, dir string) {
	if text, err := exec.Command("git", "-C", repository, "worktree", "remove", "--force",
		dir).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "compare: git worktree remove %s: %v: %s\n", dir, err, text)
	}
}
