package jobs

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/manager/jobfile"
)

// batchMore are options of sbatch that say how a job is submitted and started.
type batchMore struct {
	wrap, begin, export, kill string
	typed                     string // the script, where it was read from standard input
	nice                      int
	tasks, tasksPerNode       int
	hold, stays, wrapped      bool
	singleton                 bool // wait for the jobs of its name
}

// define adds the options.
func (f *batchMore) define(fs *pflag.FlagSet) {
	fs.StringVar(&f.wrap, "wrap", "", "`COMMAND` of a shell, in the place of a script")
	fs.BoolVarP(&f.hold, "hold", "H", false, "wait until it is released")
	fs.StringVarP(&f.begin, "begin", "b", "", "`TIME` before which it does not start: now+1hour, 16:00, "+
		"2026-01-31T16:00")
	fs.IntVar(&f.nice, "nice", 0, "`N` to lower its priority by")
	fs.Lookup("nice").NoOptDefVal = "100"
	fs.IntVarP(&f.tasks, "ntasks", "n", 0, "`N` tasks, for srun in the script")
	fs.IntVar(&f.tasksPerNode, "ntasks-per-node", 0, "the same as `N`: there is one node")
	fs.StringVar(&f.export, "export", "", "`NAMES` of variables that it inherits, or NAME=VALUE, by commas; ALL, NONE")
	fs.BoolVar(&f.stays, "no-requeue", false, "do not stop it for others")
	fs.StringVar(&f.kill, "kill-on-invalid-dep", "yes", "`yes`: it ends where what it waits for cannot come")
}

// check refuses what makes no sense.
func (f *batchMore) check() error {
	switch {
	case f.nice < 0:
		return fmt.Errorf("--nice %d, want > 0: `trainyard priority` asks for more", f.nice)
	case f.tasks < 0 || f.tasksPerNode < 0:
		return fmt.Errorf("--ntasks %d, want > 0", min(f.tasks, f.tasksPerNode))
	case f.tasks > 0 && f.tasksPerNode > 0 && f.tasks > f.tasksPerNode:
		return fmt.Errorf("--ntasks %d on one node of --ntasks-per-node %d, want at most as many", f.tasks,
			f.tasksPerNode)
	case f.kill != "yes":
		return fmt.Errorf("--kill-on-invalid-dep %s, want yes: such a job ends here", f.kill)
	}
	return nil
}

// exports notes in from which variables of the shell are inherited.
func (f *batchMore) exports(from *shell) {
	if f.export == "" {
		return
	}
	from.none = true
	for _, name := range strings.Split(f.export, ",") {
		switch name {
		case "ALL":
			from.none = false
		case "NONE", "NIL", "":
		default:
			if _, there := os.LookupEnv(name); there || strings.Contains(name, "=") {
				from.env = append(from.env, name)
			}
		}
	}
}

// set notes what is asked for as keys of a job, and as variables of Slurm.
func (f *batchMore) set(job map[string]any, env map[string]string, now time.Time) error {
	if err := f.check(); err != nil {
		return err
	}
	if f.nice > 0 {
		job["priority"] = -f.nice
	}
	if f.stays {
		job["preemptible"] = "false"
	}
	if f.begin != "" {
		delay, err := beginning(f.begin, now)
		if err != nil {
			return err
		}
		if delay > 0 {
			job["submit"] = delay.String()
		}
	}
	host, _ := os.Hostname()
	env["SLURM_SUBMIT_HOST"], env["SLURM_CLUSTER_NAME"], env["SLURM_JOB_PARTITION"] = host, "trainyard", "main"
	if u, err := user.Current(); err == nil {
		env["SLURM_JOB_USER"], env["SLURM_JOB_UID"] = u.Username, u.Uid
	}
	n := f.tasks
	if n == 0 {
		n = f.tasksPerNode
	}
	env["SLURM_TASKS_PER_NODE"] = strconv.Itoa(max(n, 1))
	if n > 0 { // by these some trainers take each process for a task: they are there where tasks were asked for
		env[task.SlurmTasks], env["SLURM_NPROCS"] = strconv.Itoa(n), strconv.Itoa(n)
	}
	if f.tasksPerNode > 0 {
		env["SLURM_NTASKS_PER_NODE"] = strconv.Itoa(f.tasksPerNode)
	}
	return nil
}

// arrayVariables adds the variables that say which numbers an array has.
func arrayVariables(text string, env map[string]string) error {
	a, err := jobfile.ParseArray(text)
	if err != nil {
		return fmt.Errorf("--%w", err)
	}
	least, most := slices.Min(a.Indices), slices.Max(a.Indices)
	step := int32(1)
	if n := int32(len(a.Indices)); n > 1 && (most-least)%(n-1) == 0 {
		step = (most - least) / (n - 1)
	}
	for name, n := range map[string]int32{"MIN": least, "MAX": most, "STEP": step} {
		env["SLURM_ARRAY_TASK_"+name] = strconv.Itoa(int(n))
	}
	return nil
}

// beginning returns how far away a first time of start is, as Slurm writes it; 0 if it is over.
func beginning(text string, now time.Time) (time.Duration, error) {
	at, err := task.ParseSlurmMoment(text, now, false)
	if err != nil {
		return 0, fmt.Errorf("--begin %w", err)
	}
	if after := at.Sub(now).Round(time.Second); after <= jobfile.MaxDelay {
		return max(after, 0), nil
	}
	return 0, fmt.Errorf("--begin %s, want a time within a year", text)
}

// submit submits the jobs of a script, after those of the same name where that is asked for.
func (f *batchMore) submit(cmd *cobra.Command, to *client.Target, c *api.Client, once *client.Once, s *api.Submission,
	args []string) (doc api.Submitted, err error) {
	if f.singleton {
		if failed := afterSame(cmd, c, s); failed != nil {
			return doc, failed
		}
	}
	s.Paused = f.hold
	return once.Submit(cmd, to, c, s, args)
}

// afterSame has the job of a submission wait for the jobs of its user that have its name and are not done.
func afterSame(cmd *cobra.Command, c *api.Client, s *api.Submission) error {
	var file struct {
		Jobs []map[string]any `json:"jobs"`
	}
	if err := json.Unmarshal([]byte(s.File), &file); err != nil {
		return err
	}
	info, err := c.Info(cmd.Context())
	if err != nil {
		return err
	}
	list, err := c.Jobs(cmd.Context(), api.Filter{States: unfinished, User: info.You})
	if err != nil {
		return err
	}
	for _, job := range file.Jobs {
		after, _ := job["after"].([]any)
		for i := range list.Jobs {
			if j := &list.Jobs[i]; j.Name == job["name"] || arrayName(j) == job["name"] {
				after = append(after, jobfile.AfterAny+":"+strconv.Itoa(j.ID))
			}
		}
		if len(after) > 0 {
			job["after"] = after
		}
	}
	b, err := json.Marshal(file)
	s.File = string(b)
	return err
}

// warnSrun warns of a script that calls srun where it is not found.
func warnSrun(cmd *cobra.Command, name string, text []byte) {
	if !callsSrun().Match(text) {
		return
	}
	if _, err := exec.LookPath("srun"); err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "trainyard: warning: %s calls srun, which is not in PATH: `trainyard "+
			"slurm-links FOLDER` makes it\n", name)
	}
}
