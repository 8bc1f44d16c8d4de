package inputs

import (
	"maps"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/internal/suggest"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
)

// setting is one --set.
type setting struct{ text, name, key, value string }

// ParseSets returns the settings of each system, in the order of infos, of the keys that it takes. What names a system
// beats what names *, and later ones beat earlier ones.
func ParseSets(sets []string, infos []*system.Info, keys func(*system.Info) key.List) ([]map[string]string, error) {
	settings := make([]map[string]string, len(infos))
	for i := range settings {
		settings[i] = make(map[string]string)
	}
	var named []setting
	for _, text := range sets {
		s, err := parseSet(text)
		if err != nil {
			return nil, err
		}
		if s.name != "*" {
			named = append(named, s)
		} else if err := s.giveAll(infos, keys, settings); err != nil {
			return nil, err
		}
	}
	for _, s := range named {
		if err := s.giveOne(infos, keys, settings); err != nil {
			return nil, err
		}
	}
	return settings, nil
}

func parseSet(text string) (setting, error) {
	target, value, ok := strings.Cut(text, "=")
	name, word, dotted := strings.Cut(target, ".")
	if !ok || !dotted || name == "" || word == "" {
		return setting{}, term.Usagef("--set %q, want NAME.KEY=VALUE such as '*.min_run=0'", text)
	}
	return setting{text, name, word, value}, nil
}

// giveOne gives s to the system it names.
func (s setting) giveOne(infos []*system.Info, keys func(*system.Info) key.List, settings []map[string]string) error {
	info, err := system.Named(s.name)
	if err != nil {
		return term.Usagef("--set %s: %w", s.text, err)
	}
	i := slices.Index(infos, info)
	if i < 0 {
		return term.Usagef("--set %s: %s is not run, --system has %s", s.text, s.name,
			strings.Join(NamesOf(infos), ", "))
	}
	if err := keys(info).Check("system: "+info.Name, map[string]string{s.key: s.value}, key.Simulation); err != nil {
		return term.Usagef("--set %s: %w", s.text, err)
	}
	settings[i][s.key] = s.value
	return nil
}

// giveAll gives s to all systems that take it, of which there must be one.
func (s setting) giveAll(infos []*system.Info, keys func(*system.Info) key.List, settings []map[string]string) error {
	taken := false
	var names []string
	for i, info := range infos {
		for _, k := range keys(info) {
			if k.Name == s.key {
				settings[i][s.key] = s.value
				taken = true
			}
			if !slices.Contains(names, k.Name) {
				names = append(names, k.Name)
			}
		}
	}
	if taken {
		return nil
	}
	who := "none of " + strings.Join(NamesOf(infos), ", ") + " takes"
	if len(infos) == 1 {
		who = infos[0].Name + " does not take"
	}
	return term.Usagef("--set %s: %s the key %q%s; known are %s", s.text, who, s.key, suggest.Hint(s.key, names),
		strings.Join(names, ", "))
}

// NamesOf returns the names of systems.
func NamesOf(infos []*system.Info) []string {
	var names []string
	for _, i := range infos {
		names = append(names, i.Name)
	}
	return names
}

// CompleteSets offers NAME.KEY= of systems and the keys that they take, and the words that a key takes.
func CompleteSets(keys func(*system.Info) key.List) func() []string {
	return func() []string {
		all := make(map[string]bool)
		for _, info := range system.Table() {
			for _, k := range keys(&info) {
				for _, name := range []string{info.Name, "*"} {
					set := name + "." + k.Name + "="
					all[set] = true
					for _, word := range k.Choices {
						all[set+word] = true
					}
				}
			}
		}
		return slices.Sorted(maps.Keys(all))
	}
}
