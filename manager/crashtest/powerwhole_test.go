package crashtest

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// complete returns an error if the record of calls does not lead to the folder that there is, by way of what was copied
// of it between two daemons. Of a write to the log in which a thread was killed it takes what the copy has of it; of
// other calls of that kind, as many as can have done what they are for.
func (r *recording) complete() error {
	if r.seen.unknown != nil {
		return fmt.Errorf("calls that are not understood: %q", r.seen.unknown)
	}
	var doubtful []int
	for i := range r.seen.effects {
		e := &r.seen.effects[i]
		switch {
		case !e.maybe:
			continue
		case e.kind == writes && e.at >= 0 && e.ofLog():
			if err := r.settleWrite(e); err != nil {
				return err
			}
		default:
			doubtful = append(doubtful, i)
		}
		r.cutOff++
	}
	doubtful = doubtful[:min(len(doubtful), mostDoubtful)]
	var first error
	for chosen := range 1 << len(doubtful) {
		left := make(map[int]bool)
		for k, i := range doubtful {
			left[i] = chosen>>k&1 == 1
		}
		effects, err := r.leads(left)
		if err == nil {
			r.seen.effects = effects
			return nil
		}
		first = cmp.Or(first, err)
	}
	return fmt.Errorf("%w\n%d calls were cut off", first, r.cutOff)
}

// mostDoubtful is how many calls that were cut off are tried in all combinations.
const mostDoubtful = 8

// ofLog says that an effect is one on a file that daemons alone write: all of it has a copy once they have died.
func (e *effect) ofLog() bool { return strings.HasPrefix(filepath.Base(e.path), "trainyard.db") }

// settleWrite gives a write to the log in which its thread was killed the bytes that were there afterwards, which are
// the old ones where it had not come to write. It was over when the process had died: before all that the next one did.
func (r *recording) settleWrite(e *effect) error {
	e.last = e.first
	for _, c := range r.seen.copied {
		if c.line < e.first {
			continue
		}
		b, err := os.ReadFile(filepath.Join(c.dir, filepath.Base(e.path)))
		at := min(e.at, int64(len(b)))
		e.data = b[at:min(at+e.size, int64(len(b)))]
		return err
	}
	return nil // the last daemon was stopped in it: there is no copy
}

// leads returns the effects without those that are left out, or why they do not lead to the folder and its copies.
func (r *recording) leads(left map[int]bool) (effects []effect, err error) {
	d, next := newDisk(), 0
	for i := range r.seen.effects {
		e := r.seen.effects[i]
		if left[i] {
			continue
		}
		for ; next < len(r.seen.copied) && r.seen.copied[next].line < e.last; next++ {
			if bad := r.likeCopy(d, r.seen.copied[next].dir); bad != nil {
				return nil, bad
			}
		}
		effects = append(effects, e)
		if bad := d.do(&e); bad != nil {
			return nil, bad
		}
	}
	if list := d.after(kept, nil).differs(r.dir); list != nil {
		return nil, fmt.Errorf("not all is recorded:\n%s", strings.Join(list, "\n"))
	}
	return effects, nil
}

// likeCopy says in what the log on a disk, as it is seen, is not the one that was copied.
func (r *recording) likeCopy(d *disk, dir string) error {
	m := &image{d.after(kept, nil).nodes}
	return m.walk(0, "", func(path string, n *node) error {
		if name := filepath.Base(path); name == "trainyard.db" || name == "trainyard.db-wal" {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				return err
			}
			if !bytes.Equal(b, n.bytes()) {
				return fmt.Errorf("%s in %s: %d bytes, recorded %d", name, dir, len(b), n.size)
			}
		}
		return nil
	})
}
