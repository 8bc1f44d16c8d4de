package inputs

import (
	"fmt"
	"io"
	"os"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
)

// KnowledgeOf reads the files that the keys of a system name. scores are those of the GPUs, nil if there are none.
func KnowledgeOf(name string, settings map[string]string, scores *variability.Scores) (k system.Knowledge, err error) {
	info, err := system.Named(name)
	if err != nil {
		return k, err
	}
	k.Scores = scores
	k.Files, err = readFiles(key.Join(info.All(), system.Beliefs), settings, scores, 0)
	return k, err
}

// readFiles reads the files that settings of some keys name. scores are those of the GPUs, nil if there are none.
func readFiles(keys key.List, settings map[string]string, scores *variability.Scores, gpus int) (key.Contents, error) {
	about := key.About{GPUs: gpus}
	if scores != nil {
		about.Classes = scores.Classes
	}
	files, err := keys.Read(settings, about, open)
	return files, KeyError(err)
}

// open opens a file to read.
func open(path string) (io.ReadCloser, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s %w", path, key.ErrFolder)
	}
	return os.Open(path)
}

// KeyError says what kind of error an error about a key is.
func KeyError(err error) error {
	switch fault, ok := key.FaultOf(err); {
	case !ok || fault == key.Absent:
		return err
	case fault == key.Damaged:
		return term.Malformed(err)
	}
	return term.Usage(err)
}
