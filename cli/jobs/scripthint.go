package jobs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/cli/term"
)

// behindDashes says how arguments without -- are meant as a command, "" where the first may be a job file.
func behindDashes(cmd *cobra.Command, args []string) string {
	if len(args) < 2 || cmd.ArgsLenAtDash() >= 0 || isJobFile(args[0]) {
		return ""
	}
	return fmt.Sprintf("; a command follows --: `%s -- %s`", cmd.CommandPath(), strings.Join(args, " "))
}

// isJobFile reports whether a name is that of a job file.
func isJobFile(name string) bool {
	ext := filepath.Ext(name)
	return name == "-" || ext == ".yaml" || ext == ".yml" || ext == ".json"
}

// refuseProgram returns an error where the file that is given for a job file is a program: it says how to submit that.
func refuseProgram(cmd *cobra.Command, name string) error {
	head, ok := program(name)
	switch {
	case !ok:
		return nil
	case bytes.Contains(head, []byte("\n#SBATCH")) && cmd.Name() == "submit":
		return term.Usagef("%s: %s is a script for Slurm, want JOBS.yaml; submit it by `%s sbatch %s`",
			term.OwnName(cmd), name, cmd.Root().Name(), name)
	}
	run := name
	switch at, err := os.Stat(name); {
	case err == nil && at.Mode()&0o111 == 0 && filepath.Ext(name) == ".py":
		run = "python3 " + name
	case err == nil && at.Mode()&0o111 == 0:
		run = "bash " + name
	case !strings.Contains(name, "/"):
		run = "./" + name
	}
	return term.Usagef("%s: %s is a program, want JOBS.yaml; submit it as a command: `%s --gpus %s -- %s`",
		term.OwnName(cmd), name, cmd.CommandPath(), cmd.Flag("gpus").Value, run)
}

// program returns the first bytes of a file that is a program and no job file: by its name, its first line or its mode.
func program(name string) (head []byte, ok bool) {
	if isJobFile(name) {
		return nil, false
	}
	at, err := os.Stat(name)
	if err != nil || !at.Mode().IsRegular() {
		return nil, false
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	head = make([]byte, 4096)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, false
	}
	head = head[:n]
	ext := filepath.Ext(name)
	return head, bytes.HasPrefix(head, []byte("#!")) || ext == ".sh" || ext == ".py" || at.Mode()&0o111 != 0
}
