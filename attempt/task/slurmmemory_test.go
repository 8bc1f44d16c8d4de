package task

import "testing"

// Ensure that sizes are read as Slurm reads them: megabytes where no unit is given.
func TestParseSlurmMemory(t *testing.T) {
	for text, want := range map[string]float64{"4000": 4000, "0": 0, "512K": 0.5, "16G": 16384, "16g": 16384,
		"2T": 2 << 20, "1MB": 1, "8gb": 8192} {
		if got, err := ParseSlurmMemory(text); err != nil || got != want {
			t.Errorf("%s: %g MiB, %v, want %g", text, got, err, want)
		}
	}
	for _, text := range []string{"", "G", "-1", "1.5G", "4b", "4GG", "4 G", "inf", "NaN", "1e3", "0x1",
		"9999999999999999"} {
		if got, err := ParseSlurmMemory(text); err == nil {
			t.Errorf("%q: %g MiB, want an error", text, got)
		}
	}
}
