// Package experiment has the experiments behind the figures in docs, each a published comparison with ours next to it,
// and the verb that runs them.
package experiment
