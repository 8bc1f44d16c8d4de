package main

import (
	"os"
	"path/filepath"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/system"
)

// pathUse is a file that a command line reads or writes.
type pathUse struct {
	what string // what is read, or the flag that says to write
	path string
}

// checkPaths refuses to write to a file that is read, or to one file twice; settings are those of each system.
func (f *simulateFlags) checkPaths(c *cluster.Cluster, systems []string, settings []map[string]string) error {
	read, err := f.reads(c, settings)
	if err != nil {
		return err
	}
	write := f.writes(systems)
	for i, w := range write {
		for _, r := range read {
			if samePath(w.path, r.path) {
				return usagef("%s %s: that is the %s that is read, want another file to write", w.what, w.path, r.what)
			}
		}
		for _, other := range write[:i] {
			if samePath(w.path, other.path) {
				return usagef("%s and %s both write %s, want two files", other.what, w.what, w.path)
			}
		}
	}
	return nil
}

// reads lists the files that are read.
func (f *simulateFlags) reads(c *cluster.Cluster, settings []map[string]string) ([]pathUse, error) {
	list := []pathUse{{"trace", f.trace}}
	if c.String() != f.cluster { // else it is a shorthand
		list = append(list, pathUse{"cluster file", f.cluster})
	}
	for _, s := range []pathUse{{"variability", f.variability}, {"variability-known", f.known}, {"interference", f.interference},
		{"power caps", f.caps}, {"energy price", f.price}, {"carbon", f.carbon}} {
		if s.path != "" {
			list = append(list, s)
		}
	}
	for _, set := range settings {
		if path := set["classes"]; path != "" && path != system.StatedClasses && path != system.ObservedClasses {
			list = append(list, pathUse{"class map", path})
		}
		if path, ok := set["locality"]; ok {
			list = append(list, pathUse{"locality", path})
		}
		if path, ok := set["slow_gpus"]; ok {
			list = append(list, pathUse{"table of slow GPUs", path})
		}
		if path, ok := set["distribution"]; ok {
			list = append(list, pathUse{"distribution", path})
		}
		if text, ok := set["profiles"]; ok {
			profiles, err := splitProfiles(text)
			if err != nil {
				return nil, err
			}
			for _, p := range profiles {
				list = append(list, pathUse{"profile of " + p.model, p.path})
			}
		}
	}
	return list, nil
}

// writes lists the files that are written.
func (f *simulateFlags) writes(systems []string) []pathUse {
	var list []pathUse
	if f.jobsOut != "" {
		list = append(list, pathUse{"--jobs-out", f.jobsOut})
	}
	for _, path := range f.eventPaths(systems) {
		list = append(list, pathUse{"--events-out", path})
	}
	return list
}

// samePath reports whether two paths name one file, be it there already or not.
func samePath(a, b string) bool {
	if resolved(a) == resolved(b) {
		return true
	}
	x, errA := os.Stat(a)
	y, errB := os.Stat(b)
	return errA == nil && errB == nil && x.Mode().IsRegular() && os.SameFile(x, y) // a terminal is stdin and stdout
}

// resolved returns a path without links, as far as it can be told of a file that may not be there yet.
func resolved(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path))
	}
	return path
}
