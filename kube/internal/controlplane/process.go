package controlplane

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
)

// process is a server that runs, or did.
type process struct {
	os   *os.Process
	done chan struct{} // closed once it has ended
	err  error         // how it ended, never nil; read it after done
}

// spawn starts a program with its output appended to the file log.
//
// The kernel kills it when the thread that started it ends (Pdeathsig), not the process: so one goroutine, locked to
// its thread, starts it and stays until it has ended.
func spawn(program, log string, args ...string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = attributes()
	p := &process{done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer out.Close()
		startErr := cmd.Start()
		p.os = cmd.Process
		started <- startErr
		if startErr != nil {
			return
		}
		if p.err = cmd.Wait(); p.err == nil {
			p.err = errors.New("exit status 0")
		}
		close(p.done)
	}()
	return p, <-started
}

// kill ends the process at once, and returns when it is gone: no one reads again what a server would save on its way
// out.
func (p *process) kill() {
	_ = p.os.Kill() // it may be gone
	<-p.done
}
