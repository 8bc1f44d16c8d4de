package task

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// NoLauncher is the word of Task.Launcher that leaves the command as it is.
const NoLauncher = "none"

// Launchers are the words that Task.Launcher knows.
var Launchers = []string{"auto", NoLauncher}

// Enforced is the word of LimitWords for a job that does not run where nothing holds it to its cpus and memory.
const Enforced = "enforced"

// LimitWords are the words that Task.Limits knows: whether a job runs where nothing holds it to its cpus and memory.
var LimitWords = []string{"best-effort", Enforced}

// GPUIDs are the words that Task.GPUIDs knows.
var GPUIDs = []string{"uuid", "index"}

// launcher is a program that starts the processes of a training, and what it must be given to keep to its job.
type launcher struct {
	programs []string // base names
	words    []string // that follow the program
	modules  []string // of python -m
	plain    []string // options without a value, as far as they are known
	// change is given the command, where the options start, those that the user gave, and what is to be said
	change  func(argv []string, at int, given options, say meeting) []string
	refused []refusal
	indices bool // it takes GPUs by number
}

// refusal is an option that a job must not give.
type refusal struct {
	option, least, why string // least is its shortest form that argparse takes
}

// meeting is what a launcher is to know of its attempt.
type meeting struct {
	gpus int
	port string
}

var launchers = []launcher{
	{
		programs: []string{"torchrun"}, modules: []string{"torch.distributed.run"},
		plain:  []string{"--standalone", "--no_python", "--run_path", "--help", "-h", "--virtual_local_rank"},
		change: standAlone,
	}, {
		programs: []string{"accelerate"}, words: []string{"launch"}, modules: []string{"accelerate.commands.launch"},
		plain: []string{"--cpu", "--multi_gpu", "--tpu", "--mps", "--ipex", "--use_xpu", "--use_deepspeed",
			"--use_fsdp", "--use_megatron_lm", "--use_parallelism_config", "--quiet", "-q", "--help", "-h",
			"--debug", "--no_python", "--same_network", "--enable_cpu_affinity", "--dynamo_use_fullgraph",
			"--dynamo_use_dynamic", "--dynamo_use_regional_compilation", "--tpu_use_cluster",
			"--no_tpu_cluster", "--tpu_use_sudo", "--downcast_bf16"},
		change: accelerated,
	}, {
		programs: []string{"accelerate-launch"}, change: accelerated,
	}, {
		programs: []string{"deepspeed"}, modules: []string{"deepspeed.launcher.runner"},
		plain: []string{"--no_python", "--no_local_rank", "--no_ssh", "--no_ssh_check", "--force_multi", "--save_pid",
			"--bind_cores_to_rank", "--elastic_training", "--help", "-h"},
		change: deepSpeed, indices: true,
		refused: []refusal{{"--num_gpus", "--num_g", firstGPUs}, {"--include", "--inc", firstGPUs},
			{"-i", "-i", firstGPUs}},
	},
}

const firstGPUs = "with it DeepSpeed takes the first GPUs of the machine, those of other jobs too; leave it out: " +
	"the job's GPUs are all that it sees"

// standAlone drops the option by which torchrun before 2.1 takes port 29400, whoever has it: PET_MASTER_PORT does what
// it is for. With options of another rendezvous it stays, as they would count without it.
func standAlone(argv []string, at int, given options, _ meeting) []string {
	if slices.ContainsFunc(given, func(o option) bool {
		return strings.HasPrefix(o.name, "--rdzv") || o.name == "--nnodes" && strings.Contains(o.value, ":")
	}) {
		return argv
	}
	for i := len(given) - 1; i >= 0; i-- {
		if given[i].name == "--standalone" {
			argv = slices.Delete(slices.Clone(argv), at+given[i].at, at+given[i].at+1)
		}
	}
	return argv
}

// accelerated gives Accelerate the port and the width, which it reads in no variable.
func accelerated(argv []string, at int, given options, say meeting) []string {
	var more []string
	if !given.has("--main_process_port", "--main_process_p") {
		more = append(more, "--main_process_port", say.port)
	}
	if !given.has("--num_processes", "--num_p") && say.gpus > 0 {
		more = append(more, "--num_processes", strconv.Itoa(say.gpus))
	}
	return slices.Insert(slices.Clone(argv), at, more...)
}

// deepSpeed gives DeepSpeed the port, which it reads in no variable.
func deepSpeed(argv []string, at int, given options, say meeting) []string {
	if given.has("--master_port", "--master_p") {
		return argv
	}
	return slices.Insert(slices.Clone(argv), at, "--master_port", say.port)
}

// option is one that is given to a launcher before the script.
type option struct {
	name, value string // with underscores; the value where it is known
	at          int    // index in the arguments of the launcher
}

type options []option

// has reports whether an option is given, or an abbreviation of it that is no shorter than least.
func (o options) has(name, least string) bool {
	return slices.ContainsFunc(o, func(x option) bool {
		return strings.HasPrefix(name, x.name) && len(x.name) >= len(least)
	})
}

// optionsOf returns the options before the script in the arguments of a launcher.
func optionsOf(args, plain []string) (list options) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" || a == "-m" || a == "--module" || !strings.HasPrefix(a, "-") {
			break
		}
		name, value, valued := strings.Cut(a, "=")
		if strings.HasPrefix(name, "--") {
			name = "--" + strings.ReplaceAll(name[2:], "-", "_")
		}
		o := option{name, value, i}
		if !valued && !slices.Contains(plain, name) && i+1 < len(args) && isValue(args[i+1]) {
			i++
			o.value = args[i]
		}
		list = append(list, o)
	}
	return list
}

// isValue reports whether an argument after an option may be its value.
func isValue(a string) bool { return !strings.HasPrefix(a, "-") && !strings.HasSuffix(a, ".py") }

// isPython reports whether a program is an interpreter, of whatever version.
func isPython(program string) bool {
	version, found := strings.CutPrefix(program, "python")
	return found && strings.Trim(version, "0123456789.") == ""
}

// launcherOf returns the launcher of a command, which may stand behind srun, and where its options start; nil if there
// is none.
func launcherOf(argv []string) (l *launcher, at int) {
	if len(argv) == 0 {
		return nil, 0
	}
	before := stepPrefix(argv)
	argv = argv[before:]
	program := filepath.Base(argv[0])
	module, after := "", 0
	if isPython(program) {
		module, after = moduleOf(argv)
	}
	for i := range launchers {
		l = &launchers[i]
		from := 1 + len(l.words)
		switch {
		case module != "" && slices.Contains(l.modules, module):
			return l, before + after
		case slices.Contains(l.programs, program) && len(argv) >= from && slices.Equal(argv[1:from], l.words):
			return l, before + from
		}
	}
	return nil, 0
}

// moduleOf returns the module that python runs, and where its arguments start; "" if it runs none.
func moduleOf(argv []string) (module string, after int) {
	for i := 1; i+1 < len(argv) && strings.HasPrefix(argv[i], "-"); i++ {
		switch {
		case argv[i] == "-m":
			return argv[i+1], i + 2
		case argv[i] == "-X" || argv[i] == "-W":
			i++
		}
	}
	return "", 0
}

// CheckLauncher returns why the command of t cannot be run so that it keeps to its GPUs, or nil.
func (t *Task) CheckLauncher() error {
	l, at := launcherOf(t.Command)
	if l == nil || t.Launcher == NoLauncher {
		return nil
	}
	given := optionsOf(t.Command[at:], l.plain)
	for _, r := range l.refused {
		if given.has(r.option, r.least) {
			return fmt.Errorf("command with %s of %s, want it without: %s (launcher: none leaves the command alone)",
				r.option, filepath.Base(t.Command[stepPrefix(t.Command)]), r.why)
		}
	}
	return nil
}

// Launched returns a command of t as it is run: a launcher that reads neither width nor port in variables is given
// both, where its user gave none. An argument list that was changed is a new one.
func (t *Task) Launched(command []string, gpus int, port string) []string {
	l, at := launcherOf(command)
	if l == nil || t.Launcher == NoLauncher {
		return command
	}
	return l.change(command, at, optionsOf(command[at:], l.plain), meeting{gpus, port})
}

// ByIndex reports whether the job is given its GPUs by their numbers in the order of PCI, not by their UUIDs.
func (t *Task) ByIndex() bool {
	l, _ := launcherOf(t.Command)
	return t.GPUIDs == "index" || t.GPUIDs == "" && t.Launcher != NoLauncher && l != nil && l.indices
}
