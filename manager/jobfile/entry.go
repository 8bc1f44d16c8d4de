package jobfile

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/trainyard/trainyard/attempt/progress"
	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/internal/strictyaml"
	"github.com/trainyard/trainyard/internal/suggest"
	"github.com/trainyard/trainyard/sched"
)

// Defaults and bounds of a job.
const (
	defaultGrace = 30 * time.Second
	maxRetries   = 1_000_000
	maxBatch     = 1_000_000_000
	maxEpochs    = 1_000_000_000
)

// entry is an item of the list: one job, or several alike.
type entry struct {
	at      ast.Node // the item
	name    string   // "" = numbered through the file
	nameAt  ast.Node // the item where it has no name
	count   int      // 0 = not given
	array   Array    // no tasks = not given
	after   []after
	afterAt ast.Node
	spec    sched.JobSpec // without Name and After
	task    task.Task
	inherit bool
	copied  int // which of snapshotWords it is run by
}

// copies returns how many jobs e stands for.
func (e *entry) copies() int { return max(e.count, len(e.array.Indices), 1) }

// copyName returns the name of the n-th job of e, where e has a name.
func (e *entry) copyName(n int) string {
	switch {
	case e.name == "":
		return ""
	case e.count > 0:
		return e.name + "-" + strconv.Itoa(n+1)
	case len(e.array.Indices) > 0:
		return e.name + "_" + strconv.Itoa(int(e.array.Indices[n]))
	}
	return e.name
}

// several reports whether the name of e stands for jobs that have names of their own.
func (e *entry) several() bool { return e.count > 0 || len(e.array.Indices) > 0 }

// submit returns when the jobs of e are submitted.
func (e *entry) submit() time.Duration { return time.Duration(e.spec.Submit) }

// newEntry returns an entry with the documented defaults.
func newEntry(folder string) entry {
	return entry{spec: sched.JobSpec{GPUs: sched.Rigid(1)}, task: task.Task{Dir: folder, Grace: defaultGrace}}
}

// entry reads an item of the list, on top of the defaults.
func (r *reader) entry(n ast.Node, base entry) entry {
	e := base
	e.at, e.nameAt = n, n
	e.task.Env, e.task.EnvFiles = maps.Clone(base.task.Env), maps.Clone(base.task.EnvFiles)
	r.either(n, "retries", "retry")
	r.either(n, "count", "array")
	keys := append([]strictyaml.Field{
		strictyaml.Key("name", func(_ string, n ast.Node) { e.nameAt = n; r.name(n, &e.name) }),
		strictyaml.Key("count", strictyaml.Whole(r.Reader, &e.count, 1, MaxJobs)),
		strictyaml.Key("array", func(_ string, n ast.Node) { r.array(n, &e.array) }),
		strictyaml.Key("after", func(key string, n ast.Node) { e.afterAt = n; r.after(key, n, &e.after) }),
	}, r.shared(&e)...)
	r.Mapping(n, "a job", slices.DeleteFunc(keys, func(f strictyaml.Field) bool {
		return slices.Contains(r.fixed, f.Key)
	}))
	if r.Err() != nil {
		return e
	}
	if len(e.task.Env) == 0 {
		e.task.Env = nil
	}
	e.spec.CPUs, e.spec.MemoryGB = stepsOf(e.spec.CPUs, 256), stepsOf(e.spec.MemoryGB, 1024)
	r.script(n, &e)
	if e.spec.WallTime == 0 {
		e.spec.WallTime = e.task.TimeLimit
	}
	gpus, batch := e.spec.GPUs, e.spec.Batch
	switch taskErr, specErr := e.task.Validate(), e.spec.Validate(); {
	case len(e.task.Command) == 0:
		r.Fail(n, "a job without command, want a list of arguments, as in [python, train.py]")
	case e.copies() > 1 && e.task.Checkpoint.Dir != "":
		r.Fail(n, "checkpoint dir of %d jobs alike, want none: each has a folder of its own", e.copies())
	case len(e.copyName(e.copies()-1)) > MaxName:
		r.Fail(e.nameAt, "name %s with %s, want at most %d bytes", strictyaml.Quote(e.name),
			strings.TrimPrefix(e.copyName(e.copies()-1), e.name), MaxName)
	case batch.PerGPU > 0 && int64(batch.PerGPU)*int64(gpus.Max) < int64(batch.Min):
		r.Fail(n, "batch of at least %d on at most %d x %d, want per_gpu_max times GPUs to reach global_min", batch.Min,
			gpus.Max, batch.PerGPU)
	case taskErr != nil:
		r.Fail(n, "%v", taskErr)
	case e.task.CheckLauncher() != nil:
		r.Fail(n, "%v", e.task.CheckLauncher())
	case specErr != nil:
		r.Fail(n, "%v", specErr)
	}
	return e
}

// snapshotWords are those of the key snapshot: as it is at each start, or a copy of the script or of the working tree.
var snapshotWords = []string{"none", "script", "git"}

// script finds the script or the folder of which a job runs a copy.
func (r *reader) script(n ast.Node, e *entry) {
	switch {
	case e.copied == 2:
		e.task.Tree.Root = e.task.Dir
		return
	case e.copied != 1 || len(e.task.Command) == 0:
		return
	}
	var err error
	if e.task.Script.At, err = task.ScriptOf(e.task.Command); err != nil {
		r.Fail(n, "%v", err)
	}
}

// stepsOf rounds x down to a part of one, but not to none: what several jobs hold is then exact as a sum.
func stepsOf(x float32, part float64) float32 {
	return float32(max(math.Floor(float64(x)*part), min(math.Ceil(float64(x)), 1)) / part)
}

// either refuses a mapping that has both of two keys that say the same.
func (r *reader) either(n ast.Node, a, b string) {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		return
	}
	var first string
	for _, v := range m.Values {
		switch key := v.Key.GetToken().Value; {
		case key != a && key != b || key == first: // given again is another's error
		case first != "":
			r.FailAt(v.Key.GetToken().Position, "%s next to %s, want one of them", key, first)
		default:
			first = key
		}
	}
}

// shared returns the keys that a job and the defaults have.
func (r *reader) shared(e *entry) []strictyaml.Field {
	s, t, y := &e.spec, &e.task, r.Reader
	return []strictyaml.Field{
		strictyaml.Key("command", func(key string, n ast.Node) { r.command(key, n, &t.Command) }),
		strictyaml.Key("dir", func(key string, n ast.Node) { r.dir(key, n, &t.Dir) }),
		strictyaml.Key("env", func(key string, n ast.Node) { r.env(key, n, &t.Env, &t.EnvFiles) }),
		strictyaml.Key("inherit_env", func(key string, n ast.Node) { r.truth(key, n, &e.inherit) }),
		strictyaml.Key("snapshot", func(key string, n ast.Node) {
			word := ""
			e.copied = r.word(key, n, snapshotWords, &word)
		}),
		strictyaml.Key("gpus", func(key string, n ast.Node) { r.gpus(key, n, &s.GPUs) }),
		strictyaml.Key("batch", func(_ string, n ast.Node) { r.batch(n, &s.Batch, &t.LRScaling) }),
		strictyaml.Key("checkpoint", func(key string, n ast.Node) { r.checkpoint(key, n, &t.Checkpoint) }),
		strictyaml.Key("grace", duration(r, &t.Grace, 1, task.MaxGrace, "more than 0s and at most 1h")),
		strictyaml.Key("submit", duration(r, &s.Submit, 0, MaxDelay, "from 0s to 8760h")),
		strictyaml.Key("user", strictyaml.Text(y, &s.User)),
		strictyaml.Key("group", strictyaml.Text(y, &s.Group)),
		strictyaml.Key("model", strictyaml.Text(y, &s.Model)),
		strictyaml.Key("class", strictyaml.Text(y, &s.Class)),
		strictyaml.Key("output", func(key string, n ast.Node) { r.output(key, n, t) }),
		strictyaml.Key("notify", func(key string, n ast.Node) { r.notify(key, n, &t.Notify) }),
		strictyaml.Key("priority", strictyaml.Whole(y, &s.Priority, math.MinInt32, math.MaxInt32)),
		strictyaml.Key("progress", func(key string, n ast.Node) { r.progress(key, n, t) }),
		strictyaml.Key("launcher", func(key string, n ast.Node) {
			if r.word(key, n, task.Launchers, &t.Launcher) == 0 { // the default, which leaves no trace
				t.Launcher = ""
			}
		}),
		strictyaml.Key("gpu_ids", func(key string, n ast.Node) { r.word(key, n, task.GPUIDs, &t.GPUIDs) }),
		strictyaml.Key("preemptible", func(key string, n ast.Node) { r.preemptible(key, n, &s.Preempt) }),
		strictyaml.Key("retries", strictyaml.Whole(y, &s.Retries, 0, maxRetries)),
		strictyaml.Key("retry", func(key string, n ast.Node) { r.retry(key, n, &s.Retries, t) }),
		strictyaml.Key("time_limit", func(key string, n ast.Node) { r.timeLimit(key, n, t) }),
		strictyaml.Key("terminal", duration(r, &t.Terminal, 1, task.MaxLimit, "more than 0s and at most 8760h")),
		strictyaml.Key("wall_time", duration(r, &s.WallTime, 1, MaxDelay, "more than 0s and at most 8760h")),
		strictyaml.Key("share", func(key string, n ast.Node) { r.share(key, n, &s.Share) }),
		strictyaml.Key("cpus", strictyaml.Figure(y, &s.CPUs)),
		strictyaml.Key("memory_gb", strictyaml.Figure(y, &s.MemoryGB)),
		strictyaml.Key("limits", func(key string, n ast.Node) {
			if r.word(key, n, task.LimitWords, &t.Limits) == 0 { // the default, which leaves no trace
				t.Limits = ""
			}
		}),
		strictyaml.Key("gpu_type", func(key string, n ast.Node) { r.gpuTypes(key, n, &t.GPUTypes) }),
		strictyaml.Key("gpu_memory_gb", strictyaml.Figure(y, &s.GPUMemGB)),
		strictyaml.Key("gpu_use", func(key string, n ast.Node) { r.use(key, n, &s.Util) }),
		strictyaml.Key("epochs", strictyaml.Whole(y, &s.Epochs, 1, maxEpochs)),
	}
}

const (
	nameChars  = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
	nameWanted = "1 to 64 letters, digits, dots, _ and -, a letter or digit first and no two dots in a row"
)

// use reads a share of a GPU.
func (r *reader) use(key string, n ast.Node, dst *float32) {
	x, ok := strictyaml.Decimal(n)
	if !ok || x > 1 {
		r.Fail(n, "%s, want a share from 0 to 1", strictyaml.Describe(key, n))
		return
	}
	*dst = float32(x)
}

// name reads the name of a job. It becomes no path, but may stand in one some day, and in a command line.
func (r *reader) name(n ast.Node, dst *string) {
	s := ""
	strictyaml.Text(r.Reader, &s)("name", n)
	if why := misnamed(s); why != "" {
		r.Fail(n, "%s", why)
	}
	*dst = s
}

// gpuTypes reads a part of the names of GPUs, or a list of them.
func (r *reader) gpuTypes(key string, n ast.Node, dst *[]string) {
	items := []ast.Node{n}
	if seq, ok := n.(*ast.SequenceNode); ok {
		items = seq.Values
	}
	*dst = nil
	for _, item := range items {
		*dst = append(*dst, r.argument(key, item, func(string) error { return nil }))
	}
	if slices.Equal(*dst, []string{"any"}) { // the default, which leaves no trace
		*dst = nil
	}
	if len(items) == 0 || len(items) > sched.MaxGPUTypes {
		r.Fail(n, "%s of %d, want 1 to %d parts of names", key, len(items), sched.MaxGPUTypes)
	}
}

// command reads an argument vector.
func (r *reader) command(key string, n ast.Node, dst *[]string) {
	if s, ok := strictyaml.Plain(n); ok {
		r.Fail(n, "%s, want a list of arguments, as in %s (no shell reads it)", strictyaml.Describe(key, n), asList(s))
		return
	}
	seq, ok := n.(*ast.SequenceNode)
	if !ok || len(seq.Values) == 0 {
		r.Fail(n, "%s, want a list of arguments, as in [python, train.py]", strictyaml.Describe(key, n))
		return
	}
	if len(seq.Values) > task.MaxArgs {
		r.Fail(n, "command of %d arguments, want at most %d", len(seq.Values), task.MaxArgs)
		return
	}
	list := make([]string, len(seq.Values))
	for i, item := range seq.Values {
		what := fmt.Sprintf("%s[%d]", key, i)
		list[i] = r.argument(what, item, task.CheckArg)
		if r.Err() != nil {
			return
		}
	}
	if list[0] == "" {
		r.Fail(seq.Values[0], `command starts with "", want a program`)
	}
	*dst = list
}

// argument reads text of any kind that check does not object to.
func (r *reader) argument(what string, n ast.Node, check func(string) error) string {
	s, ok := strictyaml.Plain(n)
	if !ok {
		r.Fail(n, `%s, want text ("" for an empty one)`, strictyaml.Describe(what, n))
		return ""
	}
	if err := check(s); err != nil {
		r.Fail(n, "%s %v", what, err)
	}
	return s
}

// asList returns what a command written as one text looks like as a list, if that can be known, cut if it is long.
func asList(s string) string {
	words := strings.Fields(s)
	if len(words) == 0 || strings.ContainsAny(s, "\"'\\`$&|;<>(){}[]*?#~,:!%@") {
		return "[python, train.py]"
	}
	more := ""
	if len(words) > 6 {
		words, more = words[:6], ", ..."
	}
	list := strings.Join(words, ", ")
	if len(list) > 100 || strings.ContainsFunc(list, func(c rune) bool { return !strconv.IsPrint(c) }) {
		return "[python, train.py]"
	}
	return "[" + list + more + "]"
}

// checkpoint reads how a job saves.
func (r *reader) checkpoint(key string, n ast.Node, dst *task.Checkpoint) {
	var c task.Checkpoint
	r.Mapping(n, key, []strictyaml.Field{
		strictyaml.Key("dir", func(_ string, n ast.Node) { r.dir("checkpoint dir", n, &c.Dir) }),
		strictyaml.Key("signal", func(_ string, n ast.Node) {
			r.word("checkpoint signal", n, task.Signals, &c.Signal)
		}),
		strictyaml.Key("ready_file", func(_ string, n ast.Node) {
			c.Ready = r.argument("checkpoint ready_file", n, task.CheckArg)
			if err := task.CheckReady(c.Ready); r.Err() == nil && err != nil {
				r.Fail(n, "%v", err)
			}
		}),
		strictyaml.Key("to", func(_ string, n ast.Node) {
			if r.word("checkpoint to", n, task.Recipients, &c.To) == 0 { // the default, which leaves no trace
				c.To = ""
			}
		}),
	})
	*dst = c
}

// preemptible reads whether a job may be stopped for others.
func (r *reader) preemptible(key string, n ast.Node, dst *sched.Preemptible) {
	word, plain := strictyaml.Plain(n)
	request, known := sched.ParsePreemptible(word)
	if !plain || !known {
		r.Fail(n, "%s, want after-save, true or false", strictyaml.Describe(key, n))
		return
	}
	*dst = request
}

// logs are the words for a progress.From.
var logs = []string{"auto", "own", "tqdm", "hf", "lightning", "steps"}

// truth reads true or false.
func (r *reader) truth(key string, n ast.Node, dst *bool) {
	word, _ := strictyaml.Plain(n)
	if *dst = word == "true"; !*dst && word != "false" {
		r.Fail(n, "%s, want true or false", strictyaml.Describe(key, n))
	}
}

// progress reads which logs say how far a job is, or by which pattern.
func (r *reader) progress(key string, n ast.Node, t *task.Task) {
	t.Progress, t.Pattern = "", ""
	r.either(n, "from", "regex")
	r.Mapping(n, key, []strictyaml.Field{
		strictyaml.Key("from", func(_ string, n ast.Node) { r.word("progress from", n, logs, &t.Progress) }),
		strictyaml.Key("regex", func(_ string, n ast.Node) {
			t.Pattern = r.argument("progress regex", n, task.CheckArg)
			if _, err := progress.ParsePattern(t.Pattern); r.Err() == nil && err != nil {
				r.Fail(n, "progress regex: %v", err)
			}
		}),
	})
}

// retry reads how often a job is tried again, after which ends, and after which rest.
func (r *reader) retry(key string, n ast.Node, retries *int32, t *task.Task) {
	t.Backoff, t.RetryOn = 0, nil
	r.Mapping(n, key, []strictyaml.Field{
		strictyaml.Key("max", strictyaml.Whole(r.Reader, retries, 0, maxRetries)),
		strictyaml.Key("backoff", duration(r, &t.Backoff, 0, task.MaxBackoff, "from 0s to 24h")),
		strictyaml.Key("on", func(_ string, n ast.Node) { r.ends(n, &t.RetryOn) }),
	})
}

// always are ends that are none of the job's own: after these it is tried again whatever retry says.
var always = []string{"node_fail", "preempted"}

// ends reads the ends after which a job is tried again.
func (r *reader) ends(n ast.Node, dst *[]string) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok || len(seq.Values) == 0 {
		r.Fail(n, "%s, want a list, as in [exit:75, signal:KILL]", strictyaml.Describe("retry on", n))
		return
	}
	for _, item := range seq.Values {
		s := kindOf(item)
		switch _, err := task.ParseEnd(s); {
		case slices.Contains(always, s):
		case err != nil:
			r.Fail(item, "%v (%s always are)", err, strings.Join(always, " and "))
			return
		case slices.Contains(*dst, s):
			r.Fail(item, "retry on %s given again, want it once", strictyaml.Quote(s))
			return
		default:
			*dst = append(*dst, s)
		}
	}
	if len(*dst) == 0 {
		r.Fail(n, "retry on nothing but what always is retried, want exit:N or signal:NAME too, or leave it out")
	}
}

// kindOf reads KIND:VALUE, which inside braces is read as a mapping of one to the other.
func kindOf(n ast.Node) string {
	if s, ok := strictyaml.Plain(n); ok {
		return s
	}
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) == 1 {
		n = m.Values[0]
	}
	v, ok := n.(*ast.MappingValueNode)
	if !ok {
		return ""
	}
	value, _ := strictyaml.Plain(v.Value)
	return v.Key.GetToken().Value + ":" + value
}

// word reads one of some words and returns its number, -1 if it is none.
func (r *reader) word(what string, n ast.Node, list []string, dst *string) int {
	s, _ := strictyaml.Plain(n)
	i := slices.Index(list, s)
	if i < 0 {
		r.Fail(n, "%s%s, want one of %s", strictyaml.Describe(what, n), suggest.Hint(s, list), strings.Join(list, ", "))
	}
	*dst = s
	return i
}

// dir reads a folder, relative to that of the file.
func (r *reader) dir(key string, n ast.Node, dst *string) {
	s, ok := n.(*ast.StringNode)
	switch {
	case !ok || s.Value == "":
		r.Fail(n, "%s, want a path (a number goes in quotes)", strictyaml.Describe(key, n))
		return
	case s.Value[0] == '~':
		r.Fail(n, key+" %s, want a path without ~ (no shell reads it; ./~ is a folder of that name)",
			strictyaml.Quote(s.Value))
		return
	}
	path := filepath.Clean(s.Value)
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.folder, path)
	}
	if err := task.CheckDir(path); err != nil {
		r.Fail(n, "%v", err)
	}
	*dst = path
}

// env reads variables, on top of those that are there: their values, or the files that hold them.
func (r *reader) env(key string, n ast.Node, dst, files *map[string]string) {
	env, from := maps.Clone(*dst), maps.Clone(*files)
	if env == nil {
		env = make(map[string]string)
	}
	r.Each(n, key, "variables", func(name *token.Token, value ast.Node) {
		if err := task.CheckEnvName(name.Value); err != nil {
			r.FailAt(name.Position, "%v", err)
			return
		}
		delete(env, name.Value)
		delete(from, name.Value)
		if _, ok := value.(*ast.MappingNode); !ok {
			env[name.Value] = r.argument("env "+name.Value, value, func(s string) error {
				return task.CheckEnvValue(name.Value, s)
			})
			return
		}
		path := ""
		r.Mapping(value, "env "+name.Value, []strictyaml.Field{
			strictyaml.Key("from_file", func(_ string, n ast.Node) { r.dir("env "+name.Value+" from_file", n, &path) }),
		})
		if path == "" {
			r.Fail(value, "env %s is a mapping without from_file, want the path of a file", name.Value)
		}
		if from == nil {
			from = make(map[string]string)
		}
		from[name.Value] = path
	})
	*dst, *files = env, from
}

// gpus reads a width, or a range of widths.
func (r *reader) gpus(key string, n ast.Node, dst *sched.Range) {
	whole := func(dst *int32) func(string, ast.Node) { return strictyaml.Whole(r.Reader, dst, 1, MaxGPUs) }
	if _, ok := n.(*ast.MappingNode); !ok {
		x := int32(0)
		whole(&x)(key, n)
		*dst = sched.Rigid(int(x))
		return
	}
	w := sched.Range{Min: 1}
	r.Mapping(n, key, []strictyaml.Field{
		strictyaml.Key("min", whole(&w.Min)),
		strictyaml.Key("max", whole(&w.Max)),
		strictyaml.Key("default", whole(&w.Want)),
	})
	if w.Max == 0 {
		r.Fail(n, "gpus without max, want a whole number from 1 to %d", MaxGPUs)
	}
	if w.Want == 0 {
		w.Want = w.Max
	}
	if w.Want < w.Min || w.Want > w.Max {
		r.Fail(n, "gpus %d..%d with default %d, want min <= default <= max", w.Min, w.Max, w.Want)
	}
	*dst = w
}

// scalings are the words for a scaling.Scaling.
var scalings = []string{"none", "linear", "sqrt", "adascale"}

// batch reads bounds of the batch size, and how the learning rate follows it.
func (r *reader) batch(n ast.Node, dst *sched.BatchRange, scaling *string) {
	var b sched.BatchRange
	*scaling = ""
	whole := func(dst *int32) func(string, ast.Node) { return strictyaml.Whole(r.Reader, dst, 1, maxBatch) }
	r.Mapping(n, "batch", []strictyaml.Field{
		strictyaml.Key("global_min", whole(&b.Min)),
		strictyaml.Key("global_max", whole(&b.Max)),
		strictyaml.Key("per_gpu_max", whole(&b.PerGPU)),
		strictyaml.Key("lr_scaling", func(key string, n ast.Node) { r.word(key, n, scalings, scaling) }),
	})
	if b.Min == 0 || b.Max == 0 {
		r.Fail(n, "batch without global_min or global_max, want both (alike for one size)")
	}
	if b.Max < b.Min {
		r.Fail(n, "batch %d..%d, want global_min <= global_max", b.Min, b.Max)
	}
	*dst = b
}

// shares are the words for sched.Consent, by number.
var shares = []string{sched.ShareNever: "never", sched.ShareAllow: "allow", sched.ShareRequire: "require"}

func (r *reader) share(key string, n ast.Node, dst *sched.Consent) {
	s := ""
	if i := r.word(key, n, shares, &s); i >= 0 {
		*dst = sched.Consent(i)
	}
}

// duration reads a time with its unit, from lo to hi; request is what an error asks for.
func duration[T ~int64](r *reader, dst *T, lo, hi time.Duration, wanted string) func(string, ast.Node) {
	return func(key string, n ast.Node) {
		s, _ := strictyaml.Plain(n)
		d, err := time.ParseDuration(s)
		if err != nil || d < lo || d > hi {
			r.Fail(n, "%s, want a time %s, as in 30s, 10m or 1h30m", strictyaml.Describe(key, n), wanted)
			return
		}
		*dst = T(d)
	}
}
