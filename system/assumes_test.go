package system_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/system"
)

// assumed are the fields of which a family's Known must have one where a row of the table says that a system assumes
// so.
var assumed = []struct {
	words  string
	fields []string
}{
	{"work of each job", []string{"Work"}},
	{"remaining work", []string{"Work"}},
	{"the order's own", []string{"Work"}},
	{"distribution of service", []string{"Sizes"}},
	{"PM scores", []string{"Scores"}},
	{"arrival rates", []string{"Mix"}},
	{"speeds by", []string{"Curves", "Speeds"}},
	{"which widths are possible", []string{"Speeds"}},
	{"how sets slow each other", []string{"Learner", "Sets"}},
	{"throughput of pairs", []string{"Learner"}},
}

// besides are fields that no row speaks of, with the reason.
var besides = map[string]string{
	"Restart":  "what a restart costs is set by a key, or learned by whoever runs real jobs",
	"PerNode":  "the cluster shows it",
	"Boot":     "the pools say it",
	"Classes":  "they are part of PM scores",
	"Locality": "it is part of PM scores",
	"Slow":     "only the key stragglers=oracle asks for it",
	"Capped":   "only the key power_cap asks for it",
	"Timed":    "it says whether epochs follow from Work",
	"Peaks":    "only the key share_memory asks for it",
	"Skew":     "placement by model is a key of all systems",
}

// unsaid are fields that single systems have though their row does not say so.
var unsaid = map[string]string{
	"fifo-packed Work": "the family has one Known; pairs are weighed by throughput alone",
	"gandiva Work":     "as of fifo-packed",
}

// fieldsOf returns the fields of a Known, those of what it embeds among them.
func fieldsOf(t reflect.Type) (names []string) {
	for _, f := range reflect.VisibleFields(t) {
		if !f.Anonymous {
			names = append(names, f.Name)
		}
	}
	return names
}

// Ensure that a system can be given what its row says that it assumes, and nothing else.
func TestAssumesFollowsFromKnown(t *testing.T) {
	for _, info := range system.Table() {
		var known reflect.Type
		if info.Stages != nil {
			known = info.Stages.Known()
		} else {
			known = info.New.Known()
		}
		var said []string
		for _, a := range assumed {
			if strings.Contains(info.Assumes, a.words) {
				said = append(said, a.fields...)
				if !slices.ContainsFunc(a.fields, func(f string) bool { return slices.Contains(fieldsOf(known), f) }) {
					t.Errorf("%s assumes %q: %v has none of %v", info.Name, info.Assumes, known, a.fields)
				}
			}
		}
		if (info.Assumes == "nothing") != (len(said) == 0) || info.Assumes == "nothing" && known.NumField() > 0 {
			t.Errorf("%s assumes %q, and is given %v", info.Name, info.Assumes, fieldsOf(known))
		}
		for _, f := range fieldsOf(known) {
			if !slices.Contains(said, f) && besides[f] == "" && unsaid[info.Name+" "+f] == "" {
				t.Errorf("%s assumes %q and can be given %s of %v", info.Name, info.Assumes, f, known)
			}
		}
	}
}
