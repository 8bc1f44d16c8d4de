package crashtest

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// traced are the system calls that are recorded: all that change files or names, make them durable, or say who did.
const traced = "open,openat,openat2,creat,dup2,dup3,write,pwrite64,writev,pwritev,pwritev2,truncate,ftruncate," +
	"fallocate,rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,mkdir,mkdirat,rmdir,fsync," +
	"fdatasync,sync,syncfs,sync_file_range,copy_file_range,sendfile,splice,clone,clone3,execve"

// straced is the command line that records what a command and all it starts do.
func straced(file string, command ...string) []string {
	return append([]string{"strace", "-f", "-q", "-y", "-ttt", "--seccomp-bpf", "-xx", "-s", "33554432", "-e",
		"signal=none", "-e", "trace=" + traced, "-o", file}, command...)
}

// call is a system call. Lines of the record are in the order in which things happened.
type call struct {
	pid         int // of the thread
	name        string
	args        []string
	result      string
	first, last int   // lines at which it was entered and left
	at          int64 // when it was left, µs since 1970
}

// readCalls reads what strace recorded, in the order in which calls were left. An end of a thread is a call of its own,
// "exited", whose result is its code. A call in which its thread was killed is left then, and has the result "?".
func readCalls(path string) (calls []call, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	open := make(map[int]call) // entered, by thread
	texts := make(map[int]string)
	r := bufio.NewScanner(f)
	r.Buffer(nil, 256<<20)
	for n := 0; r.Scan(); n++ {
		number, rest, _ := strings.Cut(strings.TrimLeft(r.Text(), " "), " ")
		moment, text, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
		pid, bad := strconv.Atoi(number)
		at, failed := strconv.ParseInt(strings.Replace(moment, ".", "", 1), 10, 64)
		if bad != nil || failed != nil {
			return nil, fmt.Errorf("%s:%d: %.200q", path, n+1, r.Text())
		}
		text = strings.TrimLeft(text, " ")
		c := call{pid: pid, first: n}
		switch begun, unfinished := strings.CutSuffix(text, " <unfinished ...>"); {
		case strings.HasPrefix(text, "+++ exited with "):
			c.name, c.result = "exited", strings.Fields(text)[3]
			text = ""
		case strings.HasPrefix(text, "+++"):
			if _, inside := open[pid]; !inside {
				continue
			}
			c, text = open[pid], texts[pid]+") = ?"
			delete(open, pid)
		case unfinished:
			open[pid], texts[pid] = c, begun
			continue
		case strings.HasPrefix(text, "<... "):
			_, left, _ := strings.Cut(text, " resumed>")
			c, text = open[pid], texts[pid]+left
			delete(open, pid)
		}
		c.last, c.at = n, at
		if text != "" && !strings.Contains(text, " = ") {
			text += ") = ?"
		}
		if text != "" && !c.parse(text) {
			return nil, fmt.Errorf("%s:%d: cannot read %.200q...%q", path, n+1, text, text[max(0, len(text)-80):])
		}
		calls = append(calls, c)
	}
	return calls, r.Err()
}

// parse reads "name(arguments) = result".
func (c *call) parse(text string) bool {
	name, rest, found := strings.Cut(text, "(")
	end := strings.LastIndex(rest, " = ")
	if !found || end < 0 {
		return false
	}
	c.name, c.result = name, rest[end+len(" = "):]
	c.args = splitArguments(strings.TrimRight(strings.TrimRight(rest[:end], " "), ")"))
	return true
}

// splitArguments splits at commas outside of all brackets and quotes. Within quotes all is in hexadecimal.
func splitArguments(text string) (args []string) {
	depth, from := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '[', '{', '(':
			depth++
		case ']', '}', ')':
			depth--
		case ',':
			if depth == 0 {
				args = append(args, strings.TrimSpace(text[from:i]))
				from = i + 1
			}
		}
	}
	return append(args, strings.TrimSpace(text[from:]))
}

func unhex(text string) string {
	b, err := hex.DecodeString(strings.ReplaceAll(text, `\x`, ""))
	if err != nil {
		return text
	}
	return string(b)
}

// text is argument i, which is a string.
func (c *call) text(i int) string {
	if i >= len(c.args) {
		return ""
	}
	_, rest, _ := strings.Cut(c.args[i], `"`)
	text, _, _ := strings.Cut(rest, `"`)
	return unhex(text)
}

// bytes are what argument i is about, a string or a list of buffers.
func (c *call) bytes(i int) []byte {
	var b []byte
	for k, part := range strings.Split(c.args[i], `"`) {
		if k%2 == 1 {
			b = append(b, unhex(part)...)
		}
	}
	return b
}

// descriptor reads "number<path>"; "" where the file has no name any more.
func descriptor(text string) (fd int, path string) {
	number, rest, found := strings.Cut(text, "<")
	fd, err := strconv.Atoi(number)
	end := strings.LastIndex(rest, ">")
	switch {
	case number == "AT_FDCWD":
		fd = -1
	case err != nil:
		return -1, ""
	}
	if !found || end < 0 || strings.HasSuffix(text, "(deleted)") {
		return fd, ""
	}
	return fd, unhex(rest[:end])
}

// file is the path of argument i, a descriptor.
func (c *call) file(i int) string {
	_, path := descriptor(c.args[i])
	return path
}

func (c *call) number(i int) int64 {
	n, _ := strconv.ParseInt(c.args[i], 0, 64)
	return n
}

func (c *call) failed() bool { return strings.HasPrefix(c.result, "-1") && !c.doubtful() }

// doubtful says that no result is known, and what the call is for may be done or not: the thread was killed in it.
// Where that falls together with its return, what is read as an error is a number that no error has.
func (c *call) doubtful() bool {
	return strings.HasPrefix(c.result, "?") || strings.HasPrefix(c.result, "-1 (errno ")
}

// effect is what a call did to a folder that is watched. Paths are relative to that.
type effect struct {
	kind        effectKind
	path, other string // other: the new name, or that of a folder that is made
	at          int64  // where bytes went; -1 = to the end
	data        []byte
	size        int64 // of the file; of what is written, also where a thread that was killed left no bytes to read
	first, last int
	when        int64 // µs since 1970
	maybe       bool  // it is not known if it was done
}

type effectKind int

const (
	makesFile effectKind = iota
	makesFolder
	writes
	resizes
	grows // to size at least
	renames
	removes
	syncs
)

// run is an attempt as the kernel saw it.
type run struct {
	attempt
	began int64 // when its command was started, µs since 1970
	over  int64 // when its shim had ended well; 0 = it did not
}

// watcher turns calls into effects on a folder.
type watcher struct {
	base    string            // of paths
	only    string            // what of it is watched
	leaders map[int]int       // of threads
	folders map[[2]int]string // open ones, by process and descriptor
	shims   map[int]attempt
	jobs    map[int]attempt // processes that are about to become those of a job
	runs    map[attempt]*run
	effects []effect
	copied  []copied
	unknown []string // calls that it cannot make sense of
}

// copied says that the files of the log, of which no daemon had any open, were copied to a folder.
type copied struct {
	dir  string
	line int // at which that had started
}

// watch reads what calls did to the folder called only in base, and which attempts ran.
func watch(calls []call, base, only string) *watcher {
	w := &watcher{base: base, only: only, leaders: make(map[int]int), folders: make(map[[2]int]string),
		shims: make(map[int]attempt), jobs: make(map[int]attempt), runs: make(map[attempt]*run)}
	for i := range calls {
		if c := &calls[i]; strings.HasPrefix(c.name, "clone") && strings.Contains(c.args[0]+
			strings.Join(c.args, " "), "CLONE_THREAD") {
			if child, err := strconv.Atoi(c.result); err == nil {
				w.leaders[child] = c.pid
			}
		}
	}
	for i := range calls {
		switch c := &calls[i]; {
		case c.failed():
		case c.doubtful():
			w.takeMaybe(c)
		default:
			w.take(c)
		}
	}
	return w
}

func (w *watcher) leader(pid int) int {
	for {
		up, is := w.leaders[pid]
		if !is {
			return pid
		}
		pid = up
	}
}

// relative returns a path as effects have it; "" = it is not watched.
func (w *watcher) relative(c *call, folder, path string) string {
	if rest, is := strings.CutPrefix(path, "/proc/self/fd/"); is {
		number, name, _ := strings.Cut(rest, "/")
		fd, _ := strconv.Atoi(number)
		folder, path = w.folders[[2]int{w.leader(c.pid), fd}], name
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(folder, path)
	}
	rel, err := filepath.Rel(w.base, path)
	inside := err == nil && (rel == w.only || strings.HasPrefix(rel, w.only+"/") || rel == ".")
	if !inside || strings.HasSuffix(rel, "-shm") {
		return ""
	}
	return rel
}

// take takes a call that succeeded.
func (w *watcher) take(c *call) {
	switch c.name {
	case "exited":
		if a, is := w.shims[c.pid]; is && c.result == "0" && w.runs[a] != nil {
			w.runs[a].over = c.at
		}
	case "execve":
		w.executes(c)
	case "dup2", "dup3":
		if _, path := descriptor(c.args[0]); filepath.Base(path) == "output.log" {
			if a, is := attemptIn(filepath.Dir(path)); is {
				w.jobs[c.pid] = a
			}
		}
	case "open", "openat", "openat2", "creat":
		w.opens(c)
	case "clone", "clone3":
	default:
		w.changes(c)
	}
}

// takeMaybe takes a call of which it is not known if it was done.
func (w *watcher) takeMaybe(c *call) {
	switch c.name {
	case "execve", "dup2", "dup3", "clone", "clone3":
	case "open", "creat":
		w.makes(c, w.named(c, false, 0))
	case "openat", "openat2":
		w.makes(c, w.named(c, true, 0))
	default:
		w.changes(c)
	}
}

// attemptIn reads a run directory.
func attemptIn(dir string) (a attempt, is bool) {
	var err error
	if a.number, err = strconv.Atoi(filepath.Base(dir)); err != nil {
		return a, false
	}
	a.job, err = strconv.Atoi(filepath.Base(filepath.Dir(dir)))
	return a, err == nil
}

// executes: a shim is called with its run directory; a command of a job writes to its output.
func (w *watcher) executes(c *call) {
	if a, is := w.jobs[c.pid]; is {
		if w.runs[a] == nil {
			w.runs[a] = &run{attempt: a, began: c.at}
		}
		return
	}
	args := strings.Split(c.args[1], `"`)
	if len(args) < 6 || unhex(args[3]) != "shim" {
		return
	}
	if a, is := attemptIn(unhex(args[5])); is {
		w.shims[c.pid] = a
	}
}

func (w *watcher) opens(c *call) {
	fd, path := descriptor(c.result)
	flags := strings.Join(c.args, " ")
	if strings.Contains(flags, "O_DIRECTORY") || !strings.Contains(flags, "O_CREAT") {
		w.folders[[2]int{w.leader(c.pid), fd}] = path
	}
	w.makes(c, w.relative(c, "", path))
}

// makes: to open a file may make or empty it.
func (w *watcher) makes(c *call, path string) {
	if path == "" || path == "." {
		return
	}
	flags := strings.Join(c.args, " ")
	if strings.Contains(flags, "O_CREAT") {
		w.add(c, effect{kind: makesFile, path: path})
	}
	if strings.Contains(flags, "O_TRUNC") {
		w.add(c, effect{kind: resizes, path: path})
	}
}

func (w *watcher) add(c *call, e effect) {
	e.first, e.last, e.when, e.maybe = c.first, c.last, c.at, e.maybe || c.doubtful()
	w.effects = append(w.effects, e)
}

// named returns the path of a call that takes one, or two from argument i on: a folder and a name if it ends in at.
func (w *watcher) named(c *call, at bool, i int) string {
	if !at {
		return w.relative(c, "", c.text(i))
	}
	return w.relative(c, c.file(i), c.text(i+1))
}

// changes takes calls that change files and names.
func (w *watcher) changes(c *call) {
	at := strings.Contains(c.name, "at") && c.name != "truncate" && c.name != "fdatasync" && c.name != "ftruncate" &&
		c.name != "fallocate"
	switch c.name {
	case "mkdir", "mkdirat":
		if path := w.named(c, at, 0); path != "" {
			w.add(c, effect{kind: makesFolder, path: path})
		} else if strings.HasPrefix(filepath.Base(c.text(0)), copies) {
			w.copied = append(w.copied, copied{filepath.Join(w.base, filepath.Base(c.text(0))), c.last})
		}
	case "unlink", "unlinkat", "rmdir":
		if path := w.named(c, at, 0); path != "" {
			w.add(c, effect{kind: removes, path: path})
		}
	case "rename", "renameat", "renameat2":
		from, to := w.named(c, at, 0), w.named(c, at, map[bool]int{true: 2, false: 1}[at])
		if from != "" && to != "" {
			w.add(c, effect{kind: renames, path: from, other: to})
		} else if from+to != "" {
			w.strange(c)
		}
	case "link", "linkat", "symlink", "symlinkat":
		if slices.ContainsFunc(c.args, func(a string) bool { return strings.Contains(unhex(a), w.base) }) {
			w.strange(c)
		}
	default:
		w.fills(c)
	}
}

// fills takes calls that change files that are open.
func (w *watcher) fills(c *call) {
	path, into := "", 0
	if c.name == "copy_file_range" || c.name == "splice" {
		into = 2
	}
	if len(c.args) > into {
		path = w.relative(c, "", c.file(into))
	}
	if c.name == "sync" || c.name == "syncfs" || c.name == "sync_file_range" || c.name == "truncate" {
		w.strange(c)
	}
	if path == "" {
		return
	}
	switch c.name {
	case "write", "writev", "pwrite64":
		e := effect{kind: writes, path: path, at: -1, data: c.bytes(1)}
		e.size = int64(len(e.data))
		if c.name == "pwrite64" {
			e.at, e.size = c.number(3), c.number(2)
		}
		e.maybe = c.result != strconv.FormatInt(e.size, 10) // no file takes a part alone while the disk has room
		w.add(c, e)
	case "ftruncate":
		w.add(c, effect{kind: resizes, path: path, size: c.number(1)})
	case "fallocate":
		if c.args[1] == "0" {
			w.add(c, effect{kind: grows, path: path, size: c.number(2) + c.number(3)})
		} else if strings.Contains(c.args[1], "PUNCH") {
			w.strange(c)
		}
	case "fsync", "fdatasync":
		w.add(c, effect{kind: syncs, path: path})
	default:
		w.strange(c)
	}
}

func (w *watcher) strange(c *call) {
	w.unknown = append(w.unknown, fmt.Sprintf("%s(%.200s)", c.name, strings.Join(c.args, ", ")))
}
