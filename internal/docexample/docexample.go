// Package docexample gives tests the example in the comment of their package, so that what is documented is what runs.
// Only tests import it.
package docexample

import (
	"os"
	"strings"
	"testing"
)

// Of returns the first block of code in doc.go of the package under test, less its indent. The test fails if there is
// no such file or block.
func Of(t testing.TB) string {
	t.Helper()
	src, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for line := range strings.Lines(string(src)) {
		if code, ok := strings.CutPrefix(line, "//\t"); ok {
			b.WriteString(code)
		} else if b.Len() > 0 {
			break
		}
	}
	if b.Len() == 0 {
		t.Fatal("doc.go has no block of code")
	}
	return b.String()
}
