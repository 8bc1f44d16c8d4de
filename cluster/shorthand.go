package cluster

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// shorthand is what is taken for a shorthand: one or more of NODESxGPUS or NODESxGPUS:TYPE, joined by +.
var shorthand = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9]+x[0-9]+(:[\w.-]+)?(\+[0-9]+x[0-9]+(:[\w.-]+)?)*$`)
})

// IsShorthand reports whether a spec is a shorthand, not the path of a file.
func IsShorthand(spec string) bool { return shorthand().MatchString(spec) }

// parseShorthand reads a spec for which IsShorthand holds.
func parseShorthand(spec string) (*Cluster, error) {
	var b builder
	for part := range strings.SplitSeq(spec, "+") {
		grid, typ, _ := strings.Cut(part, ":")
		nodes, gpus, _ := strings.Cut(grid, "x")
		e := newEntry()
		if typ != "" {
			e.typ = typ
		}
		var err error
		if e.count, err = size(nodes, "nodes"); err == nil {
			e.spec.GPUs, err = size(gpus, "GPUs per node")
		}
		if err == nil {
			err = b.add(&e)
		}
		if err != nil {
			return nil, fmt.Errorf("cluster: %q: %w", spec, err)
		}
	}
	c := b.cluster(spec)
	c.short = true
	return c, nil
}

// size reads a number from 1 to MaxGPUs.
func size(digits, what string) (int, error) {
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || n > MaxGPUs {
		return 0, fmt.Errorf("%s %s, want 1 to %d", digits, what, MaxGPUs)
	}
	return n, nil
}
