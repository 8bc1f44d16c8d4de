package local

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/driver/local/ports"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/model/restart"
	"github.com/trainyard/trainyard/model/scaling"
	"github.com/trainyard/trainyard/sched"
)

// passed are the variables of our own environment that jobs are given; nothing else of it is.
var passed = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LD_LIBRARY_PATH",
	"VIRTUAL_ENV", "CONDA_PREFIX"}

// Passed returns what of our own environment jobs are given, as NAME=VALUE.
func Passed() (env []string) {
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if slices.Contains(passed, name) || strings.HasPrefix(name, "LC_") {
			env = append(env, kv)
		}
	}
	return env
}

// surrounding is what an attempt has around it.
type surrounding struct {
	devices device.Backend
	lease   *ports.Lease
	cpus    float32 // per GPU that its job asks for; 0 = unknown
	memGB   float32 // of each GPU, that its job is to keep to; 0 = no bound
	array   sched.Array
}

// environment is all of the environment of an attempt: what is passed on, what torchrun takes for flags that it is not
// given, what the job asks for, and what the driver sets, the last over the first.
func environment(o *shim.Order, a *sched.Action, t task.Task, held []device.Device, of *surrounding) ([]string,
	error) {
	port := strconv.Itoa(of.lease.First)
	env, err := base(o, t.Inherit)
	if err != nil {
		return nil, err
	}
	env = append(env, "PET_NPROC_PER_NODE="+strconv.Itoa(len(held)), "PET_MASTER_ADDR="+meetingAddress,
		"PET_MASTER_PORT="+port)
	if of.cpus >= 1 {
		env = append(env, "OMP_NUM_THREADS="+strconv.Itoa(int(of.cpus)))
	}
	o.InheritAt = len(env)
	for _, name := range slices.Sorted(maps.Keys(t.Env)) {
		env = append(env, name+"="+t.Env[name])
	}
	secrets, err := fromFiles(t.EnvFiles)
	if err != nil {
		return nil, err
	}
	env = append(env, secrets...)
	reported := task.Variables{Job: a.Job, Attempt: a.Attempt, GPUs: len(held), Devices: o.Devices,
		Checkpoint: o.Checkpoint(),
		Grace:      t.Grace, Config: a.Config, GPUMemGB: of.memGB}
	visible, err := visible(of.devices, held, t.ByIndex())
	if err != nil {
		return nil, err
	}
	env = append(append(env, visible...), reported.Environment()...)
	env = append(env, "TRAINYARD_RUN_DIR="+string(o.State.RunDir(o.Job, o.Attempt)),
		"MASTER_ADDR="+meetingAddress, "MASTER_PORT="+port, "TRAINYARD_PORTS="+of.lease.String())
	if of.array.Size > 0 {
		env = append(env, "TRAINYARD_ARRAY_JOB_ID="+strconv.Itoa(int(of.array.First(a.Job))),
			"TRAINYARD_ARRAY_TASK_ID="+strconv.Itoa(int(of.array.Index)),
			"TRAINYARD_ARRAY_TASK_COUNT="+strconv.Itoa(int(of.array.Size)))
	}
	host, _ := os.Hostname()
	env = append(env, t.Slurm(&reported, &of.array, host)...)
	if path := socketPath(o.State.RunDir(o.Job, o.Attempt)); path != "" {
		env = append(env, "TRAINYARD_SOCKET="+path)
	}
	return env, nil
}

// base is what an attempt has of the environment of its manager: nothing where its job inherits one with a PATH, which
// is whole. The order says which one it inherits.
func base(o *shim.Order, inherit string) ([]string, error) {
	if o.Inherit = inherit; inherit == "" {
		return Passed(), nil
	}
	kept, err := o.State.KeptEnv(inherit)
	if _, whole := kept["PATH"]; whole || err != nil {
		return nil, err
	}
	return Passed(), nil
}

// visible returns the variables that show a job its devices alone. By index they name GPUs by number in the order of
// PCI, which a part of a GPU has not.
func visible(devices device.Backend, held []device.Device, byIndex bool) ([]string, error) {
	env := devices.Env(held)
	if !byIndex {
		return env, nil
	}
	const name = "CUDA_VISIBLE_DEVICES="
	for i, kv := range env {
		if kv == name || !strings.HasPrefix(kv, name) {
			continue // slots
		}
		numbers := make([]string, len(held))
		for k := range held {
			if held[k].Slice != "" {
				return nil, fmt.Errorf("gpu_ids: %s is a part of a GPU (%s), which has no number, want a whole GPU, "+
					"or gpu_ids: uuid", held[k].Name, held[k].Slice)
			}
			numbers[k] = strconv.Itoa(held[k].Index)
		}
		env[i] = name + strings.Join(numbers, ",")
	}
	return env, nil
}

// fromFiles reads the variables whose values stand in files. The newline that ends a file is no part of the value.
func fromFiles(files map[string]string) (env []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		value, err := readValue(files[name])
		if err == nil {
			err = task.CheckEnvValue(name, value)
		}
		if err != nil {
			return nil, fmt.Errorf("env %s from_file: %w, want a file of text that the manager may read", name, err)
		}
		env = append(env, name+"="+value)
	}
	return env, nil
}

// readValue reads a file, as far as a variable may be long. It is the engine that waits: for a pipe that no one writes
// to it would for ever. Links are followed, as secrets are often mounted so.
func readValue(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, bad := f.Stat(); bad != nil || !info.Mode().IsRegular() {
		return "", errors.Join(fmt.Errorf("%s is no file", path), bad)
	}
	text, err := io.ReadAll(io.LimitReader(f, task.MaxText+1))
	if err != nil {
		return "", err
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

// scale returns the factor on the learning rate by the user's rule, from the smallest batch size on, or where there is
// no rule, or one that needs to know gradients, what the system decided.
func scale(a *sched.Action, rule string, least int) float32 {
	s, err := scaling.Parse(rule)
	if err != nil || least == 0 || s == scaling.AdaScale && a.LRScale != 0 {
		return a.LRScale
	}
	return float32(restart.Factor(s, int(a.Batch), least, 0, 0))
}

// variable is one that is replaced in an argument, with a second $ where it is to stay.
var variable = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\$?\$(` + replaceable + `|\{(?:` + replaceable + `)\})`)
})

// replaceable are the names of variables that are replaced in arguments.
const replaceable = `TRAINYARD_[A-Z0-9_]+|PET_[A-Z0-9_]+|MASTER_PORT|MASTER_ADDR|CUDA_VISIBLE_DEVICES`

// names are the characters of which a name consists: a longer one is another variable.
const names = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

// replaced returns a command in which $NAME and ${NAME}, of the names above, are replaced by the values that env has;
// of $$NAME one $ goes and the rest stays. All else stays as it is, names that env does not have included: no shell
// comes between, but one may be what is run.
func replaced(command, env []string) []string {
	values := make(map[string]string)
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		values[name] = value
	}
	out := make([]string, len(command))
	for i, arg := range command {
		var b strings.Builder
		end := 0
		for _, at := range variable().FindAllStringIndex(arg, -1) {
			b.WriteString(arg[end:at[0]])
			b.WriteString(valueOf(arg[at[0]:at[1]], arg[at[1]:], values))
			end = at[1]
		}
		out[i] = b.String() + arg[end:]
	}
	return out
}

// valueOf returns what stands for a variable in an argument, which goes on with rest.
func valueOf(s, rest string, values map[string]string) string {
	if !strings.HasSuffix(s, "}") && rest != "" && strings.ContainsRune(names, rune(rest[0])) {
		return s // the name goes on: it is another one
	}
	if kept, ok := strings.CutPrefix(s, "$$"); ok {
		return "$" + kept
	}
	if value, ok := values[strings.Trim(s, "${}")]; ok {
		return value
	}
	return s
}

// meetingAddress is where the processes of an attempt meet.
const meetingAddress = "127.0.0.1"

// userOutput says to which files of its user an attempt writes; nil = to none.
func userOutput(t *task.Task, a *sched.Action, spec *sched.JobSpec) *shim.UserOutput {
	if t.Output.File == "" {
		return nil
	}
	o := &shim.UserOutput{File: t.Expand(t.Output.File, a.Job, spec), Truncate: t.Output.Truncates(a.Attempt)}
	if t.Output.Error != "" {
		o.Error = t.Expand(t.Output.Error, a.Job, spec)
	}
	return o
}

// resources are what an attempt with so many devices may take of the machine; nil = no limits.
func resources(t *task.Task, spec *sched.JobSpec, devices int) *shim.Resources {
	if spec.CPUs == 0 && spec.MemoryGB == 0 {
		return nil
	}
	return &shim.Resources{CPUs: float64(spec.CPUs) * float64(devices),
		Memory: int64(float64(spec.MemoryGB) * float64(devices) * (1 << 30)), Must: t.Limits == task.Enforced}
}
