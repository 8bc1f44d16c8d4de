package key

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
)

// Files says how values of a key name files, and what is read from them.
type Files struct {
	Names func(value string) ([]Name, error) // the files that a value names
	// what is wanted where one is missing, as in "a file with one column headed duration"
	Want string
	read func(files []File, about About) (any, error)
}

// Name names a file.
type Name struct {
	What string // as in "class map"
	Of   string // what of the value it stands for, as a model; "": all
	Path string
}

// File is a file that is open.
type File struct {
	Name
	Data io.Reader
}

// Random returns the file to be read anywhere, and its size; ok is false for what can be read in order alone, as a
// pipe.
func (f File) Random() (data io.ReaderAt, size int64, ok bool) {
	switch x := f.Data.(type) {
	case interface {
		io.ReaderAt
		Size() int64
	}:
		return x, x.Size(), true
	case interface { // an open file
		io.ReaderAt
		Stat() (fs.FileInfo, error)
	}:
		if info, err := x.Stat(); err == nil && info.Mode().IsRegular() {
			return x, info.Size(), true
		}
	}
	return nil, 0, false
}

// InMemory is a file whose text is known.
func InMemory(text string) io.ReadCloser { return inMemory{strings.NewReader(text)} }

type inMemory struct{ *strings.Reader }

// Close does nothing.
func (inMemory) Close() error { return nil }

// About is what is known in addition to the files, which says what they must hold.
type About struct {
	Classes []string // of the PM scores; nil: there are no scores
	GPUs    int
	Given   map[string]string // the settings
}

// Contents are what was read, by key.
type Contents map[string]any

// Open opens a file by its path. It returns an error that wraps ErrFolder for a folder.
type Open func(path string) (io.ReadCloser, error)

// ErrFolder says that a path is that of a folder.
var ErrFolder = errors.New("is a directory, want a file")

// FromFile declares a key whose value is the path of a file, which read reads; the empty value names none. what names
// the file in messages, and want says what it should be.
func FromFile[T any](name, doc, what, want string,
	read func(data io.Reader, path string, about About) (T, error)) Of[T] {
	one := func(value string) ([]Name, error) {
		if value == "" {
			return nil, nil
		}
		return []Name{{What: what, Path: value}}, nil
	}
	return FromFiles(name, doc, want, one, func(files []File, about About) (T, error) {
		return read(files[0].Data, files[0].Path, about)
	})
}

// FromFiles declares a key whose value names files as names says.
func FromFiles[T any](name, doc, want string, names func(value string) ([]Name, error),
	read func(files []File, about About) (T, error)) Of[T] {
	k := Of[T]{Key: Key{Name: name, Doc: doc}}
	k.Files = &Files{Names: names, Want: want,
		read: func(files []File, about About) (any, error) { return read(files, about) }}
	k.check = func(value string) error {
		_, err := names(value)
		return err
	}
	return k
}

// Or returns the key with words that name no file, the first of which is its default.
func (k Of[T]) Or(words ...string) Of[T] {
	files := *k.Files
	names := files.Names
	files.Names = func(value string) ([]Name, error) {
		if value == "" || slices.Contains(words, value) {
			return nil, nil
		}
		return names(value)
	}
	k.Files, k.Default, k.Choices = &files, words[0], words
	return k
}

// Holds returns contents where the key's files hold x.
func (k Of[T]) Holds(x T) Contents { return Contents{k.Name: x} }

// Paths returns the files that settings name, in the order of the list.
func (l List) Paths(settings map[string]string) (all []Name, err error) {
	for i := range l {
		k := &l[i]
		value, given := settings[k.Name]
		if k.Files == nil || !given {
			continue
		}
		names, err := k.Files.Names(value)
		if err != nil {
			return nil, wrong(k.Name, value, err)
		}
		all = append(all, names...)
	}
	return all, nil
}

// Read reads the files that settings name, in the order of the list.
func (l List) Read(settings map[string]string, about About, open Open) (Contents, error) {
	all := make(Contents)
	about.Given = settings
	for i := range l {
		k := &l[i]
		value, given := settings[k.Name]
		if k.Files == nil || !given {
			continue
		}
		x, err := k.load(value, about, open)
		if err != nil {
			return nil, err
		}
		if x != nil {
			all[k.Name] = x
		}
	}
	return all, nil
}

// load reads the files of one value; nil where it names none.
func (k *Key) load(value string, about About, open Open) (any, error) {
	names, err := k.Files.Names(value)
	if err != nil {
		return nil, wrong(k.Name, value, err)
	}
	if len(names) == 0 {
		return nil, nil
	}
	var opened []io.Closer
	defer func() {
		for _, data := range opened {
			data.Close()
		}
	}()
	files := make([]File, len(names))
	for i, name := range names {
		var data io.ReadCloser
		data, err = open(name.Path)
		if errors.Is(err, ErrFolder) {
			return nil, &Error{Key: k.Name, Fault: Damaged, err: fmt.Errorf("%s: %w", k.Name, err)}
		}
		if err != nil {
			return nil, absent(k.Name, k.Files.Want, err)
		}
		opened = append(opened, data)
		files[i] = File{name, data}
	}
	x, err := k.Files.read(files, about)
	if fault := (*Error)(nil); err != nil && !errors.As(err, &fault) {
		err = &Error{Key: k.Name, Fault: Damaged, err: err}
	}
	return x, err
}

// Held returns an error about the first key, in the order of the list, whose value names files that were not read into
// held, or whose value names none though held has some.
func (l List) Held(settings map[string]string, held Contents) error {
	for i := range l {
		k := &l[i]
		value, given := settings[k.Name]
		if k.Files == nil || !given || value == "" {
			continue
		}
		names, err := k.Files.Names(value)
		if _, has := held[k.Name]; err == nil && has != (len(names) > 0) {
			err = errors.New(strings.Join(append(slices.Clone(k.Choices), "or a file that was read"), ", "))
			if len(k.Choices) == 0 {
				err = errors.New("a file that was read")
			}
		}
		if err != nil {
			return wrong(k.Name, value, err)
		}
	}
	return nil
}

// Missing says that a value names a file that means nothing without something else.
func Missing(name, value, why string) error {
	return &Error{Key: name, Fault: Value, err: fmt.Errorf("%s=%s: %s", name, value, why)}
}
