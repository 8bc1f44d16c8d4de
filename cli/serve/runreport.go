package serve

import (
	"fmt"
	"strconv"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/sched"
)

// runText is the table of jobs, which hold units, and a line about all of them.
func runText(r *metrics.Result, jobs []metrics.Job, rows []host.Row, unit string, width int) string {
	t := &term.Table{Left: 2}
	t.Add("", "", "", "", "", "", "at-", "pre-", "re-", "")
	t.Add("job", "name", unit+"s", "JCT", "queue", "run", "tempts", "empted", "sized", "end")
	for i := range jobs {
		j := &jobs[i]
		row := []string{strconv.Itoa(i), j.Name, strconv.Itoa(int(j.GPUs)), "-", "-", term.ShortTime(j.Run.Seconds()),
			strconv.Itoa(int(rows[i].Attempts)), strconv.Itoa(int(j.Preemptions)), strconv.Itoa(int(j.Resizes)),
			outcomeOf(j, &rows[i])}
		if j.Outcome == sched.Finished {
			row[3], row[4] = term.ShortTime(j.JCT().Seconds()), term.ShortTime(j.Queue().Seconds())
		}
		t.Add(row...)
	}
	t.Cut(1, width)
	about := fmt.Sprintf("%d of %s finished under %s", r.Finished, term.Counted(r.Jobs, "job"), r.System)
	if r.Finished > 0 {
		about += fmt.Sprintf(": average JCT %s, queue %s, makespan %s, %ss held %s of the time",
			term.ShortTime(r.AvgJCT), term.ShortTime(r.AvgQueue),
			term.ShortTime(r.Makespan), unit, term.Percent(r.GPUAllocated))
	}
	return t.Text(width) + "\n" + term.Wrap(about+".", width, 0) + "\n"
}

// outputText is the command that shows what jobs of a state folder wrote. It stays in one line, to be copied.
func outputText(jobs int, dir string) string {
	if jobs == 1 {
		return "Output: trainyard logs 0 --state " + term.ShellWord(dir) + "\n"
	}
	return "Output of a job: trainyard logs JOB --state " + term.ShellWord(dir) + "\n"
}

// outcomeOf says how a job ended, with its exit code if that is not 0.
func outcomeOf(j *metrics.Job, row *host.Row) string {
	if row.Code != 0 && j.Outcome == sched.Failed {
		return fmt.Sprintf("%s (%d)", term.Status(j), row.Code)
	}
	return term.Status(j)
}

// runDoc is the document of run --json. Names are only ever added.
type runDoc struct {
	Schema string         `json:"schema"`
	Result metrics.Result `json:"result"`
	Jobs   []runJobDoc    `json:"jobs"`
}

type runJobDoc struct {
	ID          int      `json:"id"`
	Name        string   `json:"name"`
	GPUs        int32    `json:"gpus"`
	Status      string   `json:"status"`
	ExitCode    int32    `json:"exit_code"` // of the last attempt
	Attempts    int32    `json:"attempts"`
	Preemptions int32    `json:"preemptions"`
	Submit      float64  `json:"submit_s"`
	JCT         *float64 `json:"jct_s"` // null unless it finished
	Run         float64  `json:"run_s"`
	GPUSeconds  float64  `json:"gpu_seconds"`
	Text        string   `json:"text"` // what was said of its end
}

func newRunDoc(r *metrics.Result, jobs []metrics.Job, rows []host.Row) runDoc {
	doc := runDoc{Schema: "trainyard.run/v1", Result: *r, Jobs: make([]runJobDoc, len(jobs))}
	for i := range jobs {
		j := &jobs[i]
		doc.Jobs[i] = runJobDoc{ID: i, Name: j.Name, GPUs: j.GPUs, Status: term.Status(j), ExitCode: rows[i].Code,
			Attempts:    rows[i].Attempts,
			Preemptions: j.Preemptions, Submit: j.Submit.Seconds(), Run: j.Run.Seconds(),
			GPUSeconds: float64(j.Service), Text: rows[i].Text}
		if j.Outcome == sched.Finished {
			jct := j.JCT().Seconds()
			doc.Jobs[i].JCT = &jct
		}
	}
	return doc
}
