package simulate

import (
	"github.com/trainyard/trainyard/cli/inputs"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/system"
)

// checkPaths refuses to write to a file that is read, or to one file twice; settings are those of each system.
func (f *simulateFlags) checkPaths(infos []*system.Info, settings []map[string]string) error {
	read, err := f.reads(infos, settings)
	if err != nil {
		return err
	}
	write := f.writes(inputs.NamesOf(infos))
	for i, w := range write {
		for _, r := range read {
			if term.SamePath(w.Path, r.Path) {
				return term.Usagef("%s %s: that is the %s that is read, want another file to write", w.What, w.Path,
					r.What)
			}
		}
		for _, other := range write[:i] {
			if term.SamePath(w.Path, other.Path) {
				return term.Usagef("%s and %s both write %s, want two files", other.What, w.What, w.Path)
			}
		}
	}
	return nil
}

// reads lists the files that are read.
func (f *simulateFlags) reads(infos []*system.Info, settings []map[string]string) ([]term.PathUse, error) {
	from := &f.request.From
	list := []term.PathUse{{What: "trace", Path: from.Trace}}
	if !cluster.IsShorthand(from.Cluster) {
		list = append(list, term.PathUse{What: "cluster file", Path: from.Cluster})
	}
	for _, s := range []term.PathUse{{What: "variability", Path: from.Scores},
		{What: "variability-known", Path: from.Known},
		{What: "interference", Path: from.Sharing}, {What: "power caps", Path: from.Caps},
		{What: "energy price", Path: from.Price},
		{What: "carbon", Path: from.Carbon}} {
		if s.Path != "" {
			list = append(list, s)
		}
	}
	for i, info := range infos {
		names, err := simulate.KeysOf(info, f.request.Preset).Paths(settings[i])
		if err != nil {
			return nil, inputs.KeyError(err)
		}
		for _, n := range names {
			list = append(list, term.PathUse{What: n.What, Path: n.Path})
		}
	}
	return list, nil
}

// writes lists the files that are written.
func (f *simulateFlags) writes(systems []string) []term.PathUse {
	var list []term.PathUse
	if f.jobsOut != "" {
		list = append(list, term.PathUse{What: "--jobs-out", Path: f.jobsOut})
	}
	for _, path := range f.eventPaths(systems) {
		list = append(list, term.PathUse{What: "--events-out", Path: path})
	}
	if f.report.Path != "" {
		list = append(list, term.PathUse{What: "--report", Path: f.report.Path})
	}
	return list
}
