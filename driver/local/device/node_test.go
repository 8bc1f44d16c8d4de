package device

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Ensure that the file of a GPU is found by its address, as the tools write it, and none where the driver lists no such
// GPU, its file is missing or something else is there.
func TestNodeOf(t *testing.T) {
	gpus, nodes := t.TempDir(), t.TempDir()
	for address, minor := range map[string]string{"0000:65:00.0": "3", "0001:00:00.0": "0", "10000:01:00.0": "4",
		"0000:0a:00.0": "7"} {
		dir := filepath.Join(gpus, address)
		text := "Model: \t\t NVIDIA H100\nIRQ:   \t\t 0\nDevice Minor: \t " + minor + "\nGPU Excluded:\t No\n"
		err := os.Mkdir(dir, 0o700)
		if err = errors.Join(err, os.WriteFile(filepath.Join(dir, "information"), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"nvidia3", "nvidia0", "nvidia4"} {
		if err := os.WriteFile(filepath.Join(nodes, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for bus, want := range map[string]string{"00000000:65:00.0": "nvidia3", "00000001:00:00.0": "nvidia0",
		"00010000:01:00.0": "nvidia4", "0000:65:00.0": "nvidia3", "00000000:0A:00.0": "", "00000000:66:00.0": "",
		"": "", "x": "", "../..:65:00.0": ""} {
		if want != "" {
			want = filepath.Join(nodes, want)
		}
		if got := nodeOf(gpus, nodes, bus); got != want {
			t.Errorf("%q: %q, want %q", bus, got, want)
		}
	}
	if err := os.Symlink("nvidia3", filepath.Join(nodes, "nvidia7")); err != nil {
		t.Fatal(err)
	}
	if got := nodeOf(gpus, nodes, "00000000:0A:00.0"); got != "" {
		t.Errorf("a link: %q", got)
	}
}
