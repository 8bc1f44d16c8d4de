package shim

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/attempt/task"
)

const python = "/usr/bin/python3"

// scene is a job that is asked to end.
type scene struct {
	name   string
	argv   []string // GO and PY stand for the commands of the stand-in and of testdata/trainer.py
	to     string
	ranks  int    // that save; 0 = the job is one process
	width  string // as many ranks has torchrun, of which one asks its steps
	asked  string // programs that get the signal, in order of their names; "" = any
	signal string
}

// script is what a shell runs; the words GO and PY in it are replaced.
func script(shell, text string) []string { return []string{shell, "-c", text} }

var scenes = []scene{
	{name: "alone", argv: []string{"GO", "trainer"}, asked: "shim.test"},
	{name: "workers", argv: []string{"GO", "trainer", "-workers", "2"}, asked: "shim.test"},
	{name: "sh", argv: script("sh", "GO trainer -workers 2; echo went on"), asked: "shim.test"},
	{name: "sh in sh", argv: script("sh", `sh -c "GO trainer -workers 2; echo went on"; echo went on`),
		asked: "shim.test"},
	{name: "pipe", argv: script("sh", "GO trainer -workers 2 2>&1 | cat; echo went on"), asked: "shim.test"},
	{name: "trap and a child in front", argv: script("bash", `trap "echo trap ran" TERM; GO trainer -workers 2`),
		asked: "bash shim.test"},
	{name: "trap and a child behind", argv: script("bash", `trap "echo trap ran" TERM; GO trainer -workers 2 & wait; `+
		`wait`), asked: "bash shim.test"},
	{name: "trap of a script", argv: []string{"SCRIPT"}, asked: "job shim.test"},
	{name: "trap that saves, and a deaf child", argv: script("bash", `trap "echo TRAINYARD saved step=1; exit 75" `+
		`TERM; echo TRAINYARD step=1; sleep 300; sleep 300`), asked: "bash sleep"},
	{name: "trap that saves by another program", argv: script("bash", `trap "GO saver; exit 75" TERM; `+
		`echo TRAINYARD step=1; while :; do sleep 0.1; done`), asked: "bash"},
	{name: "timeout", argv: []string{"timeout", "1h", "GO", "trainer", "-workers", "2"}, asked: "shim.test"},
	{name: "late", argv: script("bash", `trap : TERM; GO trainer -late 1s`), asked: "bash shim.test"},
	{name: "ranks", argv: []string{"GO", "launcher", "2", "GO", "trainer", "-workers", "2"}, ranks: 2,
		asked: "shim.test shim.test"},
	{name: "ranks in shells", argv: script("sh", `GO launcher 2 sh -c "GO trainer -workers 2; exit 75"; echo went on`),
		ranks: 2, asked: "shim.test shim.test"},
	{name: "ranks, one late", ranks: 2, // where all is slow, the rest is asked before it handles the signal
		argv: []string{"GO", "launcher", "2", "sh", "-c",
			"[ $LOCAL_RANK = 1 ] && late='-late 2s'; exec GO trainer $late"}},
	{name: "stopped", argv: script("sh", "GO trainer -stop 20 & until grep -q '^State:.T' /proc/$!/status; "+
		"do sleep 0.05; done; echo TRAINYARD step=19; wait"), asked: "shim.test"},
	{name: "leader", argv: script("bash", `trap "kill -TERM \$!; wait" TERM; GO trainer -workers 2 & wait`),
		to: "leader", asked: "bash"},
	{name: "no one", argv: script("sh", "trap 'echo TRAINYARD saved step=1; exit 75' USR1; echo TRAINYARD step=1; "+
		"while :; do sleep 0.1; done"), signal: "USR1"},

	{name: "Python", argv: []string{"PY"}, asked: "python3"},
	{name: "Python fork", argv: []string{"PY", "--workers", "fork"}, asked: "python3"},
	{name: "Python spawn", argv: []string{"PY", "--workers", "spawn"}, asked: "python3"},
	{name: "Python forkserver", argv: []string{"PY", "--workers", "forkserver"}, asked: "python3"},
	{name: "Python, signal INT", argv: []string{"PY", "--workers", "fork", "--signal", "INT"}, signal: "INT",
		asked: "python3"},
	{name: "Python sigwait", argv: []string{"PY", "--sigwait"}, asked: "python3"},
	{name: "Python in sh", argv: script("sh", "PY --workers fork; echo went on"), asked: "python3"},
	{name: "Python in bash with a trap", argv: script("bash", "trap 'echo trap ran' TERM; PY --workers fork; wait"),
		asked: "bash python3"},
	{name: "Python behind bash with a trap", asked: "bash python3",
		argv: script("bash", "trap 'echo trap ran' TERM; PY --workers fork & wait; wait")},
	{name: "Python under timeout", argv: []string{"timeout", "1h", "PY", "--workers", "fork"}, asked: "python3"},
	{name: "Python, late", argv: script("bash", `trap : TERM; PY --late 1.5`), asked: "bash python3"},
	{name: "Python ranks", argv: []string{"GO", "launcher", "2", "PY", "--workers", "fork"}, ranks: 2,
		asked: "python3 python3"},
	{name: "Python ranks of spawn", argv: []string{"GO", "launcher", "2", "PY", "--workers", "spawn"}, ranks: 2,
		asked: "python3 python3"},
	{name: "Python that waits for a child with its handler", argv: []string{"PY", "--linger"}, asked: "python3"},

	{name: "torchrun, one rank", argv: []string{"TORCH"}, width: "1", asked: "python3"},
	{name: "torchrun, two ranks", argv: script("sh", "TORCH; echo went on"), width: "2", asked: "python3 python3"},
}

// needs skips the test where the machine lacks Python, or its PyTorch.
func (s *scene) needs(t *testing.T) {
	t.Helper()
	program := "import multiprocessing"
	if s.width != "" {
		program = "import torch.distributed"
	}
	if text := strings.Join(s.argv, " "); strings.Contains(text, "PY") || s.width != "" {
		if out, err := exec.Command(python, "-c", program).CombinedOutput(); err != nil {
			t.Skipf("%s: %v\n%s", program, err, out)
		}
	}
}

// port returns one that is free.
func port(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// fill puts the commands of stand-ins where they are named.
func (s *scene) fill(t *testing.T) (argv []string) {
	t.Helper()
	trainer, err := filepath.Abs("testdata/trainer.py")
	if err != nil {
		t.Fatal(err)
	}
	words := map[string]string{"GO": os.Args[0] + " standin", "PY": python + " " + trainer,
		// its width, and where its ranks meet, it takes from the environment; see run.sh for redirects
		"TORCH": python + " -m torch.distributed.run --redirects=9:0 --tee=9:0 --max_restarts=0 " +
			filepath.Join(filepath.Dir(trainer), "../../../../examples/pytorch/train.py") +
			" --workers 2 --step-time 0.02 --report-every 1"}
	whole := regexp.MustCompile(`\b(GO|PY|TORCH)\b`)
	for _, arg := range s.argv {
		switch {
		case words[arg] != "":
			argv = append(argv, strings.Fields(words[arg])...)
		case arg == "SCRIPT":
			path := filepath.Join(t.TempDir(), "job")
			text := "#!/bin/bash\ntrap 'echo trap ran' TERM\n" + words["GO"] + " trainer -workers 2\n"
			if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // it is run
				t.Fatal(err)
			}
			argv = append(argv, path)
		default:
			argv = append(argv, whole.ReplaceAllStringFunc(arg, func(w string) string { return words[w] }))
		}
	}
	return argv
}

// output waits until the job has written what is wanted.
func (p *process) output(what string, done func(string) bool) {
	p.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		b, err := os.ReadFile(p.dir.Output())
		switch {
		case err == nil && done(string(b)):
			return
		case time.Now().After(deadline):
			p.Fatalf("%s is not written: %s, %v", what, b, err)
		}
	}
}

var (
	stepLine  = regexp.MustCompile(`(?m)^TRAINYARD step=(\d+)(?: rank=(\S*)| total=.*)?$`)
	savedLine = regexp.MustCompile(`(?m)^TRAINYARD saved step=(\d+)(?: rank=(\S*))?$`)
)

// Ensure that whatever a job is made of, who can save is asked, once, and does: each rank saves once and loses one step
// at most; those that could not are not asked while it does; and no script goes on with what comes next.
func TestAskedToSave(t *testing.T) {
	t.Parallel()
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.needs(t)
			o := sh(State(t.TempDir()), "")
			o.Command, o.Grace = s.fill(t), patience/2
			o.Env = []string{"PATH=" + os.Getenv("PATH"), "PYTHONDONTWRITEBYTECODE=1"}
			if s.width != "" {
				o.Env = append(o.Env, "OMP_NUM_THREADS=1", "PET_NPROC_PER_NODE="+s.width, "PET_MASTER_ADDR=127.0.0.1",
					"PET_MASTER_PORT="+port(t), "TRAINYARD_CHECKPOINT_DIR="+t.TempDir())
			}
			o.Save = task.Checkpoint{Signal: s.signal, To: s.to}
			p := begin(t, o)
			p.output("a step of each rank", func(out string) bool {
				ranks := make(map[string]bool)
				for _, m := range stepLine.FindAllStringSubmatch(out, -1) {
					ranks[m[2]] = true
				}
				return len(ranks) >= max(s.ranks, 1)
			})
			if err := p.dial(1).Stop(); err != nil {
				t.Fatal(err)
			}
			over := p.over()
			b, err := os.ReadFile(p.dir.Output())
			if err != nil {
				t.Fatal(err)
			}
			s.check(t, over, string(b))
		})
	}
}

// Ensure that all are asked where the job file says so.
func TestAllAreAsked(t *testing.T) {
	t.Parallel()
	o := sh(State(t.TempDir()), "")
	all := scene{argv: script("sh", "GO trainer -workers 2; echo went on")}
	o.Command, o.Save.To, o.Env = all.fill(t), "all", []string{"PATH=" + os.Getenv("PATH")}
	p := begin(t, o)
	p.output("a step", stepLine.MatchString)
	if err := p.dial(1).Stop(); err != nil {
		t.Fatal(err)
	}
	if over := p.over(); over.AskedCount != 4 || over.Code != 128+15 {
		t.Errorf("%+v, want four asked, and the shell to die", over)
	}
}

// Ensure that no one is asked between fork and exec, when it has the handler of the shell that started it and dies of
// the signal: of shells that start many short programs those are asked that handle it, no program, and nothing dies of
// it.
func TestNoNewbornIsAsked(t *testing.T) {
	t.Parallel()
	const shells = 8
	long := "`head -c 100000 /dev/zero | tr '\\0' x`" // to run a program takes long, as what it is given is copied
	loop := `trap "exit 75" TERM; a=` + long + `; set --` + strings.Repeat(` "$a"`, 12) + `; echo ready; while :; do ` +
		`/bin/true "$@"; n=$?; [ $n = 0 ] || echo died $n; done`
	for _, shell := range []string{"bash", "sh", "sh again", "sh once more"} {
		t.Run(shell, func(t *testing.T) { // one at a time: a newborn is one for mostNewborn, and 48 shells are many
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, busy), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			o := sh(State(dir), "")
			o.Command = script(strings.Fields(shell)[0], fmt.Sprintf(
				`trap "wait; exit 75" TERM; i=0; while [ $i -lt %d ]; do i=$((i+1)); (%s) & done; wait`, shells, loop))
			o.Env, o.Grace = []string{"PATH=" + os.Getenv("PATH")}, patience/2
			p := begin(t, o)
			all := strings.Repeat("ready\n", shells)
			p.output("that all shells are ready", func(out string) bool { return out == all })
			if err := p.dial(1).Stop(); err != nil {
				t.Fatal(err)
			}
			over := p.over()
			b, err := os.ReadFile(p.dir.Output())
			if err != nil || string(b) != all || over.AskedCount != shells+1 || over.Code != saved {
				t.Errorf("wrote %q, %v, %d asked, code %d, want %d shells, none of their programs, and code %d", b, err,
					over.AskedCount, over.Code, shells+1, saved)
			}
		})
	}
}

func (s *scene) check(t *testing.T, over *Over, out string) {
	t.Helper()
	last, kept := make(map[string]int), make(map[string]int)
	for _, m := range stepLine.FindAllStringSubmatch(out, -1) {
		last[m[2]], _ = strconv.Atoi(m[1])
	}
	for _, m := range savedLine.FindAllStringSubmatch(out, -1) {
		if kept[m[2]] != 0 {
			t.Errorf("rank %q saved twice", m[2])
		}
		kept[m[2]], _ = strconv.Atoi(m[1])
	}
	if len(kept) != max(s.ranks, 1) {
		t.Errorf("%d ranks saved, want %d", len(kept), max(s.ranks, 1))
	}
	for rank, step := range last {
		if step > kept[rank]+1 {
			t.Errorf("rank %q saved step %d of %d, want one lost at most", rank, kept[rank], step)
		}
	}
	if strings.Contains(out, "went on") || strings.Contains(out, "died") {
		t.Errorf("a worker died, or the script went on")
	}
	first := over.Asked
	if s.width != "" { // it looks at its ranks each 5 s, so it is asked as well once they have ended
		first = first[:min(len(first), len(strings.Fields(s.asked)))]
	}
	asked := make([]string, len(first))
	for i, r := range first {
		asked[i] = r.Program
	}
	slices.Sort(asked)
	if got := strings.Join(asked, " "); s.asked != "" && got != s.asked {
		t.Errorf("asked %s, want %s", got, s.asked)
	}
	lingers := strings.Contains(s.name, "waits for a child")
	if over.Killed != lingers || lingers == over.Ready.IsZero() {
		t.Errorf("%+v, want it killed %v, once it was ready", over, lingers)
	}
	if t.Failed() {
		t.Logf("%+v\n%s", over, out[max(0, len(out)-2000):])
	}
}
