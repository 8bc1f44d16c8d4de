// Package plan has the verb about widths and budgets.
package plan
