package realnode

import (
	"bufio"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

//go:embed init.sh
var initScript string

// machine is process 1 of a node.
type machine struct {
	cmd *exec.Cmd
	log *os.File

	mu   sync.Mutex // one command at a time
	in   io.WriteCloser
	outs *bufio.Reader
}

// boot starts process 1. What it and the programs that it starts say is in folder; bins is the first of the folders
// where these look for others.
func boot(folder, bins, cgroup string) (*machine, error) {
	log, err := os.Create(filepath.Join(folder, "init.log"))
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("bash", "-c", initScript, "init", folder, cgroup)
	cmd.Env = append(os.Environ(), "PATH="+bins+":"+os.Getenv("PATH")+":/usr/sbin:/sbin")
	cmd.SysProcAttr = attributes()
	cmd.Stderr = log
	m := &machine{cmd: cmd, log: log}
	out, err := cmd.StdoutPipe()
	if err == nil {
		m.in, err = cmd.StdinPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		log.Close()
		return nil, err
	}
	m.outs = bufio.NewReader(out)
	if err := m.answer(); err != nil {
		return nil, errors.Join(err, m.halt())
	}
	return m, nil
}

// do gives a command and waits for the answer.
func (m *machine) do(words ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := io.WriteString(m.in, strings.Join(words, "\t")+"\n"); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	return m.answer()
}

func (m *machine) answer() error {
	line, err := m.outs.ReadString('\n')
	switch line = strings.TrimSpace(line); {
	case err != nil:
		return fmt.Errorf("node: no answer: %w", err)
	case line != "ok":
		return fmt.Errorf("node: %s", line)
	}
	return nil
}

// halt ends the node and all that runs on it, and returns when all of it is gone.
func (m *machine) halt() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	err := m.in.Close()
	return errors.Join(err, m.cmd.Wait(), m.log.Close())
}
