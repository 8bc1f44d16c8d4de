// Package export writes recorded runs in the forms of other tools: Perfetto's traces, Evalys' job sets, and CSV.
package export
