package pal

import (
	"github.com/trainyard/trainyard/internal/mersenne"
)

func newGenerator(seed uint32) *mersenne.Generator {
	if seed == 0 {
		seed = DefaultSeed
	}
	return mersenne.New(seed)
}

// generatorAfter is the generator as Draw leaves it.
func generatorAfter(seed uint32, gpus int, rows [Classes]int) *mersenne.Generator {
	m := newGenerator(seed)
	for range gpus {
		for _, n := range rows {
			if n > 0 {
				m.Below(n)
			}
		}
	}
	return m
}
