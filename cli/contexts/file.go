package contexts

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/goccy/go-yaml"
)

// maxFile bounds the file in bytes.
const maxFile = 1 << 20

// Errors of the file.
var (
	ErrExposed = errors.New("others may write it, and commands in it are run; want it writable by you alone: " +
		"chmod go-w")
	ErrDamaged = errors.New("malformed")
)

// Path returns where the file of the user is: contexts.yaml in $XDG_CONFIG_HOME/trainyard, else in ~/.config/trainyard.
func Path() (string, error) {
	if dir := os.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "trainyard", "contexts.yaml"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, ".config", "trainyard", "contexts.yaml"), nil
}

// Load reads the file. One that is not there has no contexts. ErrExposed, ErrDamaged: it is not to be used.
func Load(path string) (*File, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return new(File), nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	folder, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	switch {
	case exposed(info):
		return nil, fmt.Errorf("%s: %w", path, ErrExposed)
	case exposed(folder): // others may put another file in its place
		return nil, fmt.Errorf("%s: %w", filepath.Dir(path), ErrExposed)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxFile {
		return nil, fmt.Errorf("%s: %w: more than %d bytes", path, ErrDamaged, maxFile)
	}
	return parse(path, b)
}

func parse(path string, b []byte) (*File, error) {
	file := new(File)
	if err := yaml.UnmarshalWithOptions(b, file, yaml.Strict()); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w: %s", path, ErrDamaged, yaml.FormatError(err, false, false))
	}
	if err := file.check(); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, ErrDamaged, err)
	}
	return file, nil
}

// Save replaces the file whole: whoever reads it meanwhile sees the old one or the new one. It is readable by its owner
// alone.
func (f *File) Save(path string) error {
	if err := f.check(); err != nil {
		return err
	}
	b, err := yaml.Marshal(f)
	if err != nil {
		return err
	}
	return replace(path, b)
}

// replace puts a file with the bytes in the place of the one at the path, and makes its folder where there is none.
func replace(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	next, err := os.CreateTemp(filepath.Dir(path), ".contexts-*.yaml") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(next.Name())
	_, err = next.Write(b)
	if err == nil {
		err = next.Sync()
	}
	err = errors.Join(err, next.Close())
	if err != nil {
		return err
	}
	return os.Rename(next.Name(), path)
}
