package crashtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// exitJobFailed is the exit code of a manager whose jobs are done, but some of them failed.
const exitJobFailed = 10

// doc is what the last manager says of the jobs.
type doc struct {
	Jobs []struct {
		Name     string `json:"name"`
		Status   string `json:"status"`
		ExitCode int    `json:"exit_code"`
		Attempts int    `json:"attempts"`
	} `json:"jobs"`
}

// checkEnd compares what came of the jobs with what was to come, and with what was seen from outside.
func (c *campaign) checkEnd(l *life) {
	if code := l.cmd.ProcessState.ExitCode(); code != exitJobFailed {
		c.t.Fatalf("the last manager ended with code %d, want %d:\n%s", code, exitJobFailed, &l.stderr)
	}
	var d doc
	if err := json.Unmarshal(l.stdout.Bytes(), &d); err != nil {
		c.t.Fatalf("%v:\n%s", err, &l.stdout)
	}
	c.checkJobs(d)
	book := readLedger(c.t, c.dir)
	book.check(c.t)
	log := readLog(c.t, c.dir)
	log.check(c.t)
	if len(log.lost) > 0 && !c.lossy { // no shim was killed and nothing was in its way
		c.t.Errorf("lost: %v", log.lost)
	}
	c.checkAgainst(book, log)
	c.checkAdopted(log)
	c.checkHashes(d)
	for _, more := range [][]string{nil, {"--reload"}} {
		if code, said := command(c.t, c.dir, append([]string{"replay", "events.jsonl"}, more...)...); code != 0 {
			c.t.Errorf("replay %v: code %d: %s", more, code, said)
		}
	}
	c.checkGone()
	if c.t.Failed() {
		c.report()
	}
}

// report shows what may explain a failure: the log without its specs, and what the shims had to say.
func (c *campaign) report() {
	b, _ := os.ReadFile(filepath.Join(c.dir, "events.jsonl"))
	for line := range strings.Lines(string(b)) {
		if !strings.Contains(line, `"spec"`) {
			c.t.Log(strings.TrimSpace(line))
		}
	}
	for _, dir := range runDirs(c.t, c.state) {
		said, _ := os.ReadFile(filepath.Join(string(dir), "shim.log"))
		c.t.Logf("%s: %s", dir, said)
	}
}

// checkJobs: all jobs that were acknowledged are there and ended as they should. Those whose acknowledgement was lost
// with their manager are there as well: the file was read to its end.
func (c *campaign) checkJobs(d doc) {
	if len(d.Jobs) != len(c.jobs) {
		c.t.Fatalf("%d jobs in the end, want %d", len(d.Jobs), len(c.jobs))
	}
	known := make(map[string]bool)
	for i, got := range d.Jobs {
		known[got.Name] = true
		c.names = append(c.names, got.Name)
		want := c.find(got.Name)
		if got.Status != want.status || want.status != "cancelled" && got.ExitCode != want.code {
			c.t.Errorf("job %d %s: %s with code %d after %d attempts, want %s with %d", i, got.Name, got.Status,
				got.ExitCode, got.Attempts, want.status, want.code)
		}
	}
	for name := range c.accepted {
		if !known[name] {
			c.t.Errorf("job %s was acknowledged and is lost", name)
		}
	}
	for name := range c.cancelled {
		if want := c.find(name); want.cancel == "" {
			c.t.Errorf("job %s was cancelled, want that of victims only", name)
		}
	}
}

// find returns the job of a name.
func (c *campaign) find(name string) job {
	i := slices.IndexFunc(c.jobs, func(j job) bool { return j.name == name })
	if i < 0 {
		c.t.Errorf("job %s is not in the job file", name)
		return job{}
	}
	return c.jobs[i]
}

// checkHashes: trainers of as many steps and the same width end with the same weights, however often they were stopped.
func (c *campaign) checkHashes(d doc) {
	type kind struct{ steps, gpus int }
	seen := make(map[kind]string)
	done := regexp.MustCompile(`TRAINYARD done .*hash=(\S+)`)
	for i, got := range d.Jobs {
		j := c.find(got.Name)
		if j.steps == 0 {
			continue
		}
		b, err := os.ReadFile(c.state.RunDir(int32(i), int32(got.Attempts)).Output())
		match := done.FindSubmatch(b)
		if err != nil || match == nil {
			c.t.Errorf("job %s: no result in the output of attempt %d: %v\n%s", got.Name, got.Attempts, err, b)
			continue
		}
		k := kind{j.steps, j.gpus}
		if hash := string(match[1]); seen[k] == "" {
			seen[k] = hash
		} else if seen[k] != hash {
			c.t.Errorf("job %s of %d steps on %d: hash %s, another has %s", got.Name, j.steps, j.gpus, hash, seen[k])
		}
	}
}

// checkGone: no process of the folder is left, nor a cgroup.
func (c *campaign) checkGone() {
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		left := c.processes()
		if len(left) == 0 {
			break
		}
		if time.Now().After(end) {
			c.t.Errorf("processes left: %v", left)
			break
		}
	}
	for _, dir := range runDirs(c.t, c.state) {
		if o, err := dir.Order(); err != nil {
			c.t.Error(err)
		} else if _, err := os.Stat(filepath.Join(o.Cgroup, o.GroupName())); o.Cgroup != "" && err == nil {
			c.t.Errorf("cgroup %s is left", o.GroupName())
		}
	}
}

// processes are those that name the campaign's folder in their command or environment.
func (c *campaign) processes() (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		c.t.Error(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		command, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		environ, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if strings.Contains(string(command)+string(environ), c.dir) {
			pids = append(pids, pid)
		}
	}
	return pids
}
