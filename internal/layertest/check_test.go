package layertest

import (
	"fmt"
	"slices"
	"strings"
)

// check returns one line per broken rule: where, what, and the reason.
func check(module string, packages []*source) []string {
	byFolder := map[string]*source{}
	for _, p := range packages {
		byFolder[p.folder] = p
	}
	var broken []string
	for _, p := range packages {
		if _, ok := layerOf(p.folder); !ok {
			broken = append(broken, fmt.Sprintf("%s: in no layer (give it a row in table_test.go)", p.folder))
			continue
		}
		for _, u := range p.imports {
			if why := forbiddenImport(module, p.folder, u.what); why != "" {
				broken = append(broken, fmt.Sprintf("%s: %s imports %s: %s", u.where, p.folder, u.what, why))
			}
		}
		if matches(p.folder, pure) {
			broken = append(broken, impurities(p, "")...)
			for _, u := range p.imports {
				helper := byFolder[strings.TrimPrefix(u.what, module+"/")]
				if helper != nil && matches(helper.folder, leaves) {
					broken = append(broken, impurities(helper, p.folder+" is pure and imports it: ")...)
				}
			}
		}
	}
	slices.Sort(broken)
	return slices.Compact(broken)
}

// forbiddenImport returns why the package in folder must not import the package, or "" if it may. Of the standard
// library every package may import everything here; see impurities.
func forbiddenImport(module, folder, imported string) string {
	to, ours := strings.CutPrefix(imported, module+"/")
	if !ours {
		if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") {
			return ""
		}
		to = thirdParty[0]
	}
	for _, r := range forbidden {
		if matches(folder, r.from) && matches(to, r.to) && !allowed(excused, folder, to) {
			return r.reason
		}
	}
	if !ours || strings.HasPrefix(to, folder+"/") {
		return ""
	}
	if allowed(exceptions, folder, to) {
		return ""
	}
	return outOfOrder(folder, to)
}

// allowed says whether one of list lets the package in folder import the package to.
func allowed(list []exception, folder, to string) bool {
	return slices.ContainsFunc(list, func(e exception) bool { return matches(folder, e.from) && matches(to, e.to) })
}

// outOfOrder returns why layers alone forbid the import, or "". Both packages are of this module.
func outOfOrder(folder, to string) string {
	from, _ := layerOf(folder)
	target, ok := layerOf(to)
	switch {
	case !ok:
		return "it is in no layer"
	case from == anyLayer && target != 0:
		return "a package of no layer knows the standard library and sched at most"
	case from != anyLayer && target >= from:
		return fmt.Sprintf("layer %d imports layer %d, want a lower one, so that each layer can be read without "+
			"those above", from, target)
	}
	return ""
}

// impurities returns what p does that a pure package must not. The prefix says on whose account it matters.
func impurities(p *source, prefix string) []string {
	var broken []string
	report := func(u use, reason string) {
		broken = append(broken, fmt.Sprintf("%s: %s%s uses %s: %s", u.where, prefix, p.folder, u.what, reason))
	}
	for _, u := range p.imports {
		for _, f := range forbiddenStd {
			if u.what == f.pkg || strings.HasPrefix(u.what, f.pkg+"/") {
				report(u, f.reason)
			}
		}
	}
	for _, u := range p.names {
		for _, f := range forbiddenNames {
			name, ok := strings.CutPrefix(u.what, f.pkg+".")
			if ok && (name == "*" || slices.Contains(strings.Fields(f.names), name) != f.except) {
				report(u, f.reason)
			}
		}
	}
	for _, u := range p.gos {
		report(u, goStatementReason)
	}
	return broken
}
