package slurm

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/cli/term"
)

// roomOptions ask for processors and memory of a job; in a job they mean nothing, as its tasks share what it has.
var roomOptions = unused{"cpus-per-task/c", "cpus-per-gpu", "mem", "mem-per-cpu", "mem-per-gpu"}

// asked returns the flags of submit for what is asked for of a job.
func (f *runFlags) asked(cmd *cobra.Command, args []string) (flags []string, err error) {
	width, kind, err := f.width()
	if err != nil {
		return nil, err
	}
	flags = []string{"--gpus", width}
	if kind != "" {
		flags = append(flags, "--gpu-type", kind)
	}
	if f.limit != "" {
		most, bad := task.ParseSlurmTime(f.limit)
		if bad != nil {
			return nil, term.Usagef("srun: %w", bad)
		}
		flags = append(flags, "--time", most.String())
	}
	flags = append(flags, "--name", f.jobName(args))
	room, err := f.room(cmd, width)
	return append(flags, room...), err
}

// jobName is that of a job: the command, unless it is named.
func (f *runFlags) jobName(args []string) string { return cmp.Or(f.name, filepath.Base(args[0])) }

// room returns the flags of submit for the processors and the memory that are asked for, of a job with so many GPUs.
func (f *runFlags) room(cmd *cobra.Command, width string) (flags []string, err error) {
	gpus, _ := strconv.Atoi(width) // it was read before
	cpus := 0
	for flag, times := range map[string]int{"cpus-per-task": max(f.tasks, f.perNode, 1), "cpus-per-gpu": gpus} {
		if text, _ := cmd.Flags().GetString(flag); text != "" {
			n, bad := strconv.ParseUint(text, 10, 16)
			if bad != nil || n == 0 {
				return nil, term.Usagef("srun: --%s %s, want a number from 1 to 65535", flag, term.ShellWord(text))
			}
			cpus = max(cpus, int(n)*times)
		}
	}
	mib := 0.0
	for flag, times := range map[string]int{"mem": 1, "mem-per-cpu": max(cpus, 1), "mem-per-gpu": gpus} {
		if text, _ := cmd.Flags().GetString(flag); text != "" {
			n, bad := task.ParseSlurmMemory(text)
			if bad != nil {
				return nil, term.Usagef("srun: --%s %w", flag, bad)
			}
			mib = max(mib, n*float64(times))
		}
	}
	if cpus > 0 {
		flags = append(flags, "--cpus", strconv.Itoa(cpus))
	}
	if mib > 0 {
		flags = append(flags, "--memory", strconv.FormatFloat(mib, 'f', -1, 64)+"M")
	}
	if len(flags) > 0 {
		flags = append(flags, "--limits", "best-effort")
	}
	return flags, nil
}

// terminal becomes the verb that runs the command in a terminal of its own.
func (f *runFlags) terminal(program string, flags, args []string) error {
	if max(f.tasks, f.perNode) > 1 || f.label || cmp.Or(f.output, f.errors) != "" {
		return term.Refusedf("srun: --pty outside a job is one task that writes to your terminal; want it without " +
			"--ntasks, --label, --output and --error")
	}
	if f.dir != "" {
		if err := os.Chdir(f.dir); err != nil {
			return fmt.Errorf("srun: --chdir: %w", err)
		}
	}
	words := append(append([]string{"trainyard", "run", "--pty"}, flags...), append([]string{"--"}, args...)...)
	return fmt.Errorf("srun: %s: %w", program, syscall.Exec(program, words, os.Environ()))
}
