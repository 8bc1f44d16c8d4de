package shim

import (
	"slices"
	"syscall"

	"github.com/trainyard/trainyard/driver/local/procs"
)

// rankVariables are those by which a launcher asks a process which rank it is.
var rankVariables = []string{"LOCAL_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_STEP_ID"}

// shells are programs that run a trap of theirs only once the child that they wait for has ended.
var shells = []string{"sh", "dash", "bash", "zsh", "ksh", "ksh93", "mksh", "ash", "busybox"}

// forwarders are programs that pass a signal on to all processes of a process group, whether these can take it or not.
var forwarders = []string{"timeout", "dumb-init"}

// node is a process of an attempt that is to end, in one look, with what was done about it before.
type node struct {
	procs.Member
	seen    int  // number of the first look that found it, from 1
	asked   int  // number of the look after which it got the signal; 0 = it did not
	overdue bool // that was so long ago that it may wait for a child that was not asked
	newborn bool // whether the handler is its own, or its parent's until it runs its program, is not known yet
}

// isShell goes by the program: a script calls itself by its own name.
func (n *node) isShell() bool { return slices.Contains(shells, n.Program) }

// forwards goes by both names: one program may be many.
func (n *node) forwards() bool {
	return slices.Contains(forwarders, n.Program) || slices.Contains(forwarders, n.Name)
}

// shields reports whether no one below n is asked, for n was and lives: it ends those below as it sees fit. A shell
// does not: its trap waits for its child.
func (n *node) shields() bool { return n.asked > 0 && !n.isShell() }

// family is a look at an attempt's processes, as a forest.
type family struct {
	list  []node
	at    map[int]int   // index by pid
	below map[int][]int // indices of children by pid
	roots []int         // their parents are none of the attempt
}

// newFamily leaves out whom a shell started after it had been asked, with all below them: its trap saves by them.
func newFamily(list []node) *family {
	f := &family{list: list, at: make(map[int]int), below: make(map[int][]int)}
	for i := range list {
		f.at[list[i].PID] = i
	}
	for i := range list {
		parent, ok := f.at[list[i].Parent]
		switch {
		case !ok:
			f.roots = append(f.roots, i)
		case f.list[parent].asked == 0 || list[i].seen <= f.list[parent].asked || !f.list[parent].isShell():
			f.below[list[parent].PID] = append(f.below[list[parent].PID], i)
		}
	}
	return f
}

// audience returns the indices of the processes that are to get the signal now, by a word of task.Recipients but "all".
// main is the pid of the process that was started. No one gets it twice.
//
// By "top" these are the topmost processes that handle it at or below each innermost rank, or, if no rank has any, from
// the first process on. Programs that would pass it on to all count only if no one else handles it. If no one does, all
// get it.
func audience(to string, main int, list []node) []int {
	f := newFamily(list)
	some := slices.ContainsFunc(list, func(n node) bool { return n.asked > 0 })
	switch i, lives := f.at[main]; {
	case to == "leader" && some:
		return nil
	case to == "leader" && lives:
		return []int{i}
	}
	for _, top := range []struct {
		from     []int
		forwards bool
	}{{f.ranks(), false}, {f.roots, false}, {f.roots, true}} {
		if ask, found := f.handlers(top.from, top.forwards); found {
			return ask
		}
	}
	return f.unasked(f.roots)
}

// ranks returns the innermost ranks: the processes that were given a variable of a rank that their parents were not,
// with none such below them.
func (f *family) ranks() (inner []int) {
	outer := make(map[int]bool)
	var all []int
	f.walk(f.roots, func(i int) bool {
		if f.rank(i) == "" {
			return true
		}
		all = append(all, i)
		for parent, ok := f.at[f.list[i].Parent]; ok; parent, ok = f.at[f.list[parent].Parent] {
			outer[parent] = true
		}
		return true
	})
	return slices.DeleteFunc(all, func(i int) bool { return outer[i] })
}

// rank returns which rank a process is, "" if it is none.
func (f *family) rank(i int) string {
	var given map[string]string
	if parent, ok := f.at[f.list[i].Parent]; ok {
		given = f.list[parent].Env
	}
	for _, name := range rankVariables {
		value, own := f.list[i].Env[name]
		if _, inherited := given[name]; own && !inherited {
			return value
		}
	}
	return ""
}

// walk calls visit for each process from some on downwards, and goes on below those for which it returns true.
func (f *family) walk(from []int, visit func(i int) bool) {
	for _, i := range from {
		if visit(i) {
			f.walk(f.below[f.list[i].PID], visit)
		}
	}
}

// unasked returns who was not asked, from some on downwards.
func (f *family) unasked(from []int) (list []int) {
	f.walk(from, func(i int) bool {
		if f.list[i].asked == 0 {
			list = append(list, i)
		}
		return true
	})
	return list
}

// handlers returns the topmost processes that handle the signal from some on downwards and that were not asked, and
// whether there are any, asked ones included. forwards: those that pass it on to all count as well.
func (f *family) handlers(from []int, forwards bool) (ask []int, found bool) {
	for _, i := range from {
		if f.shielded(i) {
			found = true
			continue
		}
		more, any := f.topmost(i, forwards)
		ask, found = append(ask, more...), found || any
	}
	return ask, found
}

// shielded reports whether a process above i was asked and lives.
func (f *family) shielded(i int) bool {
	for parent, ok := f.at[f.list[i].Parent]; ok; parent, ok = f.at[f.list[parent].Parent] {
		if f.list[parent].shields() {
			return true
		}
	}
	return false
}

// topmost is handlers from one process on. A shell that was asked long ago may wait for a child that handles nothing:
// then all below it are asked. A newborn process counts, but is not asked yet.
func (f *family) topmost(i int, forwards bool) (ask []int, found bool) {
	n := &f.list[i]
	if n.newborn {
		return nil, true
	}
	handles := n.Handles && (forwards || !n.forwards())
	if found = handles || n.asked > 0; handles && n.asked == 0 {
		ask = append(ask, i)
	}
	if found && !n.isShell() {
		return ask, true
	}
	below := f.below[n.PID]
	deeper := false
	for _, k := range below {
		more, any := f.topmost(k, forwards)
		ask, deeper = append(ask, more...), deeper || any
	}
	if n.overdue && !deeper {
		ask = append(ask, f.unasked(below)...)
	}
	return ask, found || deeper
}

// direct returns those but tasks of srun and who is in their process groups: it passes a signal on to them.
func (f *family) direct() (list []int) {
	for i := range f.list {
		pid := f.list[i].PID
		leader, _ := syscall.Getpgid(pid) // of one that has ended it is an error, and 0
		if !f.task(pid) && !f.task(leader) {
			list = append(list, i)
		}
	}
	return list
}

// task reports whether a process is started by srun.
func (f *family) task(pid int) bool {
	i, lives := f.at[pid]
	if !lives || f.list[i].Env["SLURM_STEP_ID"] == "" { // a shell that became srun had children before
		return false
	}
	parent, lives := f.at[f.list[i].Parent]
	return lives && f.list[parent].Name == "srun"
}

// waiting returns the shells that were not asked and stand, below none but their like, above someone who was: once
// their child has ended they would go on with what comes next in the script.
func (f *family) waiting() (list []int) {
	above := make(map[int]bool)
	for i := range f.list {
		if f.list[i].asked > 0 {
			for parent, ok := f.at[f.list[i].Parent]; ok; parent, ok = f.at[f.list[parent].Parent] {
				above[parent] = true
			}
		}
	}
	f.walk(f.roots, func(i int) bool {
		n := &f.list[i]
		if n.asked > 0 || !n.isShell() {
			return false
		}
		if above[i] {
			list = append(list, i)
		}
		return true
	})
	return list
}

// Recipient is a process that got the signal to end, or was killed.
type Recipient struct {
	Program string `json:"program"` // what it calls itself
	PID     int    `json:"pid"`
	Rank    string `json:"rank,omitempty"` // "" = it is none and below none
}

// recipient describes a process for the record.
func (f *family) recipient(i int) Recipient {
	r := Recipient{Program: printable(f.list[i].Name), PID: f.list[i].PID}
	for ok := true; ok && r.Rank == ""; i, ok = f.at[f.list[i].Parent] {
		r.Rank = printable(f.rank(i))
	}
	return r
}

// mostText is how many bytes are kept of what a job may choose.
const mostText = 16

// printable keeps hostile names out of records and terminals.
func printable(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c <= ' ' || c > '~' {
			b[i] = '?'
		}
	}
	return string(b[:min(len(b), mostText)])
}
