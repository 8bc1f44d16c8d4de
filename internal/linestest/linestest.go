// Package linestest runs a program whose output a test reads line by line while it runs.
package linestest

import (
	"bufio"
	"bytes"
	"os/exec"
	"testing"
)

// Process is a program that runs.
type Process struct {
	Cmd    *exec.Cmd
	Lines  []string     // of its standard output, read so far
	Stderr bytes.Buffer // to be read once it has ended

	out *bufio.Scanner
}

// Start starts the command, whose output is not set.
func Start(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	p := &Process{Cmd: cmd}
	cmd.Stderr = &p.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewScanner(stdout)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// Next waits for a line of standard output and adds it to Lines. It returns false at the end.
func (p *Process) Next() bool {
	if !p.out.Scan() {
		return false
	}
	p.Lines = append(p.Lines, p.out.Text())
	return true
}
