package allocate

import (
	"cmp"
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// classes has jobs of higher classes have their fewest GPUs before those of lower ones; what is left beyond them all is
// divided by the rule, whatever the classes.
//
// Unless they take, a job that runs gives way to one of a higher class only where the rule has it give way if there
// are no classes, and never to one of a lower. Inside a class those come first to whom the rule alone gives GPUs.
// Where all are of one class nothing changes. It is ours.
type classes struct {
	of   sched.Classer // nil = there are none
	take bool          // jobs that run give way to a higher class

	list  []int64
	ranks []int
	likes []int // widths that the rule alone gives
}

// Classified is a rule that can have the classes of jobs come first.
type Classified interface {
	sched.Allocator
	// ByClass returns the rule with classes; take says that jobs that run give way to those of a higher class.
	ByClass(c sched.Classer, take bool) sched.Allocator
}

var (
	_ Classified = (*Divide)(nil)
	_ Classified = (*Autoscale)(nil)
	_ Classified = ByWidth{}
)

// ByClass has the classes of jobs come first.
func (a *Divide) ByClass(c sched.Classer, take bool) sched.Allocator {
	a.classes = classes{of: c, take: take}
	return a
}

// ByClass has the classes of jobs come first.
func (a *Autoscale) ByClass(c sched.Classer, take bool) sched.Allocator {
	a.Divide.ByClass(c, take)
	return a
}

// look notes the classes of claims, and reports whether they differ.
func (c *classes) look(v *sched.View, claims []Claim) bool {
	if c.list = c.list[:0]; c.of == nil || len(claims) == 0 {
		return false
	}
	for i := range claims {
		class, _ := c.of.Class(v, claims[i].ID)
		c.list = append(c.list, class)
	}
	return slices.Min(c.list) < slices.Max(c.list)
}

// mark says which of the claims, in order of rank, must have their fewest GPUs of so many, whatever the rule.
func (c *classes) mark(v *sched.View, r Rule, claims []Claim, gpus int) {
	if !c.look(v, claims) {
		return
	}
	c.likes = r.Divide(v, c.likes[:0], claims, gpus)
	c.ranks = c.ranks[:0]
	held := 0 // fewest GPUs of all who run
	for i := range claims {
		c.ranks = append(c.ranks, i)
		if least, _ := claims[i].Least(); claims[i].Held > 0 {
			held += least
		}
	}
	slices.SortStableFunc(c.ranks, func(i, j int) int {
		return cmp.Or(cmp.Compare(c.list[j], c.list[i]), cmp.Compare(min(c.likes[j], 1), min(c.likes[i], 1)))
	})
	lost := held > gpus // nodes are gone: who runs gives way to others who do
	for _, first := range [2]bool{!c.take, false} {
		for _, i := range c.ranks {
			claim := &claims[i]
			least, ok := claim.Least()
			stays := claim.Held > 0 && (c.likes[i] > 0 || lost)
			if !claim.Must && ok && least <= gpus && (stays || !first) {
				claim.Must, gpus = true, gpus-least
			}
		}
	}
}

// arrange returns jobs by class, inside a class those who hold GPUs first, and else in the order that they have.
func (c *classes) arrange(v *sched.View, order []sched.JobID) []sched.JobID {
	class := make(map[sched.JobID]int64)
	for _, j := range order {
		if c.of != nil {
			class[j], _ = c.of.Class(v, j)
		}
	}
	order = slices.Clone(order)
	slices.SortStableFunc(order, func(x, y sched.JobID) int {
		return cmp.Or(cmp.Compare(class[y], class[x]), came(v, x)-came(v, y))
	})
	return order
}
