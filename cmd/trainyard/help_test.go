package main

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/cli/term"
)

// Ensure that the help of every command fits a terminal of 80 columns.
func TestHelpFits(t *testing.T) {
	var try func(c *cobra.Command)
	seen := 0
	try = func(c *cobra.Command) {
		args := slices.Concat(strings.Fields(c.CommandPath())[1:], []string{"--help"})
		var out bytes.Buffer
		if code := run(context.Background(), args, &out, &out); code != term.ExitOK || out.Len() == 0 {
			t.Errorf("%v: exit code %d, %s", args, code, out.String())
		}
		seen++
		for _, line := range strings.Split(out.String(), "\n") {
			// that one is cobra's
			if utf8.RuneCountInString(line) > 80 && !strings.Contains(c.CommandPath(), "completion") {
				t.Errorf("%v: %q is wider than 80 columns", args, line)
			}
		}
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				try(sub)
			}
		}
	}
	try(newRoot())
	if seen < 10 {
		t.Errorf("%d commands, want more", seen)
	}
}
