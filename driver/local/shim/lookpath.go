package shim

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// lookPath finds the program that the job means: by the PATH of its own environment, not of ours, and from its own
// directory, which must be there.
func lookPath(name, dir string, env []string) (string, error) {
	if info, err := os.Stat(dir); err != nil {
		return name, fmt.Errorf("working directory: %w", err)
	} else if !info.IsDir() {
		return name, fmt.Errorf("working directory: %s: %w", dir, syscall.ENOTDIR)
	}
	if strings.ContainsRune(name, '/') {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return name, nil // starting it says what is wrong
	}
	for _, folder := range filepath.SplitList(pathOf(env)) {
		if !filepath.IsAbs(folder) {
			continue // as os/exec: a program must not change with the directory
		}
		file := filepath.Join(folder, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return name, fmt.Errorf("%s: %w", name, exec.ErrNotFound)
}
