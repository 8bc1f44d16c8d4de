package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/cli/term"
)

// Ensure that an interrupted trace is said not to be whole, and that it ends there.
func TestGenerateInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out, errs bytes.Buffer
	code := run(ctx, strings.Fields("trace generate --like philly --jobs 1000000"), &out, &errs)
	if want := "trainyard: interrupted; the trace is not whole\n"; code != term.ExitInterrupted ||
		errs.String() != want || out.Len() > 0 {
		t.Errorf("exit code %d, %q, %d bytes, want %d, %q", code, errs.String(), out.Len(), term.ExitInterrupted, want)
	}
}
