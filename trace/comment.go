package trace

import (
	"strings"
	"time"
)

// remarks is what the comments of a file say of it as a whole.
type remarks struct {
	began  time.Time // what the clock showed at time 0
	source string    // where the file comes from
}

// note takes in a comment line, "; Key: value" or "# key: value".
func (m *remarks) note(line string) {
	key, value, ok := strings.Cut(line[1:], ":")
	if value = strings.TrimSpace(value); !ok || value == "" || !printable(value) {
		return
	}
	switch strings.TrimSpace(key) {
	case "UnixStartTime": // of SWF
		if t, ok := parseTime(value, time.Second); ok && t > 0 {
			m.began = time.Unix(0, int64(t)).UTC()
		}
	case "origin": // of ours
		if t, err := time.Parse(originFormat, value); err == nil {
			m.began = t
		}
	case "source", "Computer", "Installation":
		if m.source = strings.TrimPrefix(m.source+"; "+value, "; "); len(m.source) > MaxWord {
			m.source = ""
		}
	}
}

// originFormat is how our own files say what the clock showed at time 0.
const originFormat = "2006-01-02T15:04:05"

// notes returns what is known of t as a whole in lines that start with mark.
func (t *Trace) notes(mark string) string {
	var b strings.Builder
	add := func(key, value string) {
		if value != "" {
			b.WriteString(mark + " " + key + ": " + strings.ReplaceAll(value, "\n", " ") + "\n")
		}
	}
	add("source", t.Source)
	add("file", clean(t.Path)+", format "+t.Format)
	add("times", t.Zone)
	if !t.Origin.IsZero() {
		add("origin", t.Origin.Format(originFormat))
	}
	for _, w := range t.Warnings {
		add("note", w)
	}
	return b.String()
}

// clean returns a path as it may stand in a comment.
func clean(path string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return '?'
		}
		return r
	}, path)
}
