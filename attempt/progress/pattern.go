package progress

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// maxPattern bounds a Pattern, in bytes.
const maxPattern = 1000

// groups are the facts that a Pattern may name.
var groups = []string{"step", "total", "epoch", "samples", "samples_per_sec", "loss"}

// Pattern finds facts in lines of output by a regular expression with named groups, such as `it
// (?P<step>\d+)/(?P<total>\d+)`. It takes time in proportion to the line.
type Pattern struct {
	re    *regexp.Regexp
	names []string // of groups; "" = it means nothing
}

// ParsePattern returns the Pattern of a regular expression in the syntax of package regexp.
func ParsePattern(text string) (*Pattern, error) {
	if len(text) > maxPattern {
		return nil, fmt.Errorf("pattern of %d bytes, want at most %d", len(text), maxPattern)
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("pattern %.60q: %w, want a regular expression (RE2)", text, err)
	}
	p := &Pattern{re, re.SubexpNames()}
	for _, name := range p.names {
		if name != "" && !slices.Contains(groups, name) {
			return nil, fmt.Errorf("pattern with the group %.40q, want some of %s", name, strings.Join(groups, ", "))
		}
	}
	if !slices.Contains(p.names, "step") && !slices.Contains(p.names, "epoch") && !slices.Contains(p.names, "samples") {
		return nil, fmt.Errorf("pattern %.60q without a group (?P<step>...), (?P<epoch>...) or (?P<samples>...), "+
			"want one at least", text)
	}
	return p, nil
}

// read returns the facts of a line; Has is 0 if it does not match.
func (p *Pattern) read(line []byte) (m Reading) {
	at := p.re.FindSubmatchIndex(line)
	for i, name := range p.names {
		if at != nil && name != "" && at[2*i] >= 0 {
			m.set([]byte(name), line[at[2*i]:at[2*i+1]])
		}
	}
	m.settle()
	return m
}
