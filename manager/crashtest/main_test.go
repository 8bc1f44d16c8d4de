package crashtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The programs under test, built by TestMain.
var trainyard, trainer string

func TestMain(m *testing.M) {
	code, err := withPrograms(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// withPrograms calls run while the programs are there.
func withPrograms(run func() int) (code int, err error) {
	dir, err := os.MkdirTemp("", "crashtest-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	trainyard, trainer = filepath.Join(dir, "trainyard"), filepath.Join(dir, "trainer")
	for _, args := range [][]string{{"-tags", "failpoints", "-o", trainyard, "../../cmd/trainyard"},
		{"-o", trainer, "../../examples/trainer"}} {
		build := exec.Command("go", append([]string{"build"}, args...)...)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("go build %v: %w\n%s", args, err, out)
		}
	}
	return run(), nil
}
