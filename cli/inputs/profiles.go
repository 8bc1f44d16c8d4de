package inputs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/model/speedup"
)

const wantProfiles = "want a folder with one for each application, as Pollux measured them, or tables of updates per second by batch size and GPUs"

// ReadApps reads how fast applications go: a folder of folders as Pollux measured them, a table of throughputs, or a
// folder of such tables, each named after its application. nil without a path.
func ReadApps(path string) (map[string]speedup.App, error) {
	if path == "" {
		return nil, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, term.Usagef("--profiles: %v; %s", err, wantProfiles)
	}
	apps := make(map[string]speedup.App)
	if !info.IsDir() {
		return apps, readThroughputs(path, apps)
	}
	if isPollux(path) {
		return apps, readPollux(path, apps)
	}
	tables, err := filepath.Glob(filepath.Join(path, "*.csv"))
	if err != nil || len(tables) == 0 {
		return nil, term.Usagef("--profiles %s: nothing of the kind in it, %s", path, wantProfiles)
	}
	for _, table := range tables {
		if err := readThroughputs(table, apps); err != nil {
			return nil, err
		}
	}
	return apps, nil
}

func readPollux(path string, apps map[string]speedup.App) error {
	profiles, err := speedup.ReadProfiles(os.DirFS(path), "")
	if err != nil {
		return term.Malformed(fmt.Errorf("%s: %w", path, err))
	}
	for _, p := range profiles {
		apps[p.Name] = p
	}
	return nil
}

// isPollux reports whether a folder of the folder has the times of placements.
func isPollux(path string) bool {
	found, err := fs.Glob(os.DirFS(path), "*/placements.csv")
	return err == nil && len(found) > 0
}

func readThroughputs(path string, apps map[string]speedup.App) error {
	f, err := os.Open(path)
	if err != nil {
		return errors.Join(err, fs.ErrInvalid)
	}
	defer f.Close()
	table, err := speedup.ReadThroughputs(f, path)
	if err != nil {
		return term.Malformed(err)
	}
	apps[strings.TrimSuffix(filepath.Base(path), ".csv")] = table
	return nil
}
