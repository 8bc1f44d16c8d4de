package task

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/trainyard/trainyard/attempt/progress"
	"github.com/trainyard/trainyard/model/scaling"
)

// Limits of a Task.
const (
	MaxSize = 1 << 20 // bytes of the command and the environment together, see Task.Size
	MaxArgs = 10_000  // length of the command
	MaxEnv  = 1_000   // variables
	// bytes of an argument, or of a variable as NAME=value: Linux runs no program with more (MAX_ARG_STRLEN)
	MaxText  = 1<<17 - 1
	MaxName  = 200       // bytes of the name of a variable
	MaxDir   = 4095      // bytes of the folder: PATH_MAX of Linux
	MaxGrace = time.Hour // of Grace

	MaxLimit = 8760 * time.Hour // of TimeLimit: a year

	MaxBackoff = 24 * time.Hour // of Backoff

	LeastOutput = 64 << 20 // bytes, of MaxOutput
	MostOutput  = 1 << 50  // bytes, of MaxOutput

	maxStored = 8 << 20 // bytes of an encoded Task: JSON writes a byte of text as six at most
)

// Task is what a job runs. Those who were given one must not change its command and environment, which alike jobs
// share.
type Task struct {
	// argv: the program, by path or to be looked for in PATH, and its arguments
	Command []string `json:"command"`
	Dir     string   `json:"dir"` // absolute path of the folder it runs in
	// added to the environment that the driver makes; nil and empty are alike
	Env   map[string]string `json:"env,omitempty"`
	Grace time.Duration     `json:"grace_ns"` // between SIGTERM and SIGKILL; > 0, at most MaxGrace

	Checkpoint Checkpoint `json:"checkpoint,omitzero"`
	LRScaling  string     `json:"lr_scaling,omitempty"` // word of a scaling.Scaling; "" = as the system decides
	Progress   string     `json:"progress,omitempty"`   // word of a progress.From: which logs say; "" = auto
	// see progress.Pattern: by which its logs are read instead; "" = none
	Pattern string `json:"pattern,omitempty"`
	// EnvFiles are variables whose values stand in files, by absolute path, which are read at each start: secrets are
	// kept in no log.
	EnvFiles map[string]string `json:"env_files,omitempty"`
	// RetryOn are the ends after which the job is tried again, as exit:75 or signal:KILL; none = all of its own
	// failures.
	RetryOn []string `json:"retry_on,omitempty"`
	// Backoff is how long the job rests after a failure of its own before it is tried again; 0..MaxBackoff.
	Backoff time.Duration `json:"backoff_ns,omitempty"`
	// MaxOutput is how many bytes of the disk what an attempt writes may take; LeastOutput..MostOutput, 0 = no limit.
	MaxOutput int64 `json:"max_output,omitempty"`
	// Output says to which files of its user the job writes; not with MaxOutput.
	Output OutputFile `json:"output,omitzero"`
	// Limits is one of LimitWords; "" = best-effort
	Limits string `json:"limits,omitempty"`
	// Launcher is one of Launchers: whether the command is run with what its launcher needs; "" = auto
	Launcher string `json:"launcher,omitempty"`
	// GPUIDs is one of GPUIDs: how the job is given its GPUs; "" = as its launcher takes them, else by UUID
	GPUIDs string `json:"gpu_ids,omitempty"`
	// Notify are the ways in which its user hears of it; at most MaxNotify
	Notify []Notify `json:"notify,omitempty"`
	// GPUTypes are parts of the names of the GPUs that will do; none = any will
	GPUTypes []string `json:"gpu_types,omitempty"`
	// TimeLimit is how long it may run, all attempts together; > 0, at most MaxLimit, 0 = no limit.
	TimeLimit time.Duration `json:"time_limit_ns,omitempty"`
	// TimeWarn is how long before the end of that it is warned by the signal to save; 0 = by Grace, at most TimeLimit.
	TimeWarn time.Duration `json:"time_warn_ns,omitempty"`
	// Terminal, if more than 0, has it run in a terminal of its own, and end once that was idle for so long; at most
	// MaxLimit.
	Terminal time.Duration `json:"terminal_ns,omitempty"`
	// TimeEach has TimeLimit hold of each attempt.
	TimeEach bool `json:"time_each,omitempty"`
	// Inherit is the SHA-256, in hexadecimal, of variables that it inherits and that are kept elsewhere; "" = none
	Inherit string `json:"inherit,omitempty"`
	// Script is one that it runs as it was when it was submitted; zero = none
	Script Script `json:"script,omitzero"`
	// Tree is the working tree of git that it runs in as it was when it was submitted; zero = its folder as it is
	Tree Tree `json:"tree,omitzero"`
}

// Checkpoint says how a job saves what it has done. The zero value is the default.
type Checkpoint struct {
	Dir    string `json:"dir,omitempty"`    // absolute path of the folder it saves in; "" = one of its own
	Signal string `json:"signal,omitempty"` // asks it to save and end: one of Signals; "" = TERM
	// file that it writes when all is saved, in the run directory if not absolute; "" = none
	Ready string `json:"ready,omitempty"`
	To    string `json:"to,omitempty"` // which of its processes get the signal: one of Recipients; "" = top
}

// Recipients are the words that Checkpoint.To knows: the topmost processes that handle the signal, the process that was
// started, and all processes.
var Recipients = []string{"top", "leader", "all"}

// Declared reports whether c says how the job saves: where, at which signal, or how it shows that all is saved.
func (c *Checkpoint) Declared() bool { return c.Dir != "" || c.Signal != "" || c.Ready != "" }

// Signals are the words that Checkpoint.Signal knows.
var Signals = []string{"TERM", "INT", "HUP", "USR1", "USR2"}

func (c *Checkpoint) validate() error {
	if c.Dir != "" {
		if err := CheckDir(c.Dir); err != nil {
			return fmt.Errorf("checkpoint %w", err)
		}
	}
	if c.Signal != "" && !slices.Contains(Signals, c.Signal) {
		return fmt.Errorf("checkpoint signal %q, want one of %s", short(c.Signal), strings.Join(Signals, ", "))
	}
	if c.To != "" && !slices.Contains(Recipients, c.To) {
		return fmt.Errorf("checkpoint to %q, want one of %s", short(c.To), strings.Join(Recipients, ", "))
	}
	if c.Ready == "" {
		return nil
	}
	return CheckReady(c.Ready)
}

// CheckReady returns what keeps path from being Checkpoint.Ready, or nil.
func CheckReady(path string) error {
	switch {
	case strings.IndexByte(path, 0) >= 0 || !utf8.ValidString(path) || len(path) > MaxDir:
		return fmt.Errorf("checkpoint ready_file %q, want a path of text, at most %d bytes", short(path), MaxDir)
	case path == "." || filepath.Clean(path) != path || !filepath.IsAbs(path) && !filepath.IsLocal(path):
		return fmt.Errorf("checkpoint ready_file %q, want a file in the run directory, or an absolute path, cleaned",
			short(path))
	}
	return nil
}

// Size returns the bytes that the command and the environment take as the kernel counts them: arguments, and variables
// as NAME=value, each with a NUL at its end.
func (t Task) Size() int {
	n := 0
	for _, a := range t.Command {
		n += len(a) + 1
	}
	for k, v := range t.Env {
		n += len(k) + len(v) + 2
	}
	return n
}

// Validate returns the first thing wrong with t: field, value, what is wanted.
func (t Task) Validate() error {
	switch {
	case len(t.Command) == 0:
		return fmt.Errorf("command of no arguments, want a program")
	case len(t.Command) > MaxArgs:
		return fmt.Errorf("command of %d arguments, want at most %d", len(t.Command), MaxArgs)
	case t.Command[0] == "":
		return fmt.Errorf(`command starts with "", want a program`)
	case len(t.Env) > MaxEnv:
		return fmt.Errorf("env of %d variables, want at most %d", len(t.Env), MaxEnv)
	case t.Grace <= 0 || t.Grace > MaxGrace:
		return fmt.Errorf("grace %v, want more than 0s and at most 1h", t.Grace)
	}
	if err := CheckDir(t.Dir); err != nil {
		return err
	}
	if err := t.Checkpoint.validate(); err != nil {
		return err
	}
	if err := t.checkWords(); err != nil {
		return err
	}
	if err := t.checkFiles(); err != nil {
		return err
	}
	if err := t.checkNumbers(); err != nil {
		return err
	}
	err := cmp.Or(t.checkInherit(), t.checkScript(), t.checkTree(), t.checkOutput(), t.checkGPUs(), t.checkNotify())
	if err != nil {
		return err
	}
	return t.checkTexts()
}

// checkNumbers returns what is wrong with the fields that are numbers, or nil.
func (t *Task) checkNumbers() error {
	if t.MaxOutput != 0 && (t.MaxOutput < LeastOutput || t.MaxOutput > MostOutput) {
		return fmt.Errorf("output max of %d bytes, want from 64MiB to 1PiB", t.MaxOutput)
	}
	if t.Backoff < 0 || t.Backoff > MaxBackoff {
		return fmt.Errorf("backoff %v, want from 0s to 24h", t.Backoff)
	}
	if t.Terminal < 0 || t.Terminal > MaxLimit {
		return fmt.Errorf("terminal %v, want more than 0s and at most 8760h", t.Terminal)
	}
	if t.TimeLimit < 0 || t.TimeLimit > MaxLimit {
		return fmt.Errorf("time_limit %v, want more than 0s and at most 8760h", t.TimeLimit)
	}
	if t.TimeWarn < 0 || t.TimeWarn > t.TimeLimit || t.TimeEach && t.TimeLimit == 0 {
		return fmt.Errorf("time_limit warn %v, want at most the limit of %v", t.TimeWarn, t.TimeLimit)
	}
	return nil
}

// checkWords returns what is wrong with the fields that take one of several words, or nil.
func (t *Task) checkWords() error {
	if _, err := scaling.Parse(t.LRScaling); t.LRScaling != "" && err != nil {
		return err
	}
	if _, err := progress.ParseFrom(t.Progress); t.Progress != "" && err != nil {
		return err
	}
	if t.Pattern != "" {
		if _, err := progress.ParsePattern(t.Pattern); err != nil {
			return err
		}
	}
	if t.Launcher != "" && !slices.Contains(Launchers, t.Launcher) {
		return fmt.Errorf("launcher %q, want one of %s", short(t.Launcher), strings.Join(Launchers, ", "))
	}
	if t.Limits != "" && !slices.Contains(LimitWords, t.Limits) {
		return fmt.Errorf("limits %q, want one of %s", short(t.Limits), strings.Join(LimitWords, ", "))
	}
	if t.GPUIDs != "" && !slices.Contains(GPUIDs, t.GPUIDs) {
		return fmt.Errorf("gpu_ids %q, want one of %s", short(t.GPUIDs), strings.Join(GPUIDs, ", "))
	}
	for _, end := range t.RetryOn {
		if _, err := ParseEnd(end); err != nil {
			return err
		}
	}
	return nil
}

// checkTexts returns what the kernel would not take of the command and the environment, or nil.
func (t *Task) checkTexts() error {
	for i, a := range t.Command {
		if err := CheckArg(a); err != nil {
			return fmt.Errorf("command[%d] %w", i, err)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(t.Env)) {
		if err := CheckEnvName(k); err != nil {
			return err
		}
		if err := CheckEnvValue(k, t.Env[k]); err != nil {
			return fmt.Errorf("env %s %w", k, err)
		}
	}
	if n := t.Size(); n > MaxSize {
		return fmt.Errorf("command and env of %d bytes, want at most %d", n, MaxSize)
	}
	return nil
}

// checkFiles returns what is wrong with EnvFiles, or nil.
func (t *Task) checkFiles() error {
	if len(t.EnvFiles) > MaxEnv {
		return fmt.Errorf("env of %d variables from files, want at most %d", len(t.EnvFiles), MaxEnv)
	}
	for _, k := range slices.Sorted(maps.Keys(t.EnvFiles)) {
		if err := CheckEnvName(k); err != nil {
			return err
		}
		if path := t.EnvFiles[k]; CheckDir(path) != nil {
			return fmt.Errorf("env %s from_file %q, want an absolute path, cleaned", k, short(path))
		}
	}
	return nil
}

// CheckArg returns what keeps a from being an argument, or nil.
func CheckArg(a string) error { return checkText(a, len(a)) }

// CheckEnvValue returns what keeps value from being that of variable name, or nil.
func CheckEnvValue(name, value string) error { return checkText(value, len(name)+1+len(value)) }

// checkText returns what is wrong with s, which takes size bytes.
func checkText(s string, size int) error {
	switch {
	case strings.IndexByte(s, 0) >= 0:
		return fmt.Errorf("has a NUL byte, want none")
	case !utf8.ValidString(s):
		return fmt.Errorf("is not text in UTF-8, want text")
	case size > MaxText:
		return fmt.Errorf("takes %d bytes, want at most %d", size, MaxText)
	}
	return nil
}

// CheckDir returns what keeps dir from being the folder of a Task, or nil.
func CheckDir(dir string) error {
	switch {
	case strings.IndexByte(dir, 0) >= 0:
		return fmt.Errorf("dir has a NUL byte, want none")
	case !utf8.ValidString(dir):
		return fmt.Errorf("dir %q is not text in UTF-8, want text", short(dir))
	case len(dir) > MaxDir:
		return fmt.Errorf("dir of %d bytes, want at most %d", len(dir), MaxDir)
	case !filepath.IsAbs(dir) || filepath.Clean(dir) != dir:
		return fmt.Errorf("dir %q, want an absolute path, cleaned", short(dir))
	}
	return nil
}

// CheckEnvName returns what keeps name from being a variable of a Task, or nil.
func CheckEnvName(name string) error {
	switch {
	case name == "" || strings.Trim(name, envChars) != "" || '0' <= name[0] && name[0] <= '9':
		return fmt.Errorf("env %s, want a name of letters, digits and _", strconv.Quote(short(name)))
	case len(name) > MaxName:
		return fmt.Errorf("env name of %d bytes, want at most %d", len(name), MaxName)
	case Reserved(name):
		return fmt.Errorf("env %s is reserved, want another name (Trainyard sets it, or keeps it from jobs)", name)
	}
	return nil
}

const envChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

// reserved are the variables that a job's environment may not set, besides those that start with TRAINYARD_.
var reserved = map[string]bool{
	// Which GPUs a job sees.
	"CUDA_VISIBLE_DEVICES":   true,
	"CUDA_DEVICE_ORDER":      true,
	"NVIDIA_VISIBLE_DEVICES": true,
	"HIP_VISIBLE_DEVICES":    true,
	"ROCR_VISIBLE_DEVICES":   true,
	"GPU_DEVICE_ORDINAL":     true,
	// Where its processes meet, and how long they may take to stop.
	"MASTER_ADDR":                    true,
	"MASTER_PORT":                    true,
	"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": true,
	// What the dynamic linker loads into the program that starts it.
	"LD_PRELOAD": true,
	"LD_AUDIT":   true,
}

// Reserved reports whether the scheduler keeps variable name to itself.
func Reserved(name string) bool { return reserved[name] || strings.HasPrefix(name, "TRAINYARD_") }

// Encode returns t as one line of JSON, always the same for equal tasks. It panics if t is not valid.
func (t Task) Encode() string {
	if err := t.Validate(); err != nil {
		panic("task: encode: " + err.Error())
	}
	return t.encode()
}

func (t Task) encode() string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(t); err != nil {
		panic("task: encode: " + err.Error()) // strings and numbers only
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// DecodeTask returns the valid Task of which s is the encoding. It takes what Encode writes and nothing else: another
// order of keys, a blank or a key given twice is an error.
func DecodeTask(s string) (Task, error) {
	if len(s) > maxStored {
		return Task{}, fmt.Errorf("task: %d bytes, want at most %d", len(s), maxStored)
	}
	var t Task
	d := json.NewDecoder(strings.NewReader(s))
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		return Task{}, fmt.Errorf("task: %w, want what was encoded", err)
	}
	if err := t.Validate(); err != nil {
		return Task{}, fmt.Errorf("task: %w", err)
	}
	if t.encode() != s {
		return Task{}, fmt.Errorf("task: %q, want the very text that was encoded", short(s))
	}
	return t, nil
}

// short keeps errors on one line of a terminal.
func short(s string) string {
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:60], "") + "..."
	}
	return s
}
