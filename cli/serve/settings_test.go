package serve

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key/keytest"
)

// Ensure that wrong settings are refused in the words of all programs.
func TestSettingsAreRefusedInTheSameWords(t *testing.T) {
	folder := t.TempDir() + "/"
	put := func(t *testing.T, name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	give := func(name string, settings map[string]string) error {
		var f runsOn
		cmd := &cobra.Command{}
		f.Define(cmd)
		args := []string{"--slots", "8", "--system", name}
		if info, err := system.Named(name); err == nil && info.Rents {
			args = append(args, "--budget", "2")
		}
		for k, v := range settings {
			args = append(args, "--set", name+"."+k+"="+v)
		}
		if err := cmd.ParseFlags(args); err != nil {
			t.Fatal(err)
		}
		o, err := f.options(t.Context(), cmd)
		if err == nil {
			err = o.Check(t.Context())
		}
		return err
	}
	keytest.Run(t, slices.Concat(keytest.Cases, keytest.Abroad), folder, put, give)
}
