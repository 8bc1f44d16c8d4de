package host_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// writesRenewed matches what makes an event of that kind, however it is written.
var writesRenewed = regexp.MustCompile(`Kind(:| =|, \w+ =)\s*sched\.Renewed\b|sched\.Event\{[^}:]*sched\.Renewed\b`)

// Ensure that no one but the host writes that a system starts again: two who did would write it twice.
func TestOnlyTheHostWritesRenewed(t *testing.T) {
	root := os.DirFS("..")
	var found []string
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		b, err := fs.ReadFile(root, name)
		if writesRenewed.Match(b) {
			found = append(found, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || path.Dir(found[0]) != "host" {
		t.Errorf("%v write it, want one file of host", found)
	}
}
