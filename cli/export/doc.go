// Package export has the verbs that write a log in the forms of other tools, and draw pictures of it.
package export
