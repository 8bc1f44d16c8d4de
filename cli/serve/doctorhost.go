package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/driver/local/procs"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/manager/store"
)

// database is the file that a state folder is known by.
const database = "trainyard.db"

// folder says whether the state folder is one, and ours alone.
func (p *patient) folder() []finding {
	const name = "state"
	info, err := os.Stat(p.dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return []finding{{name, fine, p.dir + " is not there yet", ""}}
	case err != nil:
		return []finding{{name, wrong, term.OneLine(err.Error()), "give --state a folder of yours"}}
	case !info.IsDir():
		return []finding{{name, wrong, p.dir + " is no folder", "move it away, or give --state another name"}}
	}
	var all []finding
	if owner := info.Sys().(*unixStat).Uid; int(owner) != os.Geteuid() {
		all = append(all, finding{name, note, fmt.Sprintf("%s belongs to user %d, not to you (%d)", p.dir, owner,
			os.Geteuid()), "ask as its owner for the rest to be checked"})
	}
	if mode := info.Mode().Perm(); mode&0o067 != 0 { // a group may pass, see serve --group
		all = append(all, finding{name, wrong, fmt.Sprintf("%s has mode %03o: others see or change what is in it",
			p.dir, mode), "chmod 700 " + p.dir})
	}
	all = append(all, p.log()...)
	for _, f := range []string{"epoch", "devices.json"} {
		path := filepath.Join(p.dir, f+shim.Unreadable)
		if _, err := os.Lstat(path); err == nil {
			all = append(all, finding{name, note, f + " could not be read, was quarantined and made again",
				"look at " + term.ShellWord(path) + ", and remove it"})
		}
	}
	if len(all) == 0 {
		all = append(all, finding{name, fine, p.dir, ""})
	}
	return all
}

// log says whether the folder has the log of a manager, as far as its first bytes show.
func (p *patient) log() []finding {
	files, err := os.ReadDir(p.dir)
	if err != nil {
		return []finding{{"state", wrong, term.OneLine(err.Error()), "chmod 700 " + p.dir}}
	}
	path := filepath.Join(p.dir, database)
	f, err := os.Open(path)
	switch {
	case errors.Is(err, os.ErrNotExist) && len(files) == 0:
		return nil
	case errors.Is(err, os.ErrNotExist):
		return []finding{{"state", wrong, p.dir + " holds something, but no log of a manager",
			"put " + database + " back from a backup, or give --state another folder"}}
	case err != nil:
		return []finding{{"state", wrong, term.OneLine(err.Error()), "chmod 600 " + path}}
	}
	defer f.Close()
	const magic = "SQLite format 3\x00" // of every SQLite file, see its file format, section 1.3.1
	b := make([]byte, len(magic))
	if _, err := f.Read(b); err != nil || string(b) != magic {
		return []finding{{"state", wrong, path + " is no database",
			"put it back from a backup; the old one is kept as it is"}}
	}
	return p.unserved()
}

// unserved says what is wrong with a log that no manager serves: that it is of a later version than this program knows,
// or cannot be read.
func (p *patient) unserved() []finding {
	if p.info != nil {
		return nil
	}
	log, err := store.Read(p.dir)
	if err == nil {
		defer log.Close()
		_, err = eventlog.NewReader(log, filepath.Join(p.dir, database))
	}
	if err == nil {
		_, err = io.Copy(io.Discard, log) // each event has a checksum
	}
	switch {
	case err == nil, errors.Is(err, fs.ErrPermission), errors.Is(err, store.ErrOlder), errors.Is(err, store.ErrUnread):
		return nil
	case errors.Is(err, eventlog.ErrNewer):
		return []finding{{"state", wrong, term.OneLine(err.Error()),
			"use the newer Trainyard, or start in another folder"}}
	}
	return []finding{{"state", wrong, term.OneLine(err.Error()),
		"start serve, which goes on if it can do without; else `trainyard doctor --repair`, or go on from a backup"}}
}

// disk says how much space is left for log, output and checkpoints.
func (p *patient) disk() []finding {
	dir := p.dir
	for {
		var s unix.Statfs_t
		err := unix.Statfs(dir, &s)
		if err == nil {
			block := float64(s.Bsize)
			return diskFinding(dir, float64(s.Bavail)*block, float64(s.Blocks)*block, s.Files > 0 && s.Ffree < 1000)
		}
		up := filepath.Dir(dir)
		if !errors.Is(err, unix.ENOENT) || up == dir {
			return []finding{{"disk", wrong, dir + ": " + err.Error(), "give --state a folder of yours"}}
		}
		dir = up
	}
}

// Less than tooLittle bytes is what the log alone needs soon, less than little a checkpoint may take.
const (
	tooLittle = 100 << 20
	little    = 5 << 30
)

func diskFinding(dir string, free, all float64, noInodes bool) []finding {
	const gib = 1 << 30
	f := finding{"disk", fine, fmt.Sprintf("%.1f of %.0f GiB are free at %s", free/gib, all/gib, dir), ""}
	switch {
	case noInodes:
		f.State, f.Found, f.Do = wrong, "almost no file more fits on the disk of "+dir,
			"delete files, or move the folder"
	case free < tooLittle:
		f.State, f.Do = wrong, "delete output and checkpoints of jobs that are done (jobs/N in the folder), or move "+
			"the folder"
	case free < little:
		f.State, f.Do = note, "checkpoints may not fit"
	}
	return []finding{f}
}

// driver says which GPUs are found, and whether there are some that are not.
func (p *patient) driver(ctx context.Context) []finding {
	const name = "driver"
	ctx, stop := context.WithTimeout(ctx, answerWithin)
	defer stop()
	_, noDriver := os.Stat("/proc/driver/nvidia/version")
	path, err := exec.LookPath("nvidia-smi")
	switch {
	case err != nil && noDriver == nil:
		return []finding{{name, wrong, "the NVIDIA driver is there, nvidia-smi is not on the PATH: GPUs are not found",
			"install nvidia-utils, or add its folder to PATH"}}
	case err != nil:
		return []finding{{name, fine, "no NVIDIA driver: jobs hold CPU slots", ""}}
	}
	list, err := (&device.SMI{Command: path}).List(ctx)
	switch {
	case err != nil:
		return []finding{{name, wrong, term.OneLine(err.Error()),
			"run nvidia-smi by hand; after an update of the driver the machine wants a restart"}}
	case len(list) == 0:
		return []finding{{name, wrong, "nvidia-smi finds no GPU", "run nvidia-smi by hand; look for NVRM in dmesg"}}
	}
	return []finding{{name, fine, fmt.Sprintf("%s, %s", term.Counted(len(list), "GPU"),
		strings.Join(device.Types(list), ", ")), ""}}
}

// cgroups says how the processes of a job are kept together.
func (p *patient) cgroups() []finding { return cgroupFinding(procs.Root()) }

func cgroupFinding(root string) []finding {
	if root != "" {
		return []finding{{"cgroup", fine, "each job gets a group below " + root, ""}}
	}
	return []finding{{"cgroup", note, "no cgroup v2 may be made here: processes of a job are known by their " +
		"environment, and found by looking",
		"start serve by `systemd-run --user --scope -p Delegate=yes trainyard serve`"}}
}

// program says whether jobs can be started: the shim of each is this program.
func (p *patient) program() []finding {
	file, err := os.Readlink("/proc/self/exe")
	if err == nil {
		err = exec.Command("/proc/self/exe", "version").Run()
	}
	if err != nil {
		return []finding{{"shim", wrong, "this program cannot be started again: " + term.OneLine(err.Error()),
			"mount /proc, and put the program where it may be executed"}}
	}
	return []finding{{"shim", fine, file, ""}}
}

// clock says whether the clock is good enough for times of jobs.
func (p *patient) clock() []finding {
	var latest time.Time
	for _, name := range []string{database, database + "-wal"} {
		if info, err := os.Stat(filepath.Join(p.dir, name)); err == nil && info.ModTime().After(latest) {
			latest = info.ModTime()
		}
	}
	return clockFinding(time.Now(), latest, steered())
}

// late is by how much the clock may be behind what was written before.
const late = time.Minute

func clockFinding(now, written time.Time, steered bool) []finding {
	f := finding{"clock", fine, now.Format(time.RFC3339), ""}
	switch {
	case written.Sub(now) > late:
		f.State, f.Found = wrong, fmt.Sprintf("%s, but the log was written to at %s", f.Found,
			written.Format(time.RFC3339))
		f.Do = "set the clock: until it is past that, times of jobs stand still"
	case !steered:
		f.State, f.Found, f.Do = note, f.Found+", steered by no time server", "timedatectl set-ntp true"
	}
	return []finding{f}
}
