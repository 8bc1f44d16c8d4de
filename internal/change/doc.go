// Package change tests what a change costs: it makes the changes of docs/inside/changes.md in a copy of the tree, runs
// what the page says, and counts the files. It holds tests alone.
package change
