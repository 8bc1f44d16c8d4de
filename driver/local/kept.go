package local

import (
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/sched"
)

// tick is how far behind the clock a file may be dated: by the kernel's tick.
const tick = 10 * time.Millisecond

// keep notes in the end of an attempt how much of its work outlives it. Whoever has finished has lost nothing. Else
// what was done since the newest checkpoint is lost, by the time since, unless the job says that all is saved: by its
// ready file, if that is newer than the order to end, or by its last words. Its exit code does not say: torchrun makes
// 1 of any. If nothing is known of checkpoints, nothing is said to be lost; the first step of the next attempt will
// show.
func (a *attempt) keep(e *sched.Event, o *shim.Order, over *shim.Over) {
	e.Work, e.Value = a.odo.Work(), float64(a.odo.Steps())
	if e.Outcome == sched.Finished || over == nil || over.Started.IsZero() {
		return
	}
	lost, known := a.lost(o, over)
	switch {
	case !known:
		return
	case lost > 0:
		e.Work = max(e.Work-sched.ScaleDuration(lost, a.odo.Rate()), 0)
		e.Text = also(e.Text, fmt.Sprintf("what it did in its last %v is lost", lost.Round(time.Second/10)))
	default:
		e.Text = also(e.Text, "what it did is saved")
	}
}

func also(text, more string) string {
	if text == "" {
		return more
	}
	return text + "; " + more
}

// lost returns how much of the time of an attempt was for nothing.
func (a *attempt) lost(o *shim.Order, over *shim.Over) (time.Duration, bool) {
	if a.meter != nil && a.meter.ready {
		return 0, true
	}
	end, trusted := over.Ended, over.Ended.Add(time.Hour) // any file is as good as complete
	if over.Stopped && !over.Told.IsZero() {
		end = over.Told
		if o.Save.Ready != "" {
			if a.dir.ReadySince(o.Save.Ready, end) {
				return 0, true
			}
			trusted = end.Add(-tick) // a file made since may be half of a checkpoint
		}
	}
	saved := newest(o.Checkpoint(), trusted)
	if saved.IsZero() && !o.Save.Declared() {
		return 0, false
	}
	if saved.Before(over.Started) {
		saved = over.Started
	}
	return max(end.Sub(saved)-tick, 0), true
}

// maxFiles is how many files of a checkpoint folder are looked at, and how many names of one folder at a time: a job
// may have made millions.
const (
	maxFiles = 10_000
	atATime  = 256
)

// unfinished are the endings of files that are being written.
var unfinished = []string{".tmp", ".new", ".part", ".partial"}

// newest returns when the newest file in a folder was written, of those not after a time; zero if there is none. Hidden
// files and those that are being written, by their names, do not count, nor do links, and what cannot be read.
func newest(folder string, notAfter time.Time) (at time.Time) {
	folders, left := []string{folder}, maxFiles
	for len(folders) > 0 && left > 0 {
		last := len(folders) - 1
		path := folders[last]
		folders = folders[:last]
		for f := range entries(path, &left) {
			switch {
			case strings.HasPrefix(f.Name(), "."):
			case f.IsDir():
				folders = append(folders, filepath.Join(path, f.Name()))
			case f.Type().IsRegular() && !slices.Contains(unfinished, filepath.Ext(f.Name())):
				info, err := f.Info()
				if err == nil && info.ModTime().After(at) && !info.ModTime().After(notAfter) {
					at = info.ModTime()
				}
			}
		}
	}
	return at
}

// entries are what is in a folder, at most left of them, which it counts down. A link to a folder has none.
func entries(path string, left *int) iter.Seq[fs.DirEntry] {
	return func(yield func(fs.DirEntry) bool) {
		f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			return
		}
		defer f.Close()
		for *left > 0 {
			list, err := f.ReadDir(min(atATime, *left))
			for _, entry := range list {
				*left--
				if !yield(entry) {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}
}
