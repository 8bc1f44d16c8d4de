package shim

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// A stand-in for what jobs are made of, which the test binary is where it is started with the word standin:
//
//	standin trainer [-workers N] [-late D]  steps, and saves once when it gets SIGTERM; fails if a worker dies
//	standin saver                           saves, and dies of SIGTERM
//	standin worker                          dies of SIGTERM
//	standin launcher N ARGS...              starts ranks of these arguments, each in a session; passes SIGTERM on to
//	                                        all of each, and ends the others when one ends, as launchers do
func standin(args []string) {
	switch args[0] {
	case "trainer":
		os.Exit(trainer(args[1:]))
	case "saver": // gone with what it saves if it is asked
		time.Sleep(300 * time.Millisecond)
		fmt.Println("TRAINYARD saved step=1")
	case "worker":
		time.Sleep(2 * patience)
	case "launcher":
		os.Exit(launcher(args[1], args[2:]))
	}
}

// saved is the exit code of who has saved.
const saved = 75

func trainer(args []string) int {
	fs := flag.NewFlagSet("trainer", flag.ContinueOnError)
	workers := fs.Int("workers", 0, "")
	late := fs.Duration("late", 0, "")
	stop := fs.Int("stop", 0, "")
	if err := fs.Parse(args); err != nil {
		return 2
	}
	asked, died := make(chan os.Signal, 9), make(chan struct{}, *workers)
	if *late == 0 {
		signal.Notify(asked, syscall.SIGTERM)
	} else {
		signal.Ignore(syscall.SIGTERM)
		time.AfterFunc(*late, func() { signal.Notify(asked, syscall.SIGTERM) })
	}
	var started []*os.Process
	for range *workers {
		w := exec.Command(os.Args[0], "standin", "worker") //nolint:gosec // it is this test
		if err := w.Start(); err != nil {
			return 1
		}
		go func() {
			_ = w.Wait()
			died <- struct{}{}
		}()
		started = append(started, w.Process)
	}
	defer func() {
		for _, w := range started {
			_ = w.Kill()
		}
	}()
	rank := os.Getenv("LOCAL_RANK")
	for step := 1; ; step++ {
		if step == *stop {
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		}
		select {
		case <-died:
			fmt.Println("a worker died")
			return 1
		case <-asked:
			fmt.Printf("TRAINYARD saved step=%d rank=%s\n", step-1, rank)
			return saved
		case <-time.After(5 * time.Millisecond):
			fmt.Printf("TRAINYARD step=%d rank=%s\n", step, rank)
		}
	}
}

func launcher(ranks string, args []string) int {
	n := int(ranks[0] - '0')
	asked, ended := make(chan os.Signal, 9), make(chan int, n)
	signal.Notify(asked, syscall.SIGTERM)
	var all []*exec.Cmd
	for i := range n {
		rank := exec.Command(args[0], args[1:]...) //nolint:gosec // it is this test, or its script
		rank.Env = append(os.Environ(), fmt.Sprint("LOCAL_RANK=", i))
		rank.Stdout, rank.Stderr = os.Stdout, os.Stderr
		rank.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := rank.Start(); err != nil {
			return 1
		}
		all = append(all, rank)
		go func() {
			_ = rank.Wait()
			ended <- rank.ProcessState.ExitCode()
		}()
	}
	for left := n; left > 0; {
		select {
		case <-asked:
			for _, rank := range all {
				_ = syscall.Kill(-rank.Process.Pid, syscall.SIGTERM)
			}
		case <-ended:
			left--
		}
	}
	return 1
}
