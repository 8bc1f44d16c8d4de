package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/kube/config"
)

// Ensure that manifests prints the definitions alone, or all with the image that is named, and says what is wrong with
// a command.
func TestManifests(t *testing.T) {
	if n := strings.Count(string(config.Install), "image: "+config.Image+"\n"); n != 1 {
		t.Fatalf("the image stands there %d times, want once", n)
	}
	for _, c := range []struct{ args, has, lacks, wrong string }{
		{args: "manifests", has: `image: "trainyard-kube"`},
		{args: "manifests --image localhost:5000/a/trainyard-kube:v1@sha256:00",
			has: `image: "localhost:5000/a/trainyard-kube:v1@sha256:00"`, lacks: `image: trainyard-kube`},
		{args: "manifests --crds", has: "kind: CustomResourceDefinition", lacks: "kind: Deployment"},
		{args: "version", has: "trainyard-kube devel, go"},
		{args: "version 2", wrong: `version: unexpected "2", want nothing`},
		{args: "manifests --image a:", wrong: `manifests: --image "a:", want a name as registry/trainyard-kube:v1`},
		{args: "manifests --crds --image a",
			wrong: `manifests: --crds with --image "a", want one of them: definitions run nothing`},
		{args: "manifests crds", wrong: `manifests: unexpected "crds", want flags alone`},
		{args: "manifest", wrong: `unknown command "manifest", want manifests, version or none`},
		{args: "--obsrve", wrong: "flag provided but not defined: -obsrve; trainyard-kube --help lists the flags"},
		{args: "manifests --nope", wrong: "flag provided but not defined: -nope; trainyard-kube manifests --help " +
			"lists the flags"},
		{args: "--lease 1500ms", wrong: "--lease 1.5s, want whole seconds, 1s or more"},
		{args: "--leader-elect --lease 0s", wrong: "--lease 0s, want whole seconds, 1s or more"},
		{args: "--observe now", wrong: `unknown command "now", want manifests, version or none`},
		{args: "--kubeconfig testdata/none", wrong: "no cluster: stat testdata/none: no such file or directory; name " +
			"one by --kubeconfig"},
	} {
		var out, errs bytes.Buffer
		err := run(context.Background(), strings.Fields(c.args), &out, &errs)
		want := 0
		switch {
		case strings.HasPrefix(c.wrong, "no cluster"):
			want = 1
		case c.wrong != "":
			want = 2
		}
		if got := exitCode(err, io.Discard); got != want {
			t.Errorf("%s: exit code %d, want %d", c.args, got, want)
		}
		if c.wrong != "" {
			if err == nil || err.Error() != c.wrong {
				t.Errorf("%s: %v, want %s", c.args, err, c.wrong)
			}
			continue
		}
		if err != nil || !strings.Contains(out.String(), c.has) || c.lacks != "" &&
			strings.Contains(out.String(), c.lacks) {
			t.Errorf("%s: %v, want %q and not %q", c.args, err, c.has, c.lacks)
		}
	}
}

// Ensure that help fits a terminal.
func TestHelpFits(t *testing.T) {
	for _, args := range [][]string{{"-h"}, {"manifests", "-h"}} {
		var out, errs bytes.Buffer
		if err := run(context.Background(), args, &out, &errs); exitCode(err, &errs) != 0 || errs.Len() > 0 ||
			!strings.Contains(out.String(), "-") {
			t.Errorf("%v: %v, %q, %q", args, err, out.String(), errs.String())
		}
		for line := range strings.SplitSeq(out.String(), "\n") {
			if len(strings.ReplaceAll(line, "    \t", "        ")) > 80 {
				t.Errorf("%v: %d columns: %s", args, len(line), line)
			}
		}
	}
}
