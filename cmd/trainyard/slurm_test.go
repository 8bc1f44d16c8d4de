package main

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
)

// recordSlurm has the plays of testdata/slurm run with the words of a Slurm that $SLURM_CONF names, and what came of
// them written into them: make test-slurm.
var recordSlurm = flag.Bool("record-slurm", false, "record what a real Slurm does in the plays of testdata/slurm")

// Ensure that scripts and the words of Slurm do here what they did under a real Slurm 22.05 ("want"): files, variables,
// states and codes. Where that is not so on purpose, the second line of a play says why, and "here" has what they do.
func TestSlurmsPlays(t *testing.T) {
	t.Parallel()
	plays, err := filepath.Glob("testdata/slurm/*.txtar")
	if err != nil || len(plays) < 25 {
		t.Fatal(plays, err)
	}
	env, folder := os.Environ(), t.TempDir()
	if !*recordSlurm {
		r := startServing(t, "--slots", "4")
		folder = r.dir // what is left of jobs ends before that is removed
		links := t.TempDir()
		_, _ = trainyard(t, term.ExitOK, "slurm-links", "--force", links)
		env = append(env, client.StateVariable+"="+r.state(),
			"PATH="+strings.Join([]string{links, programs, os.Getenv("PATH")}, string(filepath.ListSeparator)))
		// Numbers of jobs have four digits from now on, by which they are found in texts.
		first := exec.CommandContext(t.Context(), "sh", "testdata/slurm/thousand.sh")
		first.Env = env
		if out, err := first.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for _, path := range plays {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			if !*recordSlurm {
				t.Parallel()
			}
			playSlurm(t, path, filepath.Join(folder, filepath.Base(path)), env)
		})
	}
}

// playSlurm runs a play in dir, which it makes, and compares what came of it with what is on file.
func playSlurm(t *testing.T, path, dir string, env []string) {
	t.Helper()
	archive, err := txtar.ParseFile(path)
	if err = errors.Join(err, os.Mkdir(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	prelude, err := filepath.Abs("testdata/slurm/prelude.sh")
	if err != nil {
		t.Fatal(err)
	}
	want, here := -1, -1
	for i, f := range archive.Files {
		if f.Name == "want" {
			want = i
		} else if f.Name == "here" {
			here = i
		} else if bad := os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o600); bad != nil {
			t.Fatal(bad)
		}
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", `. "$1"; . ./play`, "play", prelude)
	cmd.Dir, cmd.Env = dir, env
	var said strings.Builder // each names things in words of its own there
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, said.String())
	}
	got := likeAnywhere(t, string(out), dir)
	if *recordSlurm {
		archive.Files[want].Data = []byte(got)
		if err := os.WriteFile(path, txtar.Format(archive), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	expected := string(archive.Files[max(want, here)].Data)
	if here >= 0 && expected == string(archive.Files[want].Data) {
		t.Errorf("%s\nSlurm does the same: want no file \"here\"", archive.Comment)
	}
	if got != expected {
		t.Errorf("%s\ngot:\n%s\nwant:\n%s\nerrors:\n%s", archive.Comment, got, expected, said.String())
	}
}

var (
	// digits finds numbers; those of jobs have four digits in the plays.
	digits = regexp.MustCompile(`[0-9]+`)
	// slurmsNotes finds lines that Slurm adds to outputs of its own.
	slurmsNotes = regexp.MustCompile(`(?m)^slurmstepd-.*: error: .*\n`)
)

// likeAnywhere replaces what differs from machine to machine in a text: its name, the folder, the user, and the numbers
// of jobs, which become J1, J2 ... as they come.
func likeAnywhere(t *testing.T, text, dir string) string {
	t.Helper()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	host, _, _ = strings.Cut(host, ".")
	text = strings.ReplaceAll(text, dir, "DIR")
	for word, is := range map[string]string{host: "HOST", me.Username: "USER"} {
		text = regexp.MustCompile(`\b`+regexp.QuoteMeta(word)+`\b`).ReplaceAllLiteralString(text, is)
	}
	text = strings.ReplaceAll(text, "SLURM_JOB_UID="+me.Uid+"\n", "SLURM_JOB_UID=UID\n")
	names := map[string]string{}
	return digits.ReplaceAllStringFunc(slurmsNotes.ReplaceAllLiteralString(text, ""), func(number string) string {
		if len(number) != 4 {
			return number
		}
		if names[number] == "" {
			names[number] = "J" + strconv.Itoa(len(names)+1)
		}
		return names[number]
	})
}
