// Package simulate wires traces, clusters, systems and the simulator together: one simulation of one system, the world
// in which its jobs run, and presets that reproduce published set-ups.
package simulate
