package notify

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/sched"
)

// FileName is the file in the state folder with the notices that are not sent yet.
const FileName = "notices.json"

// letter is a notice in one way.
type letter struct {
	About Notice      `json:"about"`
	To    task.Notify `json:"to,omitzero"` // zero: the host's program
	Dir   string      `json:"dir,omitempty"`
	Key   string      `json:"key"` // those of one are sent one after the other
	Due   time.Time   `json:"due"`
	Begun bool        `json:"begun,omitempty"` // it is being sent: after a crash no one knows whether it was

	Attempt int32         `json:"attempt,omitempty"` // that it is about
	Ran     time.Duration `json:"ran_ns,omitempty"`  // for how long the job had run
}

func keyOf(id sched.JobID) string { return strconv.Itoa(int(id)) }

// idOf names a notice: the same event in the same way has the same name.
func idOf(h *heard, word string, way int) string {
	return fmt.Sprintf("%d.%d-%s-%d", h.about.Job, h.attempt, word, way)
}

// contents of the file.
type contents struct {
	Schema  string               `json:"schema"` // trainyard.notices/v1
	Through sched.Time           `json:"through_ns"`
	Letters []letter             `json:"letters,omitempty"`
	Last    map[string]time.Time `json:"last,omitempty"` // when a letter of a key was sent last
	Tried   []tried              `json:"tried,omitempty"`
	Idle    map[string]int32     `json:"idle,omitempty"` // the attempt of a job of which it was said last, by name
}

const boxSchema = "trainyard.notices/v1"

// box holds the notices that are not sent yet, in order. It is used by one goroutine, but for since.
type box struct {
	dir string
	log *slog.Logger

	mu    sync.Mutex // of has.Through and known
	known bool       // an earlier one kept this
	has   contents

	changed bool
	failed  bool // to be saved, which users heard of
}

// load reads what an earlier one has kept. Its clock may have been ahead.
func (b *box) load(dir string, log *slog.Logger, now time.Time) {
	b.dir, b.log = dir, log
	b.has = contents{Schema: boxSchema, Last: make(map[string]time.Time), Idle: make(map[string]int32)}
	if dir == "" {
		return
	}
	text, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		return
	}
	var was contents
	if err = json.Unmarshal(text, &was); err != nil || was.Schema != boxSchema {
		log.Warn("notices that were not sent yet cannot be read", "file", FileName, "error", err)
		return
	}
	b.known, b.has.Through, b.has.Letters, b.has.Tried = true, was.Through, was.Letters, was.Tried
	maps.Copy(b.has.Last, was.Last)
	maps.DeleteFunc(b.has.Last, func(_ string, at time.Time) bool { return at.After(now) })
	maps.Copy(b.has.Idle, was.Idle)
	for i := range b.has.Letters {
		l := &b.has.Letters[i]
		l.About.Again, l.Begun = l.About.Again || l.Begun, false
		if most := now.Add(rest); l.Due.After(most) {
			l.Due = most
		}
	}
}

// dropHost drops the notices of the host's program, which there is no more.
func (b *box) dropHost() {
	all := len(b.has.Letters)
	b.has.Letters = slices.DeleteFunc(b.has.Letters, func(l letter) bool { return l.Key == hostKey })
	if dropped := all - len(b.has.Letters); dropped > 0 {
		b.changed = true
		b.log.Warn("notices that waited for the program of --notify are dropped: there is none now", "dropped", dropped)
	}
}

// since returns up to when events are in the box.
func (b *box) since() (sched.Time, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.has.Through, b.known
}

// note remembers that events up to a time are in the box.
func (b *box) note(at sched.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changed = b.changed || !b.known || at > b.has.Through
	b.known, b.has.Through = true, max(b.has.Through, at)
}

// add puts a letter into the box. One of its key that waits gives way, and is counted in it.
func (b *box) add(l letter, now time.Time) {
	if b.twice(&l) {
		return
	}
	b.changed = true
	l.Due = now
	if l.Key != hostKey {
		l.Due = later(now, b.has.Last[l.Key].Add(rest))
		for i := range b.has.Letters {
			if old := &b.has.Letters[i]; old.Key == l.Key && !old.Begun {
				l.Due, l.About.Again = later(l.Due, old.Due), old.About.Again
				l.About.Also = maps.Clone(old.About.Also)
				if l.About.Also == nil {
					l.About.Also = make(map[string]int)
				}
				l.About.Also[old.About.Outcome]++
				*old = l
				return
			}
		}
	}
	if !b.room(&l) {
		b.log.Warn("too many notices wait: one is dropped", "job", l.About.Job, "outcome", l.About.Outcome)
		return
	}
	b.has.Letters = append(b.has.Letters, l)
}

// room reports whether one more may wait. Those of the host's program and of users do not count for each other.
func (b *box) room(l *letter) bool {
	all, own := 0, 0
	for i := range b.has.Letters {
		if o := &b.has.Letters[i]; (o.Key == hostKey) == (l.Key == hostKey) {
			all++
			if o.About.User == l.About.User {
				own++
			}
		}
	}
	return all < mostWait && (l.Key == hostKey || own < userWait)
}

// twice reports whether a letter is in the box.
func (b *box) twice(l *letter) bool {
	same := func(o letter) bool { return o.About.ID == l.About.ID }
	return l.About.ID != "" && slices.ContainsFunc(b.has.Letters, same)
}

// idleAgain notes that an attempt is idle, and reports whether that was known; the end of it has it forgotten.
func (b *box) idleAgain(h *heard) bool {
	job := keyOf(sched.JobID(h.about.Job))
	if h.key == "" { // it is about no job
		return false
	}
	if !slices.Contains(h.words, task.OnIdle) {
		delete(b.has.Idle, job)
		return false
	}
	was := b.has.Idle[job]
	b.has.Idle[job] = h.attempt
	b.changed = b.changed || was != h.attempt
	return was == h.attempt
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// underway are the letters that are being sent.
type underway struct {
	keys map[string]bool
	all  int            // those to users
	own  map[string]int // of a user
}

func (u *underway) add(l *letter) {
	if u.keys[l.Key] = true; l.Key != hostKey {
		u.all++
		u.own[l.About.User]++
	}
}

// holds reports whether a letter is to wait for them.
func (u *underway) holds(l *letter) bool {
	return u.keys[l.Key] || l.Key != hostKey && (u.all >= mostAtOnce || u.own[l.About.User] >= userAtOnce)
}

// due returns the letters to be sent now, and notes that they are.
func (b *box) due(now time.Time) (list []letter) {
	u := underway{keys: make(map[string]bool), own: make(map[string]int)}
	for i := range b.has.Letters {
		if l := &b.has.Letters[i]; l.Begun {
			u.add(l)
		}
	}
	for i := range b.has.Letters {
		l := &b.has.Letters[i]
		if l.Key != hostKey && !l.About.Again {
			l.Due = later(l.Due, b.has.Last[l.Key].Add(rest))
		}
		if l.Begun || l.Due.After(now) || u.holds(l) {
			continue
		}
		u.add(l)
		l.Begun, b.changed = true, true
		b.has.Last[l.Key] = now
		list = append(list, *l)
	}
	return list
}

// running counts the letters that are being sent.
func (b *box) running() (n int) {
	for i := range b.has.Letters {
		if b.has.Letters[i].Begun {
			n++
		}
	}
	return n
}

// wait returns when to look again.
func (b *box) wait(now time.Time) time.Duration {
	next := time.Hour
	for i := range b.has.Letters {
		if l := &b.has.Letters[i]; !l.Begun && l.Due.After(now) {
			next = min(next, l.Due.Sub(now))
		}
	}
	return next
}

// sent takes a letter out, unless it was cut off: then the next one sends it again.
func (b *box) sent(l *letter, cut bool) {
	i := slices.IndexFunc(b.has.Letters, func(o letter) bool {
		return o.Begun && o.Key == l.Key && o.About.ID == l.About.ID
	})
	b.changed = true
	if i < 0 {
		return
	}
	if cut {
		b.has.Letters[i].Begun, b.has.Letters[i].About.Again = false, true
		return
	}
	b.has.Letters = slices.Delete(b.has.Letters, i, i+1)
}

// save writes the file, if anything has changed.
func (b *box) save(now time.Time) {
	if b.dir == "" || !b.changed {
		return
	}
	maps.DeleteFunc(b.has.Last, func(_ string, at time.Time) bool { return now.Sub(at) > rest })
	text, err := json.Marshal(&b.has)
	if err == nil {
		err = replace(filepath.Join(b.dir, FileName), text)
	}
	if err != nil && !b.failed {
		b.log.Warn("notices are not kept: some may come twice, or not at all, after a restart", "error", err)
	}
	b.failed, b.changed = err != nil, err != nil
}

// replace writes a file whole or not at all.
func replace(path string, text []byte) error {
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
