package host

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/sched"
)

// ErrKeyUsed says that a key stands for other jobs.
var ErrKeyUsed = errors.New("the key was used for other jobs")

// Once says that jobs are submitted under a key: whoever asks again under it gets the same answer, and the jobs are
// there once. It is kept in the log with the first of the jobs.
type Once struct {
	User    string // whose key it is: that of another is another key
	Key     string // without blanks; "" = under none
	Content string // digest of what is submitted, without blanks: other content under the key is ErrKeyUsed
}

// text is what sched.JobSpec.Key of the first of n jobs holds.
func (o *Once) text(n int) string {
	return o.Key + " " + strconv.Itoa(n) + " " + o.Content + " " + o.User
}

// parseKey reads what text wrote; false if it is none of those.
func parseKey(text string) (o Once, n int, ok bool) {
	words := strings.SplitN(text, " ", 4)
	if len(words) < 4 {
		return o, 0, false
	}
	n, err := strconv.Atoi(words[1])
	return Once{Key: words[0], Content: words[2], User: words[3]}, n, err == nil
}

// keyBook finds the jobs of keys. It belongs to the engine's goroutine, and is made again with the state.
type keyBook struct {
	read  int                    // jobs of the View that are in it
	first map[uint64]sched.JobID // by the hash of user and key, or the next number that was free
	made  map[sched.JobID]string // keys of jobs that the View does not have yet
}

func newKeyBook() *keyBook {
	return &keyBook{first: make(map[uint64]sched.JobID), made: make(map[sched.JobID]string)}
}

// find returns the first of the jobs that were submitted under a key; false if there are none. ErrKeyUsed: they are
// others than are meant, or not all of them are in the log any more.
func (b *keyBook) find(v *sched.View, o *Once) (sched.JobID, bool, error) {
	for ; b.read < len(v.Jobs); b.read++ {
		id := sched.JobID(b.read)
		delete(b.made, id)
		if was, _, ok := parseKey(v.Jobs[id].Spec.Key); ok {
			b.put(v, &was, id)
		}
	}
	id, known := b.first[b.slot(v, o)]
	if !known {
		return sched.None, false, nil
	}
	was, n, _ := parseKey(b.text(v, id))
	_, made := b.made[id] // of this very batch: the View has none of them
	switch {
	case was.Content != o.Content:
		return id, true, fmt.Errorf("%w: job %d and what came with it", ErrKeyUsed, id)
	case !made && int(id)+n > len(v.Jobs):
		return id, true, fmt.Errorf("%w: from job %d on, of which the log has lost some", ErrKeyUsed, id)
	}
	return id, true, nil
}

// add notes the key of n jobs that are about to arrive, and returns what the first of them is to hold.
func (b *keyBook) add(v *sched.View, o *Once, first sched.JobID, n int) string {
	text := o.text(n)
	b.made[first] = text
	b.put(v, o, first)
	return text
}

func (b *keyBook) put(v *sched.View, o *Once, id sched.JobID) { b.first[b.slot(v, o)] = id }

// slot returns the number under which a key stands, or would stand.
func (b *keyBook) slot(v *sched.View, o *Once) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(o.Key + " " + o.User)) // it takes everything
	for at := h.Sum64(); ; at++ {
		id, taken := b.first[at]
		if !taken {
			return at
		}
		if was, _, ok := parseKey(b.text(v, id)); ok && was.Key == o.Key && was.User == o.User {
			return at
		}
	}
}

// text returns the key that a job holds.
func (b *keyBook) text(v *sched.View, id sched.JobID) string {
	if text, made := b.made[id]; made {
		return text
	}
	return v.Jobs[id].Spec.Key
}
