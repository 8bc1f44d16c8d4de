package local

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/driver/local/task"
	"github.com/trainyard/trainyard/model/restart"
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

// environment is all of the environment of an attempt: what is passed on, what the job asks for, and what it is told, the
// last over the first.
func environment(o *shim.Order, a *sched.Action, t task.Task, held []device.Device, devices device.Backend) ([]string, error) {
	env := Passed()
	for _, name := range slices.Sorted(maps.Keys(t.Env)) {
		env = append(env, name+"="+t.Env[name])
	}
	secrets, err := fromFiles(t.EnvFiles)
	if err != nil {
		return nil, err
	}
	env = append(env, secrets...)
	port, err := freePort()
	if err != nil {
		return nil, fmt.Errorf("no free port: %w", err)
	}
	resume := 0
	if a.Attempt > 1 {
		resume = 1
	}
	env = append(env, devices.Env(held)...)
	for _, kv := range []struct{ name, value string }{
		{"TRAINYARD_JOB_ID", strconv.Itoa(int(a.Job))},
		{"TRAINYARD_ATTEMPT", strconv.Itoa(int(a.Attempt))},
		{"TRAINYARD_NUM_GPUS", strconv.Itoa(len(held))},
		{"TRAINYARD_DEVICES", strings.Join(o.Devices, ",")},
		{"TRAINYARD_CHECKPOINT_DIR", o.Checkpoint()},
		{"TRAINYARD_RUN_DIR", string(o.State.RunDir(o.Job, o.Attempt))},
		{"TRAINYARD_RESUME", strconv.Itoa(resume)},
		{"TRAINYARD_GRACE_SECONDS", seconds(t.Grace)},
		{"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", seconds(max(t.Grace-10*time.Second, time.Second))},
		{"MASTER_ADDR", "127.0.0.1"},
		{"MASTER_PORT", port},
	} {
		env = append(env, kv.name+"="+kv.value)
	}
	if path := socketPath(o.State.RunDir(o.Job, o.Attempt)); path != "" {
		env = append(env, "TRAINYARD_SOCKET="+path)
	}
	return append(env, batch(a, len(held))...), nil
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

// readValue reads a file, as far as a variable may be long. It is the engine that waits: for a pipe that nobody writes to it would for
// ever. Links are followed, as secrets are often mounted so.
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

// batch tells the batch size that was decided, if it was.
func batch(a *sched.Action, width int) []string {
	if a.Batch == 0 {
		return nil
	}
	each := restart.PerGPU(int(a.Batch), width, int(a.Accum))
	return []string{fmt.Sprint("TRAINYARD_BATCH_GLOBAL=", a.Batch), fmt.Sprint("TRAINYARD_BATCH_PER_GPU=", each),
		fmt.Sprint("TRAINYARD_BATCH_ACCUM=", max(a.Accum, 1)), fmt.Sprint("TRAINYARD_LR_SCALE=", cmp.Or(a.LRScale, 1))}
}

// scale returns the factor on the learning rate by the user's rule, from the smallest batch size on, or where there is no rule, or one
// that needs to know gradients, what the system decided.
func scale(a *sched.Action, rule string, least int) float32 {
	s, err := restart.ParseScaling(rule)
	if err != nil || least == 0 || s == restart.AdaScale && a.LRScale != 0 {
		return a.LRScale
	}
	return float32(s.Factor(int(a.Batch), least, 0, 0))
}

// variable is one of ours in an argument, with a second $ where it is to stay.
var variable = regexp.MustCompile(`\$?\$(TRAINYARD_[A-Z0-9_]+|\{TRAINYARD_[A-Z0-9_]+\})`)

// replaced returns a command in which $TRAINYARD_NAME and ${TRAINYARD_NAME} are replaced by the values that env has; of
// $$TRAINYARD_NAME one $ goes and the rest stays. All else stays as it is, names that env does not have included: no shell comes
// between, but one may be what is run.
func replaced(command, env []string) []string {
	values := make(map[string]string)
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		values[name] = value
	}
	out := make([]string, len(command))
	for i, arg := range command {
		out[i] = variable.ReplaceAllStringFunc(arg, func(s string) string {
			if kept, ok := strings.CutPrefix(s, "$$"); ok {
				return "$" + kept
			}
			if value, ok := values[strings.Trim(s, "${}")]; ok {
				return value
			}
			return s
		})
	}
	return out
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d.Seconds())) }

// freePort returns a port that is free at the moment.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}
