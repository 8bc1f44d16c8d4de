package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Ensure that each command of trainyard-kube on the pages about clusters works, or has flags that it takes, and that
// each file that they apply or build from is there.
func TestCommandsOfPages(t *testing.T) {
	const repository = "../../.."
	ran, files := 0, 0
	for _, page := range []string{"docs/start/cluster.md", "docs/guide/kubernetes.md"} {
		text, err := os.ReadFile(filepath.Join(repository, page))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if args, ok := strings.CutPrefix(line, "bin/trainyard-kube "); ok {
				args, _, _ = strings.Cut(args, "|")
				ran++
				// Observing needs a cluster: its flags alone are looked at.
				args = strings.Replace(args, "--observe", "--observe --help", 1)
				err := run(context.Background(), strings.Fields(args), io.Discard, io.Discard)
				if exitCode(err, io.Discard) != 0 {
					t.Errorf("%s: %s: %v", page, strings.TrimSpace(line), err)
				}
			}
			words := strings.Fields(line)
			for i, word := range words[:max(len(words)-1, 0)] {
				if word == "-f" && strings.Contains(words[i+1], "/") {
					files++
					if _, err := os.Stat(filepath.Join(repository, words[i+1])); err != nil {
						t.Errorf("%s: %s: %v", page, strings.TrimSpace(line), err)
					}
				}
			}
		}
	}
	if ran < 6 || files < 4 {
		t.Errorf("%d commands and %d files, want more", ran, files)
	}
}
