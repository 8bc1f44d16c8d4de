// Package export has the verb that writes a log in the forms of other tools.
package export
