package simulate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/internal/inputfile"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/trace"
)

// ReadCluster reads a cluster by its file or its shorthand.
func ReadCluster(spec string) (*cluster.Cluster, error) {
	c, err := cluster.Load(spec)
	switch {
	case err == nil:
		return c, nil
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission):
		return nil, err
	}
	if folder := inputfile.NoFolder("cluster", spec); folder != nil {
		return nil, folder
	}
	if _, missing := os.Stat(spec); missing != nil {
		return nil, inputfile.WrongAsk(err) // a shorthand, or what was meant as one
	}
	return nil, inputfile.WrongFile(err)
}

// ReadTrace reads the trace at a path.
func ReadTrace(path string, o trace.Options) (*trace.Trace, error) {
	if err := inputfile.NoFolder("trace", path); err != nil {
		return nil, err
	}
	t, err := trace.Read(path, o)
	return t, TraceError(err)
}

// TraceError marks what is wrong where a trace could not be read.
func TraceError(err error) error {
	if parse := (*trace.ParseError)(nil); err == nil || errors.As(err, &parse) || errors.Is(err, trace.ErrWrite) {
		return err
	}
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return fmt.Errorf("%w; want the path of a CSV file", err)
	}
	return inputfile.WrongAsk(err)
}

// ReadScores reads PM scores of a number of GPUs, all there are; nil without a path. what names the file.
func ReadScores(what, path string, gpus int) (*variability.Scores, error) {
	s, err := inputfile.Read(what, path, variability.ReadScores)
	if s == nil || err != nil {
		return nil, err
	}
	if len(s.GPUs) != gpus {
		return nil, inputfile.WrongFile(fmt.Errorf("variability: %s: scores of %d GPUs, the cluster has %d, want a "+
			"row for each",
			s.Name, len(s.GPUs), gpus))
	}
	return s, nil
}

const wantProfiles = "want a folder with one for each application, as Pollux measured them, " +
	"or tables of updates per second by batch size and GPUs"

// ReadApps reads how fast applications go: a folder of folders as Pollux measured them, a table of throughputs, or a
// folder of such tables, each named after its application. It returns nil without a path.
func ReadApps(path string) (map[string]speedup.App, error) {
	if path == "" {
		return nil, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, inputfile.WrongAsk(fmt.Errorf("profiles: %w; %s", err, wantProfiles))
	}
	apps := make(map[string]speedup.App)
	if !info.IsDir() {
		return apps, readThroughputs(path, apps)
	}
	if isPollux(path) {
		return apps, readPollux(path, apps)
	}
	if kinds, bad := fs.Glob(os.DirFS(path), "*/placements-*.csv"); bad == nil && len(kinds) > 0 {
		return nil, inputfile.WrongAsk(fmt.Errorf("profiles: %s: %s and the like are of one type of GPU each, want "+
			"placements.csv and scalability.csv next to them: times by type are not read", path, kinds[0]))
	}
	tables, err := filepath.Glob(filepath.Join(path, "*.csv"))
	if err != nil || len(tables) == 0 {
		return nil, inputfile.WrongAsk(fmt.Errorf("profiles %s: nothing of the kind in it, %s", path, wantProfiles))
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
		return inputfile.WrongFile(fmt.Errorf("%s: %w", path, err))
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
		return inputfile.WrongFile(err)
	}
	apps[strings.TrimSuffix(filepath.Base(path), ".csv")] = table
	return nil
}
