package jobs

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/cli/term"
)

// keyFlag is a flag for a command that says what a key of job files says.
type keyFlag struct {
	flag, key string
	usage     string
	value     func(text string) any // as it stands in a job file, where it is checked
}

// keyFlags are such flags, in the order of help. Several may be about one key, whose value is then a mapping.
var keyFlags = []keyFlag{
	{"dir", "dir", "`FOLDER` to run in (default: this one)", asText},
	{"time", "time_limit", "`TIME[,warn=TIME]` after which it is ended, as 2h,warn=90s",
		asTimeLimit},
	{"after", "after", "`[ok:|fail:]JOB,...`: start once these are over, or have finished or failed", asList},
	{"array", "array", "`NUMBERS[%N]`: a job for each, as 0-99%8: a hundred, eight at once", asText},
	{"model", "model", "`NAME` of what it trains: systems learn by it", asText},
	{"class", "class", "`NAME` of its class", asText},
	{"user", "user", "`NAME` whose job it is (default: you)", asText},
	{"group", "group", "`NAME` of the group that it belongs to", asText},
	{"priority", "priority", "`N`: larger first", asWhole},
	{"batch", "batch", "`N` or MIN-MAX samples of a global batch", asBatch},
	{"checkpoint", "checkpoint", "`FOLDER` it saves in; none (default)", asCheckpoint},
	{"checkpoint-signal", "checkpoint", "`SIGNAL` that asks it to save: TERM, INT, HUP, USR1 or USR2", in("signal")},
	{"grace", "grace", "`TIME` from the signal to end to SIGKILL (default: 30s)", asText},
	{"retries", "retry", "`N[@TIME]` restarts after failures of its own, with a rest of TIME before each", asRetry},
	{"wall-time", "wall_time", "`TIME` that it takes, as you estimate", asText},
	{"delay", "submit", "`TIME` to wait before it may start", asText},
	{"progress", "progress", "`WORD`: which of its logs say how far it is", in("from")},
	{"launcher", "launcher", "`WORD`: auto, or none: give its launcher no options", asText},
	{"gpu-ids", "gpu_ids", "`WORD`: uuid or index: how it is given its GPUs", asText},
	{"notify", "notify", "`[WHEN,...:]HOW`: hear of it, by desktop, mail=ADDRESS, webhook=FILE or run=PROGRAM; " +
		"repeatable",
		asNotify},
	{"snapshot", "snapshot", "`WORD`: script: run its script as it is now; git: run in a\n" +
		"copy of the working tree; none (default)", asText},
	{"output", "output", "`FILE` that it writes to, as logs/%x-%j.txt", in("file")},
	{"error", "output", "`FILE` for its standard error (default: with the output)", in("error")},
	{"open-mode", "output", "`MODE`: append, truncate (at each start) or once (at the first)", in("mode")},
	{"output-max", "output", "`SIZE` of the disk that its output may take, as 1GiB", in("max")},
	{"terminal", "terminal", "`TIME`: run in a terminal, for attach, until it is idle so long", asText},
	{"share", "share", "`WORD`: never, allow or require: may its GPUs be shared?", asText},
	{"cpus", "cpus", "`N` processors that it needs in all", asNumber},
	{"memory", "memory_gb", "`SIZE` of memory that it needs in all, as 32G; GiB without a unit", asSize},
	{"limits", "limits", "`WORD`: enforced or best-effort: run where nothing holds it to these?", asText},
	{"gpu-type", "gpu_type", "`NAME,...`: parts of the names of GPUs that will do, as a100", asList},
	{"gpu-memory", "gpu_memory_gb", "`GB` that each of its GPUs has at least", asNumber},
	{"gpu-use", "gpu_use", "`SHARE` of each GPU that it uses alone, 0 to 1", asNumber},
	{"epochs", "epochs", "`N` epochs that it trains", asWhole},
}

func asText(text string) any { return text }

// asWhole is a whole number, or the text that is none.
func asWhole(text string) any {
	if _, err := strconv.ParseInt(text, 10, 64); err != nil {
		return text
	}
	return json.Number(text)
}

// asNumber is a number, or the text that is none.
func asNumber(text string) any {
	if !json.Valid([]byte(text)) {
		return text
	}
	return json.RawMessage(text)
}

// in is text in a mapping.
// asCheckpoint is the folder that a job saves in, or none. Keys of the mapping, as in signal=USR1, are no folder: they
// are a text, which is refused.
func asCheckpoint(text string) any {
	key, _, is := strings.Cut(text, "=")
	switch {
	case text == "none":
		return map[string]any{}
	case is && slices.Contains([]string{"dir", "signal", "ready_file", "to"}, key):
		return text
	}
	return map[string]any{"dir": text}
}

func in(key string) func(text string) any {
	return func(text string) any { return map[string]any{key: text} }
}

// asBatch is N or MIN-MAX.
func asBatch(text string) any {
	low, high, ranged := strings.Cut(text, "-")
	if !ranged {
		high = low
	}
	return map[string]any{"global_min": asWhole(low), "global_max": asWhole(high)}
}

// asRetry is N or N@TIME.
func asRetry(text string) any {
	most, rest, rests := strings.Cut(text, "@")
	retry := map[string]any{"max": asWhole(most)}
	if rests {
		retry["backoff"] = rest
	}
	return retry
}

// asList is a list of texts between commas.
func asList(text string) any { return strings.Split(text, ",") }

// asTimeLimit is TIME or TIME,warn=TIME.
func asTimeLimit(text string) any {
	most, warn, warned := strings.Cut(text, ",warn=")
	if !warned {
		return most
	}
	return map[string]any{"max": most, "warn": warn}
}

// asNotify is [WHEN,...:]HOW.
func asNotify(text string) any {
	way := make(map[string]any)
	if when, how, timed := strings.Cut(text, ":"); timed && !strings.Contains(when, "=") {
		way["on"], text = strings.Split(when, ","), how
	}
	key, value, _ := strings.Cut(text, "=")
	switch key {
	case "desktop":
		way[key] = true
	case "webhook":
		way[key] = map[string]any{"from_file": value}
	default:
		way[key] = value
	}
	return []any{way}
}

// asSize is a size of memory as a number of GiB, or the text that is none.
func asSize(text string) any {
	digits := strings.TrimRight(text, "KMGTiB")
	n, err := strconv.ParseFloat(digits, 64)
	power, known := map[string]int{"M": -1, "MiB": -1, "MB": -1, "": 0, "G": 0, "GiB": 0, "GB": 0, "T": 1, "TiB": 1,
		"TB": 1}[text[len(digits):]]
	if err != nil || !known || math.IsInf(n, 0) || math.IsNaN(n) {
		return text
	}
	return json.Number(strconv.FormatFloat(math.Ldexp(n, 10*power), 'f', -1, 64))
}

// inAll divides what a command needs in all among its GPUs, which keys are about, and has it held to that unless its
// flags say otherwise. None of it is refused.
func inAll(cmd *cobra.Command, job map[string]any, gpus int) error {
	set := cmd.Flags().Changed
	if cmd.Flag("limits").Value.String() == task.Enforced && !set("cpus") && !set("memory") {
		return term.Usagef("%s: --limits %s alone, want --cpus N or --memory SIZE, to which the job is held",
			term.OwnName(cmd), task.Enforced)
	}
	for flag, key := range map[string]string{"cpus": "cpus", "memory": "memory_gb"} {
		if !cmd.Flags().Changed(flag) {
			continue
		}
		n, err := strconv.ParseFloat(fmt.Sprintf("%s", job[key]), 64)
		if err == nil && n == 0 {
			return term.Usagef("%s: --%s %s, want > 0, or no --%s where any will do", term.OwnName(cmd), flag,
				cmd.Flag(flag).Value, flag)
		}
		if err == nil && !math.IsInf(n, 0) && !math.IsNaN(n) {
			job[key] = n / float64(gpus)
		}
		if !cmd.Flags().Changed("limits") {
			job["limits"] = task.Enforced
		}
	}
	return nil
}

// units says which units a size may have, where it is wrong for its unit.
func (f *keyFlag) units(cmd *cobra.Command) string {
	text := cmd.Flag(f.flag).Value.String()
	if _, err := strconv.ParseFloat(text, 64); f.flag != "memory" || err == nil {
		return ""
	}
	return " of GiB, or with M, G or T"
}

// given are the values of a flag as it was given; the last one holds, but for lists of mappings.
type given []string

// Set notes one more.
func (g *given) Set(text string) error { *g = append(*g, text); return nil }

// Type is that of flags that are given once.
func (*given) Type() string { return "string" }

// String is the last one.
func (g *given) String() string {
	if len(*g) == 0 {
		return ""
	}
	return (*g)[len(*g)-1]
}

// keyed are the values of such flags.
type keyed []given

// define adds the flags.
func (k *keyed) define(cmd *cobra.Command) {
	*k = make(keyed, len(keyFlags))
	for i, f := range keyFlags {
		cmd.Flags().Var(&(*k)[i], f.flag, f.usage)
	}
}

// names are the flags that were given.
func (k keyed) names(cmd *cobra.Command) (given []string) {
	for _, f := range keyFlags {
		if cmd.Flags().Changed(f.flag) {
			given = append(given, f.flag)
		}
	}
	return given
}

// set writes the keys of the flags that were given to a job.
func (k keyed) set(cmd *cobra.Command, job map[string]any) {
	for i, f := range keyFlags {
		if !cmd.Flags().Changed(f.flag) {
			continue
		}
		value := f.value(k[i].String())
		if list, ok := value.([]any); ok {
			for _, text := range slices.Backward(k[i][:len(k[i])-1]) {
				list = append(f.value(text).([]any), list...)
			}
			value = list
		}
		into, several := job[f.key].(map[string]any)
		if more, ok := value.(map[string]any); ok && several {
			for key, v := range more {
				into[key] = v
			}
			continue
		}
		job[f.key] = value
	}
}

// place is where in the job file of a command a mistake is, which means nothing to its user.
var place = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^jobfile: [^ ]*:\d+:\d+: `)
})

// optionKeys are the keys of job files that options of sbatch say, the longest first where one starts as another does.
var optionKeys = []struct {
	key     string
	options []string
}{
	{"gpus", gpuOptions},
	{"gpu_type", gpuOptions},
	{"name", []string{"job-name"}},
	{"checkpoint", []string{"signal"}},
	{"grace", []string{"signal"}},
	{"time_limit", []string{"time"}},
	{"array", []string{"array"}},
	{"priority", []string{"nice"}},
	{"after", []string{"dependency"}},
	{"output error", []string{"error"}},
	{"output mode", []string{"open-mode"}},
	{"output", []string{"output", "error"}},
	{"cpus", []string{"cpus-per-task", "cpus-per-gpu"}},
	{"memory_gb", []string{"mem", "mem-per-gpu", "mem-per-cpu"}},
	{"notify", []string{"mail-user", "mail-type"}},
	{"snapshot", []string{"snapshot"}},
	{"dir", []string{"chdir"}},
	{"env", []string{"export"}},
}

// ofOptions says what is wrong with a key by the option of sbatch that has it.
func ofOptions(fs *pflag.FlagSet, err error) string {
	text := place().ReplaceAllString(err.Error(), "")
	for _, o := range optionKeys {
		for _, name := range o.options {
			if f := fs.Lookup(name); strings.HasPrefix(text, o.key+" ") && f != nil && f.Changed {
				return "--" + name + " " + term.ShellWord(f.Value.String()) + ": " + text
			}
		}
	}
	return text
}

// ofFlags says what is wrong with a key by the flag that has it.
func ofFlags(cmd *cobra.Command, err error) string {
	text := place().ReplaceAllString(err.Error(), "")
	inner := map[string][]string{"batch": {"global_min", "global_max"}, "retry": {"max", "backoff"}}
	about := func(key string) bool { return strings.HasPrefix(text, key+" ") }
	for flag, key := range map[string]string{"error": "output error", "open-mode": "output mode",
		"output-max": "output max"} {
		if about(key) && cmd.Flags().Changed(flag) {
			return "--" + flag + ": " + text
		}
	}
	if cmd.Flags().Changed("notify") && strings.HasPrefix(text, "unknown key ") {
		return "--notify " + term.ShellWord(cmd.Flag("notify").Value.String()) + ": " + text +
			", as in failed:mail=ann@example.org"
	}
	for _, f := range keyFlags {
		if cmd.Flags().Changed(f.flag) && (about(f.key) || slices.ContainsFunc(inner[f.key], about)) {
			return "--" + f.flag + ": " + text + f.units(cmd)
		}
	}
	return text
}
