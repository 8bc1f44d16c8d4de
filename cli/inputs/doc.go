// Package inputs reads what flags and keys of several verbs name: traces, clusters, scores, profiles, settings.
package inputs
