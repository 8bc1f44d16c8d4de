package controlplane

import "os"

// Program is a program under test, which runs next to the servers and ends with the test binary at the latest.
type Program struct {
	p   *process
	Log string // file that has what it wrote
}

// Launch starts a program. What it writes is in a file of the cluster's directory; name says which.
func (c *Cluster) Launch(name, program string, args ...string) (*Program, error) {
	p, err := spawn(program, c.log(name), args...)
	if err != nil {
		return nil, err
	}
	return &Program{p, c.log(name)}, nil
}

// Kill ends the program at once, and returns when it is gone.
func (p *Program) Kill() { p.p.kill() }

// Signal sends it a signal.
func (p *Program) Signal(s os.Signal) error { return p.p.os.Signal(s) }

// Done is closed once the program has ended; Err says how, then.
func (p *Program) Done() <-chan struct{} { return p.p.done }

// Err returns how the program ended, once Done is closed.
func (p *Program) Err() error { return p.p.err }

// Pid is the number of its process.
func (p *Program) Pid() int { return p.p.os.Pid }
