package task

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxGPUType is how many bytes a part of the name of a GPU has at most.
const maxGPUType = 64

// checkGPUType returns what keeps part from being one of Task.GPUTypes, or nil.
func checkGPUType(part string) error {
	if plainName(part) == "" || len(part) > maxGPUType || !utf8.ValidString(part) ||
		strings.ContainsFunc(part, unicode.IsControl) {
		return fmt.Errorf("gpu_type %q, want a part of the name of a GPU, as in a100, at most %d bytes", short(part),
			maxGPUType)
	}
	return nil
}

// plainName is a name without what is written in several ways: case, and blanks, _ and - between words.
func plainName(name string) string {
	return strings.Trim(strings.NewReplacer(" ", "-", "_", "-").Replace(strings.ToLower(name)), "-")
}

// TakesGPU reports whether the job takes GPUs of that name.
func (t *Task) TakesGPU(name string) bool {
	for _, part := range t.GPUTypes {
		if strings.Contains(plainName(name), plainName(part)) {
			return true
		}
	}
	return len(t.GPUTypes) == 0
}

// checkGPUs returns what is wrong with GPUTypes, or nil.
func (t *Task) checkGPUs() error {
	for _, part := range t.GPUTypes {
		if err := checkGPUType(part); err != nil {
			return err
		}
	}
	return nil
}
