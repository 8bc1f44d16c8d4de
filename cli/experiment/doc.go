// Package experiment has the verb about published comparisons.
package experiment
