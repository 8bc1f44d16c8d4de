package serve

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/driver/local/procs"
	"github.com/trainyard/trainyard/driver/local/shim"
)

// unixStat is what Stat says in addition to what all systems have.
type unixStat = syscall.Stat_t

// devices reports GPUs that are given to no job.
func (p *patient) devices() []finding {
	const name = "devices"
	if p.nodes == nil {
		return []finding{{name, fine, "not looked at: only a manager knows", ""}}
	}
	var all []finding
	if p.nodes.Drained {
		all = append(all, finding{name, note, p.nodes.Node + " is drained: nothing new starts",
			"`trainyard undrain` when you are done"})
	}
	var forgotten []string
	for i := range p.nodes.GPUs {
		g := &p.nodes.GPUs[i]
		if g.State == "forgotten" {
			forgotten = append(forgotten, api.Printable(g.Name))
			continue
		}
		all = append(all, gpuFinding(g)...)
	}
	if len(all) == 0 {
		used := term.Counted(len(p.nodes.GPUs)-len(forgotten), p.nodes.Unit)
		all = append(all, finding{name, fine, used + " in use", ""})
	}
	if len(forgotten) > 0 {
		all = append(all, finding{name, fine, "forgotten: " + strings.Join(forgotten, ", "), ""})
	}
	return all
}

// todo is what to do about a GPU, by its state.
var todo = map[string]string{
	"foreign": "end these processes, or have them run as jobs; it is used again once they are gone",
	"stuck":   "end what holds its memory; if nothing does, `nvidia-smi --gpu-reset` or a restart of the machine",
	"missing": "look for NVRM and Xid in dmesg: it may need a reset, or another cable; a CPU slot comes back by " +
		"`serve --slots`",
	"quarantined": "look into the output of the jobs that failed on it; it is tried again after a while",
}

func gpuFinding(g *api.GPU) []finding {
	text := g.Name + " is " + g.State
	if r := client.Remarks(g); r != "" {
		text += ": " + r
	}
	switch {
	case g.State == "drained":
		return []finding{{"devices", note, text,
			"`trainyard undrain " + term.ShellWord(g.Name) + "` when you are done"}}
	case g.State == "missing":
		return []finding{{"devices", wrong, text, todo[g.State] + "; `trainyard gpus forget " + term.ShellWord(g.Name) +
			"` if it is not to come back"}}
	case g.State != "in-use":
		return []finding{{"devices", wrong, text, todo[g.State]}}
	case g.HeldIdle:
		return []finding{{"devices", note, g.Name + ": " + client.Remarks(g), "ask its user whether that can go"}}
	}
	return nil
}

// muchOutput is as many bytes of output of jobs that are done as are worth a note.
const muchOutput = 10 << 30

// leftovers reports processes and folders of jobs that should not be there any more.
func (p *patient) leftovers() []finding {
	const name = "leftovers"
	runs, err := filepath.Glob(filepath.Join(p.dir, "jobs", "*", "*", "order.json"))
	if err != nil {
		return []finding{{name, wrong, term.OneLine(err.Error()),
			"give --state a folder without signs of patterns in its name"}}
	}
	var all []finding
	running, kept := 0, int64(0)
	for _, order := range runs {
		run := filepath.Dir(order)
		job, err := strconv.Atoi(filepath.Base(filepath.Dir(run)))
		if err != nil {
			continue
		}
		pid, lives := shimOf(shim.RunDir(run))
		if lives {
			running++
		}
		all = append(all, p.leftover(job, run, pid, lives)...)
		done := p.jobs != nil && job < len(p.jobs.Jobs) && p.jobs.Jobs[job].State == "done"
		if info, err := os.Lstat(shim.RunDir(run).Output()); err == nil && done {
			kept += info.Size()
		}
	}
	if kept > muchOutput {
		all = append(all, finding{name, note, fmt.Sprintf("the output of jobs that are done takes %.1f GiB",
			float64(kept)/(1<<30)),
			"delete " + term.ShellWord(p.dir) + "/jobs/N/*/output.log of jobs N that you need no more: " +
				"`trainyard logs` alone misses them. Checkpoints are next to them"})
	}
	switch {
	case len(all) > 0:
		return all
	case p.info == nil && running > 0:
		return []finding{{name, note, term.Counted(running, "job") + " running, managed by no one",
			"`trainyard serve` takes them over"}}
	}
	return []finding{{name, fine, fmt.Sprintf("nothing; %s, %d running", term.Counted(len(runs), "attempt"), running),
		""}}
}

// leftover says what is wrong with one run directory. Only a manager can say.
func (p *patient) leftover(job int, run string, pid int, lives bool) []finding {
	if p.jobs == nil {
		return nil
	}
	kill := howToEnd(shim.RunDir(run), pid)
	_, err := shim.RunDir(run).Over()
	switch {
	case job >= len(p.jobs.Jobs) && lives:
		return []finding{{"leftovers", wrong, fmt.Sprintf("process %d runs job %d, which the manager does not know",
			pid, job), kill}}
	case job >= len(p.jobs.Jobs):
		return []finding{{"leftovers", note, fmt.Sprintf("%s is of no job that the manager knows", run),
			"look into the folder above it: it may hold checkpoints; then rm -r " + term.ShellWord(filepath.Dir(run))}}
	case p.jobs.Jobs[job].State != "done", err == nil: // one that is over has nothing left; its shim is on its way out
		return nil
	case lives:
		return []finding{{"leftovers", wrong, fmt.Sprintf("process %d goes on although %s is done", pid,
			client.JobTitle(&p.jobs.Jobs[job])), kill}}
	default:
		return []finding{{"leftovers", note, fmt.Sprintf("%s does not say how it ended, although %s is done", run,
			client.JobTitle(&p.jobs.Jobs[job])),
			"rm -r " + term.ShellWord(run) + " if you do not need its output"}}
	}
}

// howToEnd says how the processes of an attempt are ended by hand. Its shim ignores every signal that it can, but
// ends once nothing is left of what it started.
func howToEnd(run shim.RunDir, pid int) string {
	if o, err := run.Order(); err == nil { // the job may have written it
		if group := filepath.Join(o.Cgroup, o.GroupName()); procs.IsCgroup(group) {
			return "echo 1 > " + term.ShellWord(filepath.Join(group, "cgroup.kill"))
		}
	}
	return fmt.Sprintf("`pstree -p %d` shows what it started: `kill -KILL` these, then it ends", pid)
}

// shimOf returns the process that runs an attempt, and whether it lives: a pid alone may be that of another one by now.
func shimOf(run shim.RunDir) (pid int, lives bool) {
	a, err := run.Alive()
	if err != nil {
		return 0, false
	}
	boot, err := procs.BootID()
	if err != nil || boot != a.BootID {
		return 0, false
	}
	lives, err = procs.Lives(a.PID, a.StartTime)
	return a.PID, err == nil && lives
}
