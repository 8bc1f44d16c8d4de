package realnode

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// trainer is the image of a training program, once a test asked for it.
var trainer struct {
	sync.Once
	image []byte
	err   error
}

// Trainer returns an image of /trainer, which is examples/trainer, and /witness. It is built once.
func Trainer(t testing.TB) []byte {
	t.Helper()
	trainer.Do(func() { trainer.image, trainer.err = buildTrainer(t.TempDir()) })
	if trainer.err != nil {
		t.Fatal(trainer.err)
	}
	return trainer.image
}

func buildTrainer(dir string) ([]byte, error) {
	cmd := exec.Command("go", "build", "-o", dir, "github.com/trainyard/trainyard/examples/trainer",
		"github.com/trainyard/trainyard/kube/internal/realnode/witness")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	var files []File
	for _, name := range []string{"trainer", "witness"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		files = append(files, File{"/" + name, data})
	}
	return Image([]string{"/witness", "pause"}, files...)
}
