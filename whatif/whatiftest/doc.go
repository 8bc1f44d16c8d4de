// Package whatiftest draws worlds, clusters with jobs and what they do there, for tests of package whatif and of what
// uses it.
package whatiftest
