package crashtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// births are the points that only the first managers of a folder pass, in this order.
var births = []string{"store.made", "store.named", "devices.made"}

// points are all others.
var points = []string{
	"commit.before", "commit.inside", "commit.after", "apply", "launch.before", "launch.ordered", "launch.spawned",
	"attached", "report", "epoch", "stop.before", "stop.after", "over", "synced",
}

// mailPoints are those between what a user wants and its being durable, in this order. Only managers that are served
// pass them.
var mailPoints = []string{"mailbox.posted", "mailbox.taken", "mailbox.durable"}

// shimPoints are those that shims pass, each once.
var shimPoints = []string{"shim.claimed", "shim.grouped", "shim.started", "shim.alive", "shim.over.before",
	"shim.over.after"}

// restorePoints are those of a folder that is restored from a backup, in this order.
var restorePoints = []string{"restore.written", "restore.named", "restore.kept"}

// once are those that a manager passes once only.
var once = []string{"epoch", "synced"}

// TestPoints fails if the sources have a failpoint that is not in the lists above, or the reverse.
func TestPoints(t *testing.T) {
	call := regexp.MustCompile(`failpoint\.Here\("([^"]+)"\)`)
	var found []string
	err := fs.WalkDir(os.DirFS("../.."), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && (name == "testdata" || len(name) > 1 && name[0] == '.') {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		b, err := os.ReadFile(filepath.Join("../..", path))
		for _, match := range call.FindAllSubmatch(b, -1) {
			found = append(found, string(match[1]))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	known := slices.Concat(births, points, mailPoints, shimPoints, restorePoints)
	slices.Sort(known)
	slices.Sort(found)
	if !slices.Equal(found, known) {
		t.Errorf("failpoints in the sources: %v, want those of this test, once each: %v", found, known)
	}
}
