// Package experiment wires traces, clusters, systems and the simulator together: one simulation, comparisons of systems,
// presets that reproduce published set-ups, and the experiments behind the figures in docs.
package experiment
