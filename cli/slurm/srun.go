package slurm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	xterm "golang.org/x/term"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
)

// runFlags are the flags of srun as given.
type runFlags struct {
	tasks, perNode      int
	nodes               string
	output, errors, dir string
	gpus, gres, gpuNode string
	name, limit         string
	label, pty          bool
	input, socket       string
	inside, killAll     string
}

// runUnused means nothing here.
var runUnused = unused{"partition/p", "account/A", "qos/q", "comment", "wckey", "unbuffered/u!", "exclusive!",
	"overlap!", "exact!", "cpu-bind", "mem-bind", "mpi",
	"gpu-bind", "gpus-per-task", "ntasks-per-gpu", "distribution/m", "hint",
	"wait/W", "open-mode", "quiet/Q!", "verbose/v!", "nodelist/w", "exclude/x", "constraint/C", "export",
	"accel-bind", "threads-per-core", "network", "slurmd-debug"}

func newSrun() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "srun [OPTIONS] COMMAND [ARGUMENTS...]",
		Short: "Run a command as tasks of a job, as Slurm's srun does",
		Long: `In a job: runs the command --ntasks times, each with its SLURM_PROCID, passes
signals on, and ends with the worst exit code. Elsewhere: submits the command as
a job, shows what it writes, and ends with its exit code; Ctrl-C cancels it.
With --pty it has a terminal, as with run --pty: Ctrl-] leaves it.`,
		Example: `  srun --ntasks 2 python train.py
  srun --gpus 1 python train.py`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return term.Usagef("srun: no command, want COMMAND ARGUMENTS...")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if n, bad := strconv.Atoi(cmp.Or(f.nodes, "1")); bad != nil || n != 1 {
				return term.Usagef("srun: --nodes %s, want 1: this is one machine", term.ShellWord(f.nodes))
			}
			if err := f.allocation(); err != nil {
				return err
			}
			runUnused.note(cmd)
			if os.Getenv("SLURM_JOB_ID") != "" || os.Getenv("TRAINYARD_JOB_ID") != "" {
				roomOptions.note(cmd)
				return f.step(cmd, args)
			}
			return f.job(cmd, args)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.SetInterspersed(false) // what follows the command is its own
	fs.IntVarP(&f.tasks, "ntasks", "n", 0, "`N` tasks (default: those of the job, else 1)")
	fs.IntVar(&f.perNode, "ntasks-per-node", 0, "the same as --ntasks `N`: there is one node")
	fs.StringVarP(&f.nodes, "nodes", "N", "", "`1`: there is one")
	fs.StringVarP(&f.output, "output", "o", "", "`FILE` for what tasks write, with %j, %t, %N")
	fs.StringVarP(&f.errors, "error", "e", "", "`FILE` for what they write on stderr (default: the same)")
	fs.StringVarP(&f.dir, "chdir", "D", "", "`FOLDER` to run in (default: this one)")
	fs.StringVarP(&f.input, "input", "i", readAll,
		"`FILE` that each task reads, with %j, %t; none; or what srun reads:\n"+
			"all, or the number of the task that does")
	fs.StringVar(&f.socket, "input-socket", "", "")
	fs.BoolVarP(&f.label, "label", "l", false, "the number of its task before each line")
	fs.StringVarP(&f.gpus, "gpus", "G", "", "`N` GPUs or slots, or TYPE:N, of a job (default: 1)")
	fs.StringVar(&f.gres, "gres", "", "the same as `gpu:N`")
	fs.StringVar(&f.gpuNode, "gpus-per-node", "", "the same as `N`")
	fs.StringVarP(&f.name, "job-name", "J", "", "`NAME` of a job")
	fs.StringVarP(&f.limit, "time", "t", "", "`TIME` after which a job is ended, as minutes or D-HH:MM:SS")
	fs.BoolVar(&f.pty, "pty", false, "with a terminal")
	fs.StringVar(&f.inside, "jobid", "", "`NUMBER` of the job that this is in")
	fs.StringVarP(&f.killAll, "kill-on-bad-exit", "K", "0", "end all tasks once one fails; 0 does not")
	fs.Lookup("kill-on-bad-exit").NoOptDefVal = "1"
	for _, digit := range []string{"0", "1"} { // -K1: a letter whose value may be left out takes none that follows it
		name := "kill-on-bad-exit-" + digit
		fs.BoolFuncP(name, digit, "", func(string) error { f.killAll = digit; return nil })
		_ = fs.MarkHidden(name)
	}
	runUnused.define(fs)
	roomOptions.define(fs)
	_ = fs.MarkHidden("input-socket") // where srun outside of the job waits with what it reads
	return cmd
}

// allocation refuses what can not be had of a job that is named, and how tasks are to be ended.
func (f *runFlags) allocation() error {
	if f.killAll != "0" && f.killAll != "1" {
		return term.Usagef("srun: --kill-on-bad-exit=%s, want 0 or 1", term.ShellWord(f.killAll))
	}
	if own := os.Getenv("SLURM_JOB_ID"); f.inside != "" && f.inside != own {
		return term.Refusedf("srun: --jobid=%s: steps are started in their job alone; want srun in its script, or "+
			"a job of its own: srun without --jobid", term.ShellWord(f.inside))
	}
	return nil
}

// width is the number of GPUs of a job, and their type; "" = any.
func (f *runFlags) width() (number, kind string, err error) {
	text := cmp.Or(f.gpus, f.gpuNode, strings.TrimPrefix(strings.TrimPrefix(f.gres, "gpu"), ":"), "1")
	colon := strings.LastIndexByte(text, ':')
	number = text[colon+1:]
	if n, bad := strconv.Atoi(number); bad != nil || n < 1 {
		return "", "", term.Usagef("srun: %s GPUs, want a number > 0, or TYPE:N", term.ShellWord(text))
	}
	return number, text[:max(colon, 0)], nil
}

// job runs the command as a job of its own, by the verbs of this program: submit, logs and wait.
func (f *runFlags) job(cmd *cobra.Command, args []string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	flags, err := f.asked(cmd, args)
	if err != nil {
		return err
	}
	if f.pty {
		return f.terminal(program, flags, args)
	}
	if f.output != "" {
		flags = append(flags, "--output", f.output)
	}
	if f.errors != "" {
		flags = append(flags, "--error", f.errors)
	}
	sub := func(args ...string) *exec.Cmd {
		c := exec.CommandContext(cmd.Context(), program, args...)
		c.Args[0] = "trainyard" // not a word of Slurm, as the link may be called
		c.Dir, c.Stdout, c.Stderr = f.dir, cmd.OutOrStdout(), cmd.ErrOrStderr()
		return c
	}
	name := f.jobName(args)
	feed, input, err := f.feed(cmd)
	if err != nil {
		return err
	}
	defer feed.close()
	if n := max(f.tasks, f.perNode, 1); n > 1 || f.label || len(input) > 0 {
		own := append([]string{program, "slurm", "srun", "--label=" + strconv.FormatBool(f.label), "--ntasks",
			strconv.Itoa(n), "--kill-on-bad-exit=" + f.killAll}, input...)
		args = append(append(own, "--"), args...)
		flags = append(flags, "--env", task.SlurmTasks+"="+strconv.Itoa(n))
	}
	flags = append(flags, "--env", task.SlurmName+"="+name)
	submit := sub(append(append([]string{"submit", "--json"}, flags...), append([]string{"--"}, args...)...)...)
	var out bytes.Buffer
	submit.Stdout = &out
	if err = submit.Run(); err != nil {
		return ended(err)
	}
	var doc struct{ Jobs []struct{ ID int } }
	if err = json.Unmarshal(out.Bytes(), &doc); err != nil || len(doc.Jobs) != 1 {
		return fmt.Errorf("srun: %s: no job", out.Bytes())
	}
	number := strconv.Itoa(doc.Jobs[0].ID)
	follow := sub("logs", "--follow", "--raw", number)
	if f.output != "" {
		follow = sub("wait", number)
		follow.Stderr = nil // how the job ended is said once
	}
	follow.Cancel = func() error { return follow.Process.Signal(os.Interrupt) }
	_ = follow.Run() // how the job ended is asked for next
	if cmd.Context().Err() != nil {
		last := exec.Command(program, "cancel", number)
		last.Args[0], last.Stderr = "trainyard", cmd.ErrOrStderr()
		return errors.Join(cmd.Context().Err(), last.Run())
	}
	return ended(sub("wait", number).Run())
}

// ended is the error of a command of ours that has said what is wrong.
func ended(err error) error {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() > 0 {
		return &term.CodedError{Code: exit.ExitCode(), Err: errors.New("srun: the job did not finish")}
	}
	return err
}

// passedOn are the signals that srun passes on to its tasks.
var passedOn = []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1,
	syscall.SIGUSR2}

// step runs the command as tasks of the job that this is in.
func (f *runFlags) step(cmd *cobra.Command, args []string) error {
	n := max(f.tasks, f.perNode)
	if n == 0 {
		n, _ = strconv.Atoi(os.Getenv(task.SlurmTasks))
	}
	const most = 4096
	if n = max(n, 1); n > most {
		return term.Usagef("srun: %d tasks, want at most %d", n, most)
	}
	_ = os.WriteFile("/proc/self/comm", []byte("srun"), 0) // as signals find it, whatever name it was run by
	heard := make(chan os.Signal, 16)
	signal.Notify(heard, passedOn...)
	defer signal.Stop(heard)
	if stopping(cmd.Context()) {
		return &term.CodedError{Code: 128 + int(syscall.SIGTERM), Err: errors.New("srun: the job is asked to end")}
	}
	s := step{flags: f, cmd: cmd, n: n, number: strconv.FormatInt(stepNumber(os.Getenv("TRAINYARD_RUN_DIR")), 10),
		files: make(map[string]*os.File)}
	defer s.close()
	if err := s.start(args); err != nil {
		s.signal(syscall.SIGKILL)
		_, _ = s.wait(heard)
		if coded := (*term.CodedError)(nil); errors.As(err, &coded) {
			return err
		}
		return &term.CodedError{Code: 2, Err: err}
	}
	worst, err := s.wait(heard)
	if err != nil && worst > 0 {
		return &term.CodedError{Code: worst, Err: err}
	}
	return err
}

// stopping reports whether the job that this is in is asked to end: its signal may have come before we could hear it.
func stopping(ctx context.Context) bool {
	c, err := new(client.Target).Dial()
	if err != nil {
		return false
	}
	defer c.Close()
	ctx, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	doc, err := c.Job(ctx, os.Getenv("TRAINYARD_JOB_ID"))
	return err == nil && (doc.State == "stopping" || doc.State == "done")
}

// step is tasks that run.
type step struct {
	flags *runFlags
	cmd   *cobra.Command
	n     int

	number string // of the step in its attempt
	input  stepInput

	tasks   []*exec.Cmd
	grouped bool // each task leads a process group of its own
	files   map[string]*os.File
	ends    chan int
	lines   lines
}

// environment is that of a task.
func (s *step) environment(task int) []string {
	n, number := strconv.Itoa(s.n), strconv.Itoa(task)
	ids := make([]string, s.n)
	for i := range ids {
		ids[i] = strconv.Itoa(i)
	}
	host, _ := os.Hostname()
	return append(os.Environ(), "SLURM_PROCID="+number, "SLURM_LOCALID="+number, "SLURM_NTASKS="+n, "SLURM_NPROCS="+n,
		"SLURM_STEP_NUM_TASKS="+n, "SLURM_STEP_TASKS_PER_NODE="+n, "SLURM_TASKS_PER_NODE="+n,
		"SLURM_STEP_ID="+s.number, "SLURM_STEPID="+s.number, "SLURM_STEP_NUM_NODES=1", "SLURM_STEP_NODELIST="+host,
		"SLURM_NODEID=0", "SLURM_GTIDS="+strings.Join(ids, ","))
}

// start starts the tasks.
func (s *step) start(args []string) error {
	s.ends = make(chan int, s.n)
	var err error
	if s.input, err = s.flags.newInput(s.n); err != nil {
		return err
	}
	defer s.input.flow()
	// a terminal has one group that may read it, which it gives Ctrl-C and the like to
	s.grouped = s.input.whole == nil || !xterm.IsTerminal(int(s.input.whole.Fd()))
	for i := range s.n {
		c := exec.Command(args[0], args[1:]...)
		c.Dir, c.Env, c.SysProcAttr = s.flags.dir, s.environment(i), &syscall.SysProcAttr{Setpgid: s.grouped}
		in, err := s.stdin(i)
		if err != nil {
			return err
		}
		if in != nil {
			c.Stdin = in
		}
		ours, err := s.direct(c, i)
		if err == nil {
			err = started(c, args[0])
		}
		for _, f := range ours {
			_ = f.Close() // it is the task's
		}
		if err != nil {
			return err
		}
		if in != os.Stdin {
			_ = in.Close() // it is the task's; nil is an error
		}
		s.tasks = append(s.tasks, c)
		go func() {
			_ = c.Wait() // its state says how it ended
			s.ends <- i
		}()
	}
	return nil
}

// started starts a task.
func started(c *exec.Cmd, program string) error {
	if c.Dir != "" {
		if _, err := os.Stat(c.Dir + "/."); err != nil { // a file, or may not be entered
			return fmt.Errorf("srun: --chdir %s: %w", term.ShellWord(c.Dir), errors.Unwrap(err))
		}
	}
	err := c.Start()
	if cause := errno(err); cause != 0 { // as Slurm says it
		return &term.CodedError{Code: int(cause),
			Err: fmt.Errorf("slurmstepd: error: execve(): %s: %w", program, cause)}
	} else if err != nil {
		return fmt.Errorf("srun: %w", err)
	}
	return nil
}

// direct says where a task writes to: to our own files, so that nothing is lost if we end. Lines that are to have a
// label come by pipes, whose ends in ours are to be closed once it is started.
func (s *step) direct(c *exec.Cmd, task int) (ours []*os.File, err error) {
	out, err := s.file(s.flags.output, task)
	if err != nil {
		return nil, err
	}
	side, err := s.file(cmp.Or(s.flags.errors, s.flags.output), task)
	if err != nil {
		return nil, err
	}
	out, side = cmp.Or(out, os.Stdout), cmp.Or(side, os.Stderr)
	for _, to := range []**os.File{&out, &side} {
		if !s.flags.label {
			break
		}
		write, err := s.lines.label(*to, strconv.Itoa(task)+": ")
		if err != nil {
			return ours, fmt.Errorf("srun: %w", err)
		}
		*to, ours = write, append(ours, write)
	}
	c.Stdout, c.Stderr = out, side
	return ours, nil
}

// file opens the file of a pattern for a task, tasks with the same name share one; nil = there is no pattern.
func (s *step) file(pattern string, task int) (*os.File, error) {
	if pattern == "" || pattern == "none" {
		return nil, nil
	}
	path := s.path(pattern, task)
	if f := s.files[path]; f != nil {
		return f, nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
	if err != nil {
		return nil, fmt.Errorf("srun: --output: %w", err)
	}
	s.files[path] = f
	return f, nil
}

// path puts values in the place of %j, %t and others of a pattern; what is relative is of the folder of the tasks.
func (s *step) path(pattern string, task int) string {
	host, _ := os.Hostname()
	host, _, _ = strings.Cut(host, ".")
	job := os.Getenv("SLURM_JOB_ID")
	path := strings.NewReplacer("%%", "%", "%j", job, "%J", job+"."+s.number, "%t", strconv.Itoa(task),
		"%n", "0", "%N", host, "%s", s.number, "%u", os.Getenv("USER"), "%x", os.Getenv("SLURM_JOB_NAME"),
		"%A", cmp.Or(os.Getenv("SLURM_ARRAY_JOB_ID"), job), "%a", os.Getenv("SLURM_ARRAY_TASK_ID")).Replace(pattern)
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.flags.dir, path)
	}
	return path
}

// wait waits for all tasks, and returns the worst exit code, or that of the task for which the others were ended.
func (s *step) wait(heard <-chan os.Signal) (worst int, err error) {
	var late <-chan time.Time
	var by time.Time
	for left := len(s.tasks); left > 0; {
		select {
		case sig := <-heard:
			by = s.pass(sig)
		case <-late:
			s.signal(syscall.SIGKILL)
		case i := <-s.ends:
			left--
			code := exitCode(s.tasks[i].ProcessState)
			if code > worst && late == nil {
				worst, err = code, fmt.Errorf("srun: task %d: exited with exit code %d", i, code)
			}
			if slices.Contains(passedOn, os.Signal(syscall.Signal(code-128))) { // it may have been sent to all of them
				by = time.Now().Add(grace())
			}
			if code > 0 && late == nil && s.flags.killAll == "1" {
				s.signal(syscall.SIGTERM)
				late, by = time.After(patience), time.Now().Add(patience)
			}
		}
	}
	s.settle(heard, by)
	return worst, err
}

// errno is why a program could not be run; 0 = it is not known, or something else failed.
func errno(err error) syscall.Errno {
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, syscall.ENOENT):
		return syscall.ENOENT
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EISDIR): // found in no path, or no file
		return syscall.EACCES
	case errors.Is(err, syscall.ENOEXEC):
		return syscall.ENOEXEC
	}
	return 0
}

// exitCode is that of a shell for a program that ended so.
func exitCode(p *os.ProcessState) int {
	if w, ok := p.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return p.ExitCode()
}

func (s *step) close() {
	for _, f := range s.files {
		_ = f.Close()
	}
}

// labelled writes lines with a label before each.
type labelled struct {
	to    io.Writer
	label string
	rest  []byte
}

// mostRest is how many bytes of a line wait for its end.
const mostRest = 64 << 10

// flush writes what is left of a line that has no end, with one.
func (l *labelled) flush() {
	if len(l.rest) > 0 {
		_, _ = io.WriteString(l.to, l.label+string(l.rest)+"\n") // there is no one to report it to
		l.rest = nil
	}
}

// Write writes the lines that are whole. What is left of the last is written with the next, or once it is long.
func (l *labelled) Write(b []byte) (int, error) {
	l.rest = append(l.rest, b...)
	for {
		i := bytes.IndexByte(l.rest, '\n')
		if i < 0 {
			if len(l.rest) > mostRest {
				l.flush()
			}
			return len(b), nil
		}
		if _, err := io.WriteString(l.to, l.label+string(l.rest[:i+1])); err != nil {
			return 0, err
		}
		l.rest = l.rest[i+1:]
	}
}
