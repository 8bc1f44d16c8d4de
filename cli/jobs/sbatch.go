package jobs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/manager/jobfile"
)

// batchFlags are the options of Slurm's sbatch that mean something here, as written.
type batchFlags struct {
	name, gpus, gres, perNode, perTask, limit, signal, array, dir, nodes, after string
	output, errors, openMode                                                    string
	snapshot                                                                    string
	parsable, wait                                                              bool
	batchMore
	batchRoom
	batchMail
}

// ignoredOptions are options of sbatch that are passed over with a word, with their short forms.
var ignoredOptions = map[string]string{"account": "A", "comment": "", "constraint": "C", "exclude": "x",
	"gpu-bind": "", "nodelist": "w", "ntasks-per-gpu": "", "partition": "p",
	"qos": "q", "reservation": "", "wckey": "", "licenses": "L", "hint": "", "distribution": "m",
	"threads-per-core": "",
	"mincpus":          "", "tmp": "", "clusters": "M", "profile": "", "switches": "", "bb": "", "gpu-freq": ""}

// define adds the options to a set.
func (f *batchFlags) define(fs *pflag.FlagSet) {
	fs.SortFlags = false
	fs.StringVarP(&f.name, "job-name", "J", "", "`NAME` of the job (default: that of the script)")
	fs.StringVarP(&f.gpus, "gpus", "G", "", "`N` GPUs or slots, or TYPE:N (default: 1)")
	fs.StringVar(&f.gres, "gres", "", "the same as `gpu:N`")
	fs.StringVar(&f.perNode, "gpus-per-node", "", "the same as `N`: there is one node")
	fs.StringVar(&f.perTask, "gpus-per-task", "", "`N` GPUs for each of --ntasks")
	fs.StringVarP(&f.limit, "time", "t", "", "`TIME` after which it is ended, as minutes or D-HH:MM:SS")
	fs.StringVar(&f.signal, "signal", "", "`[B:]SIG@S`: the signal that asks it to save, S seconds before its end")
	fs.StringVarP(&f.array, "array", "a", "", "a job for each of these `NUMBERS`, as in 0-7 or 1,3,5-9:2")
	fs.StringVarP(&f.dir, "chdir", "D", "", "`FOLDER` to run in (default: this one)")
	fs.StringVarP(&f.nodes, "nodes", "N", "", "`1`: there is one")
	fs.StringVarP(&f.after, "dependency", "d", "", "`HOW:JOB...`: "+
		"wait for jobs, as in afterok:3:4 (also afterany, afternotok)")
	fs.StringVarP(&f.output, "output", "o", "", "`FILE` that it writes to (default: slurm-%j.out, slurm-%A_%a.out)")
	fs.StringVarP(&f.errors, "error", "e", "", "`FILE` for its standard error (default: with the output)")
	fs.StringVar(&f.openMode, "open-mode", "", "`MODE`: append, or truncate at each start (default: at the first)")
	fs.StringVar(&f.snapshot, "snapshot", "", "`WORD`: script: run it as it is now (default, where a shell, Python\n"+
		"or another known interpreter runs it); git: in a copy of the working tree; none: as it\nis at each start")
	fs.BoolVar(&f.parsable, "parsable", false, "print numbers alone")
	fs.BoolVarP(&f.wait, "wait", "W", false, "wait until it is done, and exit with its code")
	f.batchMore.define(fs)
	f.batchRoom.define(fs)
	f.batchMail.define(fs)
	fs.StringP("input", "i", "", "")
	_ = fs.MarkHidden("input")
	// as it is: who is preempted waits for his turn again, and a GPU is one job's
	for _, name := range []string{"requeue", "exclusive"} {
		fs.Bool(name, false, "")
		_ = fs.MarkHidden(name)
	}
	for name, short := range ignoredOptions {
		fs.StringP(name, short, "", "")
		_ = fs.MarkHidden(name)
	}
}

func newSbatch() *cobra.Command {
	var f batchFlags
	var to client.Target
	var once client.Once
	cmd := &cobra.Command{
		Use:   "sbatch [OPTIONS] [SCRIPT [ARGUMENTS...]]",
		Short: "Submit a script written for Slurm",
		Long: `Hands a script in as a job, with what its #SBATCH lines ask for: job name, GPUs,
time, signal, array, folder. Options here go before those lines. Other options
of sbatch are passed over, and reported. A copy of the script is run, by what
its first line names, as it is now (--snapshot none: as it is at each start),
with the variables of this shell (docs/guide/jobs.md). Without SCRIPT it is read
from standard input.
Its output is in slurm-%j.out where it runs on this machine, and kept for
` + "`trainyard logs`" + `. squeue and scancel are names of ps and cancel.`,
		Example: `  trainyard sbatch --gpus 2 train.sh
  trainyard squeue
  trainyard scancel 3`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && !cmd.Flags().Changed("wrap") && isTerminal(cmd) {
				return noScript(cmd)
			}
			if err := once.Check(cmd); err != nil {
				return err
			}
			from := &shell{target: func() client.Target { return to }}
			s, asked, err := batch(cmd, args, from)
			if err != nil {
				return err
			}
			once.Await(cmd, &to)
			return to.Changing(func(cmd *cobra.Command, c *api.Client, _ []string) error {
				doc, err := asked.submit(cmd, &to, c, &once, &s, args)
				if err != nil {
					return err
				}
				fmt.Fprint(cmd.ErrOrStderr(), from.took)
				return cmp.Or(writeBatch(cmd, &doc, asked.parsable), asked.await(cmd, c, &doc))
			})(cmd, args)
		},
	}
	f.define(cmd.Flags())
	cmd.Flags().SetInterspersed(false) // what follows the script is its own
	once.Define(cmd)
	to.AddFlags(cmd)
	return cmd
}

// writeBatch prints the numbers of jobs as sbatch does.
func writeBatch(cmd *cobra.Command, doc *api.Submitted, parsable bool) error {
	var b strings.Builder
	for i := range doc.Jobs[:min(len(doc.Jobs), 1)] { // an array has the number of its first task
		if !parsable {
			b.WriteString("Submitted batch job ")
		}
		fmt.Fprintln(&b, doc.Jobs[i].ID)
	}
	return term.WriteText(cmd.OutOrStdout(), b.String())
}

// callsSrun finds a line that starts with srun.
var callsSrun = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^\s*srun\s`) })

// batch returns the jobs of a script, by its lines and, before those, the flags of cmd.
func batch(cmd *cobra.Command, args []string, from *shell) (s api.Submission, f batchFlags, err error) {
	text, err := f.text(cmd, args)
	if err != nil {
		return s, f, err
	}
	switch {
	case f.wrapped:
		args = []string{"wrap"}
	case len(args) == 0:
		args = []string{standardInput}
	}
	fs := pflag.NewFlagSet(args[0], pflag.ContinueOnError)
	f.define(fs)
	run, lines := directives(text)
	warnNoInterpreter(cmd, args[0], text, run)
	for _, l := range lines {
		if bad := fs.Parse(l.words); bad != nil || fs.NArg() > 0 {
			return s, f, term.Malformed(fmt.Errorf("%s:%d: #SBATCH %s: not understood, want options of sbatch "+
				"such as --gpus=2", args[0], l.number, strings.Join(l.words, " ")))
		}
	}
	f.override(cmd.Flags(), fs)
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if fs.Lookup(flag.Name) != nil {
			_ = fs.Set(flag.Name, flag.Value.String())
		}
	})
	fs.Visit(func(flag *pflag.Flag) {
		if _, ignored := ignoredOptions[flag.Name]; ignored {
			fmt.Fprintf(cmd.ErrOrStderr(), "trainyard: warning: --%s is passed over\n", flag.Name)
		}
	})
	f.warnUnsent(cmd)
	if bad := f.contradicts(fs); bad != nil {
		return s, f, term.Usagef("sbatch: %s: %w", args[0], bad)
	}
	f.noteLimits(cmd)
	warnSrun(cmd, filepath.Base(args[0]), text)
	path, err := filepath.Abs(args[0])
	if err != nil {
		return s, f, err
	}
	f.ownOutput(cmd, from.away())
	f.exports(from)
	env, err := from.taken(cmd)
	if err == nil {
		s, err = f.job(run, path, args[1:], env != nil)
	}
	if err != nil {
		return s, f, term.Usagef("sbatch: %s: %w", args[0], err)
	}
	if s.Inherit = env; env == nil {
		s.Env = from.passed()
	}
	jobs, err := jobfile.ParseJobs([]byte(s.File), args[0])
	if err != nil {
		return s, f, term.Usagef("sbatch: %s: %s", args[0], ofOptions(fs, err))
	}
	warnMissing(cmd, jobs)
	s.Scripts, err = from.scripts(cmd, jobs)
	return s, f, err
}

// warnNoInterpreter warns of a script whose first line does not say what runs it: it may be written for something else.
func warnNoInterpreter(cmd *cobra.Command, name string, text []byte, run []string) {
	if !bytes.HasPrefix(text, []byte("#!")) {
		fmt.Fprintf(cmd.ErrOrStderr(), "trainyard: warning: %s does not start with #! and its interpreter: %s "+
			"runs it\n", filepath.Base(name), run[0])
	}
}

// directive is a line #SBATCH.
type directive struct {
	number int // of the line, from 1
	words  []string
}

// directives returns what runs a script, by its first line, and the lines #SBATCH before its first command.
func directives(text []byte) (run []string, list []directive) {
	run = []string{"/bin/sh"}
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimRight(line, "\r \t")
		interpreter, begins := strings.CutPrefix(line, "#!")
		rest, ours := strings.CutPrefix(line, "#SBATCH")
		switch {
		case i == 0 && begins && strings.TrimSpace(interpreter) != "":
			run = strings.Fields(interpreter)
		case ours && (rest == "" || rest[0] == ' ' || rest[0] == '\t'):
			list = append(list, directive{i + 1, shellWords(rest)})
		case line != "" && line[0] != '#':
			return run, list
		}
	}
	return run, list
}

// shellWords splits a line at blanks outside quotes, up to a comment.
func shellWords(line string) (words []string) {
	var word []byte
	quote, begun := byte(0), false
	for i := 0; i <= len(line); i++ {
		switch {
		case i == len(line) || quote == 0 && (line[i] == ' ' || line[i] == '\t'):
			if begun {
				words = append(words, string(word))
			}
			word, begun = word[:0], false
		case quote == 0 && !begun && line[i] == '#':
			return words
		case quote == 0 && (line[i] == '"' || line[i] == '\''):
			quote, begun = line[i], true
		case line[i] == quote:
			quote = 0
		default:
			word, begun = append(word, line[i]), true
		}
	}
	return words
}

// submission is the command of a script as a job file: one job, or one for each number of an array.
// It inherits the environment of its submitter, or none.
func (f *batchFlags) submission(script string, command []string, inherit bool) (s api.Submission, err error) {
	if n, bad := strconv.Atoi(f.nodes); f.nodes != "" && (bad != nil || n != 1) {
		return s, fmt.Errorf("--nodes %s, want 1: this is one machine", f.nodes)
	}
	gpus, kind, err := f.width()
	if err != nil {
		return s, err
	}
	name := f.jobName(script)
	job := map[string]any{"command": command, "gpus": gpus, "inherit_env": inherit}
	f.copies(job, script, command)
	if kind != "" {
		job["gpu_type"] = kind
	}
	if f.limit != "" {
		most, bad := slurmTime(f.limit)
		if bad != nil {
			return s, bad
		}
		job["time_limit"] = map[string]any{"max": most, "each": true}
	}
	if bad := cmp.Or(f.saves(job), f.waits(job)); bad != nil {
		return s, bad
	}
	if s.Dir, err = filepath.Abs(f.dir); err != nil {
		return s, err
	}
	if f.output != "" {
		job["output"] = f.writes()
	}
	f.mails(job)
	job["name"] = name
	env := map[string]string{task.SlurmName: name, task.SlurmFolder: s.Dir}
	if job["env"] = env; f.array != "" {
		if bad := arrayVariables(f.array, env); bad != nil {
			return s, bad
		}
		job["array"] = f.array
	}
	if bad := cmp.Or(f.set(job, env, time.Now()), f.ask(job, env, cmp.Or(f.tasks, f.tasksPerNode), gpus)); bad != nil {
		return s, bad
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b) // JSON is YAML
	e.SetEscapeHTML(false)
	err = e.Encode(map[string]any{"jobs": []any{job}})
	s.File = b.String()
	return s, err
}

// job is submission for the script at path, or the text in its place.
func (f *batchFlags) job(run []string, path string, args []string, inherit bool) (s api.Submission, err error) {
	command, err := f.command(run, path, args)
	if err != nil {
		return s, err
	}
	if f.typed != "" {
		path = "sbatch" // as Slurm names it
	}
	return f.submission(path, command, inherit)
}

// copies has the job run a copy of its script, if it has one that is known to be it and nothing else is asked for.
func (f *batchFlags) copies(job map[string]any, script string, command []string) {
	if f.snapshot == "none" || f.wrapped || f.typed != "" {
		return
	}
	if at, err := task.ScriptOf(command); f.snapshot != "" || err == nil && command[at] == script {
		job["snapshot"] = cmp.Or(f.snapshot, "script")
	}
}

// jobName is the name that was asked for, else that of the script. A name is no number: that would be one of a job.
func (f *batchFlags) jobName(script string) string {
	name := nameOf(f.name)
	if name == "" {
		name = nameOf(script)
	}
	if jobfile.IsNumber(name) || name == "" {
		name = "job-" + name
	}
	return name
}

// width is the number of GPUs that are asked for in one of four ways, and their type; "" = any.
func (f *batchFlags) width() (n int, kind string, err error) {
	text := f.gpus
	if text == "" {
		text = f.perNode
	}
	for _, one := range strings.Split(f.gres, ",") {
		kind, of, _ := strings.Cut(one, ":")
		switch {
		case kind == "gpu" && text == "":
			text = cmp.Or(of, "1")
		case kind != "gpu" && one != "" && one != "none":
			return 0, "", fmt.Errorf("--gres %s, want gpu, gpu:N or gpu:TYPE:N: no other resource is known here", one)
		}
	}
	times := 1
	if text == "" && f.perTask != "" {
		text, times = f.perTask, max(f.tasks, f.tasksPerNode, 1)
	}
	if text == "" {
		return 1, "", nil
	}
	colon := strings.LastIndexByte(text, ':')
	n, err = strconv.Atoi(text[colon+1:])
	if n *= times; err != nil || n < 1 {
		return 0, "", fmt.Errorf("%s GPUs, want a number > 0, or TYPE:N", text)
	}
	return n, text[:max(colon, 0)], nil
}

// saves notes by which signal, and how long before its end, the job is asked to save.
func (f *batchFlags) saves(job map[string]any) error {
	if f.signal == "" {
		return nil
	}
	to, rest, shell := strings.Cut(f.signal, ":")
	if !shell {
		to, rest = "", f.signal
	}
	name, seconds, timed := strings.Cut(rest, "@")
	if n, ok := map[string]string{"1": "HUP", "2": "INT", "10": "USR1", "12": "USR2", "15": "TERM"}[name]; ok {
		name = n
	}
	checkpoint := map[string]string{"signal": strings.TrimPrefix(strings.ToUpper(name), "SIG")}
	if job["checkpoint"] = checkpoint; strings.Contains(to, "B") {
		checkpoint["to"] = "leader"
	}
	n, err := strconv.Atoi(seconds)
	if timed && (err != nil || n < 1) {
		return fmt.Errorf("--signal %s, want [B:]SIG@SECONDS", f.signal)
	}
	if timed {
		job["grace"] = fmt.Sprintf("%ds", n)
	}
	return nil
}

// slurmTime makes a duration of minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM or D-HH:MM:SS.
func slurmTime(text string) (string, error) {
	total, err := task.ParseSlurmTime(text)
	if err != nil {
		return "", fmt.Errorf("--time %w", err)
	}
	return total.String(), nil
}

// ownOutput has the script write to the file of Slurm's name where no other is asked for, in the folder that it runs
// in. What another machine runs has no such folder.
func (f *batchFlags) ownOutput(cmd *cobra.Command, away bool) {
	if f.output != "" || away && f.errors == "" {
		return
	}
	name := "slurm-%j.out"
	if f.array != "" {
		name = "slurm-%A_%a.out"
	}
	folder, err := filepath.Abs(f.dir)
	if err == nil {
		err = shim.CheckOutput(filepath.Join(folder, name))
	}
	if err != nil && f.errors == "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "trainyard: warning: no %s is written: %v\n", name, err)
		return
	}
	f.output = name
}
