// Package book knows which API object bears which number of a job.
package book

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/sched"
)

// Ref names a TrainingJob for good: one that was deleted and made anew under its name is another.
type Ref struct {
	types.NamespacedName

	UID types.UID
}

// Book is used by the goroutine of the engine. The zero value is not ready; see New.
type Book struct {
	refs []Ref // by JobID; no UID = forgotten
	ids  map[types.NamespacedName]sched.JobID
}

// New returns a book in which the first so many numbers are forgotten.
func New(forgotten int) *Book {
	return &Book{refs: make([]Ref, forgotten), ids: make(map[types.NamespacedName]sched.JobID)}
}

// Put gives r the number id.
func (b *Book) Put(id sched.JobID, r Ref) {
	for int(id) >= len(b.refs) {
		b.refs = append(b.refs, Ref{})
	}
	if old := b.refs[id]; old.UID != "" && old != r {
		panic(fmt.Sprintf("book: job %d is %s, now to be %s", id, old, r))
	}
	b.refs[id], b.ids[r.NamespacedName] = r, id
}

// Add gives r the next number: that of the job which arrives next.
func (b *Book) Add(r Ref) sched.JobID {
	id := sched.JobID(len(b.refs))
	b.Put(id, r)
	return id
}

// Forget takes the name of job id, whose object is gone; its number stays used.
func (b *Book) Forget(id sched.JobID) {
	if b.ids[b.refs[id].NamespacedName] == id {
		delete(b.ids, b.refs[id].NamespacedName)
	}
	b.refs[id] = Ref{}
}

// Find returns the number of the job that bears name now.
func (b *Book) Find(name types.NamespacedName) (sched.JobID, bool) {
	id, ok := b.ids[name]
	return id, ok
}

// Ref returns who bears number id; no UID if nobody does.
func (b *Book) Ref(id sched.JobID) Ref {
	if int(id) >= len(b.refs) {
		return Ref{}
	}
	return b.refs[id]
}

// Len is how many numbers were given.
func (b *Book) Len() int { return len(b.refs) }
