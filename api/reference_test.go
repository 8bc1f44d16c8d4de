package api

import (
	"strconv"
	"testing"

	"github.com/trainyard/trainyard/internal/reference"
)

// Ensure that the page of problems has every code.
func TestReferenceProblems(t *testing.T) {
	rows := [][]string{{"code", "status", "meaning"}}
	for _, p := range problems {
		rows = append(rows, []string{reference.Code(p.code), strconv.Itoa(p.status), p.err.Error()})
	}
	reference.Compare(t, "..", "docs/reference/problems.md", "# Problems\n\n<!-- Written by `make reference` from "+
		"`api/problem.go`. Do not edit. -->\n\nThe `code` of an answer of type `application/problem+json`.\n\n"+
		reference.Table(rows...))
}
