package jobs

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/manager"
)

// batchRoom are options of sbatch that ask for processors and memory of the machine.
type batchRoom struct {
	memory, memoryCPU, memoryGPU string // sizes; "" = not given
	cpusTask, cpusGPU            string // numbers; "" = not given
}

// define adds the options.
func (f *batchRoom) define(fs *pflag.FlagSet) {
	fs.StringVar(&f.memory, "mem", "", "`SIZE` of memory in all, as 16G; MB without a unit, 0: no limit")
	fs.StringVar(&f.memoryCPU, "mem-per-cpu", "", "`SIZE` of memory for each processor")
	fs.StringVar(&f.memoryGPU, "mem-per-gpu", "", "`SIZE` of memory for each GPU")
	fs.StringVarP(&f.cpusTask, "cpus-per-task", "c", "", "`N` processors for each task")
	fs.StringVar(&f.cpusGPU, "cpus-per-gpu", "", "`N` processors for each GPU")
}

// roomOptions are options of which one is given: a command line with one goes before lines with another.
var roomOptions = [][]string{{"mem", "mem-per-cpu", "mem-per-gpu"}, {"cpus-per-task", "cpus-per-gpu"}}

// roomWanted is what the first of such options, and the others like it, take.
var roomWanted = map[string]string{"mem": "a size, as 16G", "cpus-per-task": "a number"}

// gpuOptions say how many GPUs. A script may have several.
var gpuOptions = []string{"gpus", "gres", "gpus-per-node", "gpus-per-task"}

// override takes what the lines of a script ask for back where its command line asks for it in another way.
func (f *batchRoom) override(line, script *pflag.FlagSet) {
	tasks := slices.ContainsFunc([]string{"ntasks", "ntasks-per-node"}, func(name string) bool {
		return line.Changed(name) || script.Changed(name)
	})
	for _, list := range append([][]string{gpuOptions}, roomOptions...) {
		if !slices.ContainsFunc(list, func(name string) bool {
			return line.Changed(name) && (tasks || name != "gpus-per-task") // of how many tasks is in --gpus else
		}) {
			continue
		}
		for _, name := range list {
			flag := script.Lookup(name)
			_ = flag.Value.Set(flag.DefValue)
			flag.Changed = false
		}
	}
}

// contradicts refuses what contradicts itself, as Slurm does.
func (f *batchRoom) contradicts(fs *pflag.FlagSet) error {
	for _, list := range roomOptions {
		var given []string
		for _, name := range list {
			if fs.Changed(name) {
				given = append(given, "--"+name)
			}
		}
		if len(given) > 1 {
			return fmt.Errorf("%s, want one of them", strings.Join(given, " next to "))
		}
		if len(given) == 1 && fs.Lookup(given[0][2:]).Value.String() == "" {
			return fmt.Errorf("%s \"\", want %s", given[0], roomWanted[list[0]])
		}
	}
	if from := fs.Lookup("input").Value.String(); from != "" && from != "none" && from != os.DevNull {
		return fmt.Errorf("--input %s: a script has no input here; want < %s in it, behind the command that reads it",
			from, from)
	}
	if fs.Changed("array") && fs.Lookup("array").Value.String() == "" {
		return errors.New(`--array "": invalid job array specification, want numbers, as in 0-7 or 1,3,5-9:2`)
	}
	return nil
}

// mostCPUs is how many processors may be asked for, each way.
const mostCPUs = 65536

// cpus are the processors of a job with so many tasks and GPUs; 0 = as many as there are.
func (f *batchRoom) cpus(tasks, gpus int) (total int, err error) {
	for _, one := range []struct {
		flag, number string
		times        int
	}{{"cpus-per-task", f.cpusTask, max(tasks, 1)}, {"cpus-per-gpu", f.cpusGPU, gpus}} {
		if one.number == "" {
			continue
		}
		n, bad := strconv.Atoi(one.number)
		if bad != nil || n < 1 || n > mostCPUs {
			return 0, fmt.Errorf("--%s %s, want a number from 1 to %d", one.flag, one.number, mostCPUs)
		}
		total = n * one.times
	}
	return total, nil
}

// size is the memory of a job with so many processors and GPUs in MiB; 0 = no limit.
func (f *batchRoom) size(cpus, gpus int) (mib float64, err error) {
	for _, one := range []struct {
		flag, size string
		times      int
	}{{"mem", f.memory, 1}, {"mem-per-cpu", f.memoryCPU, max(cpus, 1)}, {"mem-per-gpu", f.memoryGPU, gpus}} {
		if one.size == "" {
			continue
		}
		n, bad := task.ParseSlurmMemory(one.size)
		if bad != nil {
			return 0, fmt.Errorf("--%s %w", one.flag, bad)
		}
		mib = n * float64(one.times)
	}
	return mib, nil
}

// ask notes the processors and the memory of a job with so many tasks and GPUs, by GPU as its keys are, and in the
// variables that Slurm sets.
func (f *batchRoom) ask(job map[string]any, env map[string]string, tasks, gpus int) error {
	cpus, err := f.cpus(tasks, gpus)
	if err != nil {
		return err
	}
	mib, err := f.size(cpus, gpus)
	if err != nil {
		return err
	}
	if cpus > 0 {
		job["cpus"] = float64(cpus) / float64(gpus)
		env["SLURM_CPUS_ON_NODE"], env["SLURM_JOB_CPUS_PER_NODE"] = strconv.Itoa(cpus), strconv.Itoa(cpus)
	}
	if mib > 0 {
		job["memory_gb"] = mib / 1024 / float64(gpus)
	}
	for name, n := range map[string]string{"SLURM_CPUS_PER_TASK": f.cpusTask, "SLURM_CPUS_PER_GPU": f.cpusGPU} {
		if n != "" {
			env[name] = n
		}
	}
	for name, size := range map[string]string{"SLURM_MEM_PER_NODE": f.memory, "SLURM_MEM_PER_CPU": f.memoryCPU,
		"SLURM_MEM_PER_GPU": f.memoryGPU} {
		if n, bad := task.ParseSlurmMemory(size); bad == nil && n > 0 {
			env[name] = strconv.Itoa(max(int(n), 1))
		}
	}
	return nil
}

// noteLimits says that nothing holds a job to the processors and the memory that it asks for, where that is so.
func (f *batchRoom) noteLimits(cmd *cobra.Command) {
	if *f != (batchRoom{}) && !manager.CanLimit() {
		fmt.Fprintln(cmd.ErrOrStderr(), "trainyard: note: processors and memory are counted, and nothing holds the "+
			"job to them: no cgroup with memory and cpu may be made here")
	}
}
