package pipeline

import (
	"math"
	"testing"

	"github.com/trainyard/trainyard/sched"
)

// Ensure that each search looks at a node once, also where the numbers of searches start again and where nodes come.
func TestLooked(t *testing.T) {
	var l looked
	for _, nodes := range []int{1, 3, 3, 70} {
		if nodes == 70 {
			l.now = math.MaxUint32
		}
		l.begin(nodes)
		for n := range sched.NodeID(nodes) {
			if !l.first(n) || l.first(n) {
				t.Fatalf("of %d nodes, node %d is not looked at once", nodes, n)
			}
		}
	}
}
