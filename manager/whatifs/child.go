package whatifs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

const (
	// Memory is how much a process may have, in bytes: a log of a million events takes a tenth of it.
	Memory = 2 << 30
	// mostAnswer is how much of what it writes is read.
	mostAnswer = 16 << 20
	// mostWords is how much of what it says of an error is kept.
	mostWords = 2000
)

// child is a process that answers a question.
type child struct {
	stop chan struct{} // closed to kill it; see kill
}

// kill ends the process. It is called once at most.
func (c *child) kill() { close(c.stop) }

// start starts a command. progress and ended are called by others; ended once, with what it wrote or why it failed.
func start(command []string, progress func(Progress), ended func([]byte, error)) (*child, error) {
	c := &child{stop: make(chan struct{})}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(ownEnvironment(), "GOMEMLIMIT="+strconv.Itoa(Memory/4*3), "GOMAXPROCS=1")
	cmd.SysProcAttr = attributes()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	words, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	started := make(chan error)
	go func() {
		// The kernel kills it when the thread ends that started it, which is to be when this program does.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		failed := cmd.Start()
		if failed == nil {
			limit(cmd.Process.Pid)
		}
		started <- failed
		if failed == nil {
			ended(c.wait(cmd, out, words, progress))
		}
	}()
	return c, <-started
}

// ownEnvironment is that of this program without what says which host is meant.
func ownEnvironment() (list []string) {
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "TRAINYARD_") && !strings.HasPrefix(pair, "GOMEMLIMIT=") {
			list = append(list, pair)
		}
	}
	return list
}

// wait reads what a process writes until it ends, or is killed.
func (c *child) wait(cmd *exec.Cmd, out, words io.Reader, progress func(Progress)) ([]byte, error) {
	said, over := make(chan string, 1), make(chan struct{})
	go func() { said <- listen(words, progress) }()
	go func() {
		select {
		case <-c.stop:
			_ = cmd.Process.Kill()
		case <-over:
		}
	}()
	var answer bytes.Buffer
	n, err := io.Copy(&answer, io.LimitReader(out, mostAnswer+1))
	if n > mostAnswer {
		_ = cmd.Process.Kill()
		err = fmt.Errorf("it wrote more than %d bytes", mostAnswer)
	}
	text := <-said
	failed := cmd.Wait()
	close(over)
	switch {
	case err != nil:
		return nil, err
	case failed != nil && text != "":
		return nil, errors.New(text)
	case failed != nil:
		return nil, failed
	}
	return bytes.TrimSpace(answer.Bytes()), nil
}

// listen reads lines of progress, and returns what else is said first: a crash names its cause there.
func listen(words io.Reader, progress func(Progress)) string {
	var rest []string
	lines := bufio.NewReader(words)
	for {
		line, err := lines.ReadString('\n')
		var p Progress
		if text := strings.TrimSpace(line); strings.HasPrefix(text, "{") && json.Unmarshal([]byte(text), &p) == nil {
			progress(p)
		} else if text != "" && len(rest) < 100 {
			rest = append(rest, text)
		}
		if err != nil {
			break
		}
	}
	text := strings.Join(rest, " ")
	if strings.Contains(text, "out of memory") {
		return fmt.Sprintf("it needs more than %d MiB of memory; ask by trainyard whatif", Memory>>20)
	}
	return strings.ToValidUTF8(text[:min(len(text), mostWords)], "")
}
