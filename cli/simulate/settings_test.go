package simulate

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/system/key"
	"github.com/trainyard/trainyard/system/key/keytest"
)

// codes are the exit codes by what is wrong with a setting.
var codes = map[key.Fault]int{key.Unknown: term.ExitUsage, key.Value: term.ExitUsage, key.Absent: term.ExitNotFound,
	key.Damaged: term.ExitMalformed}

// Ensure that wrong settings are refused in the words of all programs, with the exit code of their fault.
func TestSettingsAreRefusedInTheSameWords(t *testing.T) {
	folder := t.TempDir() + "/"
	put := func(t *testing.T, name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(t, "trace.csv", "job_id,submit_s,num_gpus,duration_s\n1,0,1,10\n")
	keytest.Run(t, keytest.Cases, folder, put, func(name string, settings map[string]string) error {
		f := simulateFlags{systems: []string{name}}
		f.request.From = simulate.Inputs{Trace: folder + "trace.csv", Cluster: "2x4"}
		for k, v := range settings {
			f.sets = append(f.sets, name+"."+k+"="+v)
		}
		_, err := f.comparison()
		if fault, ok := key.FaultOf(err); ok && term.ExitCode(err) != codes[fault] {
			t.Errorf("%v: exit code %d, want %d", err, term.ExitCode(err), codes[fault])
		}
		return err
	})
}
