package system_test

import (
	"io"
	"io/fs"
	"syscall"
	"testing"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
	"github.com/trainyard/trainyard/system/key/keytest"
)

// Ensure that wrong settings are refused in the words that all programs show.
func TestSettingsAreRefusedInTheSameWords(t *testing.T) {
	files := map[string]string{}
	open := func(path string) (io.ReadCloser, error) {
		if text, ok := files[path]; ok {
			return key.InMemory(text), nil
		}
		return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.ENOENT}
	}
	give := func(where key.Use) func(string, map[string]string) error {
		return func(name string, settings map[string]string) error {
			info, err := system.Named(name)
			if err != nil {
				t.Fatal(err)
			}
			err = info.CheckKeys(settings, where)
			if err != nil {
				return err
			}
			k := system.Knowledge{}
			if k.Files, err = key.Join(info.All(), system.World).Read(settings, key.About{GPUs: 8}, open); err == nil {
				_, err = system.Live(&eventlog.Header{System: name, Settings: settings, GPUs: 8, NodeGPUs: 4}, k)
			}
			return err
		}
	}
	put := func(_ *testing.T, name, text string) { files["folder/"+name] = text }
	for _, where := range []key.Use{key.Simulation, key.Machine, key.Cluster} {
		keytest.Run(t, keytest.Cases, "folder/", put, give(where))
	}
	for _, where := range []key.Use{key.Machine, key.Cluster} {
		keytest.Run(t, keytest.Abroad, "folder/", put, give(where))
	}
}
