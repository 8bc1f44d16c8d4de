//go:build failpoints

package failpoint

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

var (
	mu   sync.Mutex
	name string
	left int
)

func init() {
	spec, count, _ := strings.Cut(os.Getenv(Variable), ":")
	name, left = spec, 1
	if n, err := strconv.Atoi(count); err == nil {
		left = n
	}
}

// Here kills the process if the environment says so, see the package comment.
func Here(point string) {
	mu.Lock()
	defer mu.Unlock()
	if point != name {
		return
	}
	if left--; left == 0 {
		_, _ = os.Stderr.WriteString("failpoint " + point + "\n")
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}
