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
	l := a.lost(o, over)
	a.cost = l
	if l.known {
		e.Work = max(e.Work-sched.ScaleDuration(l.time, a.odo.Rate()), 0)
		e.Text = also(e.Text, l.text(over, a.savedStep()))
	}
}

// lastWork says how far an attempt came that was stopped, if that was never reported of it as it ran at its end: so far
// it was guessed from how long it ran, and what it lost by its end e would be too.
func (a *attempt) lastWork(e *sched.Event) (last sched.Event, ok bool) {
	if a.meter == nil || e.Outcome != sched.Preempted || !a.odo.Known() ||
		a.odo.Measured() && !a.meter.reported.IsZero() {
		return sched.Event{}, false
	}
	return a.meter.progressed(0), true
}

// savedStep is how far the job was when it ended, or when it said that it saved, which it may have done further on.
func (a *attempt) savedStep() int64 {
	steps := a.odo.Steps()
	if a.meter != nil && a.meter.savings.saved {
		steps = max(steps, a.meter.savings.last.steps)
	}
	return steps
}

func also(text, more string) string {
	if text == "" {
		return more
	}
	return text + "; " + more
}

// loss is how much of the time of an attempt was for nothing.
type loss struct {
	known bool // else nothing is known of checkpoints
	time  time.Duration
	saved bool      // the attempt saved something
	at    time.Time // and when, last
}

// text says l for people; steps are those done.
func (l loss) text(over *shim.Over, steps int64) string {
	span := length(l.time)
	switch {
	case l.time == 0 && steps > 0:
		return fmt.Sprintf("saved (step %d)", steps)
	case l.time == 0:
		return "saved"
	case l.saved:
		return fmt.Sprintf("last saved %s before: lost %s", span, span)
	case over.Stopped:
		return "asked to save, saved nothing: lost " + span
	}
	return "saved nothing: lost " + span
}

// length says a time for people, in whole units.
func length(d time.Duration) string {
	switch d = d.Round(time.Second / 10); {
	case d < 10*time.Second:
		return fmt.Sprintf("%.2g s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
}

// lost finds out what the end of an attempt cost.
func (a *attempt) lost(o *shim.Order, over *shim.Over) loss {
	if a.meter != nil && a.meter.ready || !over.Ready.IsZero() {
		return loss{known: true, saved: true, at: over.Ended}
	}
	end, trusted := over.Ended, over.Ended.Add(time.Hour) // any file is as good as complete
	if over.Stopped && !over.StopAsked.IsZero() {
		end = over.StopAsked
		if o.Save.Ready != "" {
			if a.dir.ReadySince(o.Save.Ready, end) {
				return loss{known: true, saved: true, at: over.Ended}
			}
			trusted = end.Add(-tick) // a file made since may be half of a checkpoint
		}
	}
	at := newest(o.Checkpoint(), trusted)
	if a.meter != nil && a.meter.savings.said.After(at) {
		at = a.meter.savings.said
	}
	if at.IsZero() && !o.Save.Declared() {
		return loss{}
	}
	saved := !at.Before(over.Started)
	if !saved {
		at = over.Started
	}
	return loss{known: true, time: max(end.Sub(at)-tick, 0), saved: saved, at: at}
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
