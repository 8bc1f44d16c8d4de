package jobfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// schema is what these tests look at of a JSON Schema.
type schema struct {
	Ref                  string             `json:"$ref"`
	Properties           map[string]*schema `json:"properties"`
	AdditionalProperties any                `json:"additionalProperties"`
	Items                *schema            `json:"items"`
	OneOf                []*schema          `json:"oneOf"`
	Enum                 []string           `json:"enum"`
	Type                 any                `json:"type"`
	Minimum, Maximum     *float64
}

// published reads docs/guide/jobs.schema.json, with the keys that it refers to put in their places.
func published(t *testing.T) *schema {
	t.Helper()
	b, err := os.ReadFile("../../docs/guide/jobs.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		schema
		Defs struct {
			Keys map[string]*schema `json:"keys"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	for _, m := range []map[string]*schema{doc.Properties["defaults"].Properties,
		doc.Properties["jobs"].Items.Properties} {
		for key, s := range m {
			if name, ok := strings.CutPrefix(s.Ref, "#/$defs/keys/"); ok {
				m[key] = doc.Defs.Keys[name]
			}
		}
	}
	return &doc.schema
}

// Ensure that the published schema has the keys that are read, no more and no less, at every level, and that words and
// whole numbers are bounded as they are when read.
func TestSchema(t *testing.T) {
	s := published(t)
	sameKeys(t, "the file", s, "defaults, jobs")
	sameKeys(t, "defaults", s.Properties["defaults"], sharedKeys)
	job := s.Properties["jobs"].Items
	sameKeys(t, "a job", job, jobKeys)
	for key, k := range job.Properties {
		valuesOf(t, k, func(value string) string {
			return fmt.Sprintf("jobs: [{command: [a], %s: %s}, {}]", key, value)
		})
		for _, m := range append(k.OneOf, k) {
			if len(m.Properties) == 0 {
				valuesOf(t, m, func(value string) string {
					return fmt.Sprintf("jobs: [{command: [a], %s: %s}, {}]", key, value)
				})
				continue
			}
			_, err := Parse(fmt.Appendf(nil, "jobs: [{command: [a], %s: {nosuchkey: 1}}]", key), "f")
			_, list, _ := strings.Cut(fmt.Sprint(err), "want one of ")
			sameKeys(t, key, m, list)
			for inner, v := range m.Properties {
				valuesOf(t, v, func(value string) string {
					return fmt.Sprintf("jobs: [{command: [a], %s: {%s: %s}}, {}]", key, inner, value)
				})
			}
		}
	}
}

func sameKeys(t *testing.T, what string, s *schema, list string) {
	t.Helper()
	want := strings.Split(list, ", ")
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(s.Properties)); !slices.Equal(got, want) || s.AdditionalProperties != false {
		t.Errorf("%s: the schema has %v, others %v, want %v and no others", what, got, s.AdditionalProperties, want)
	}
}

// valuesOf checks the words and whole numbers of a key in the file that it makes, whose second job is wrong: 100,000
// jobs take long.
func valuesOf(t *testing.T, s *schema, file func(value string) string) {
	t.Helper()
	refused := func(value, wanted string) bool {
		_, err := Parse([]byte(file(value)), "f")
		return err != nil && strings.Contains(err.Error(), wanted) && !strings.Contains(err.Error(), "without")
	}
	if s.Type == "integer" {
		for value, bad := range map[float64]bool{*s.Minimum: false, *s.Maximum: false, *s.Minimum - 1: true,
			*s.Maximum + 1: true} {
			if got := refused(fmt.Sprintf("%.0f", value), "want a whole number from"); got != bad {
				t.Errorf("%s: refused %v, want %v", file(fmt.Sprintf("%.0f", value)), got, bad)
			}
		}
	}
	if s.Enum == nil {
		return
	}
	for _, word := range append([]string{"nosuchword"}, s.Enum...) {
		if got, bad := refused(word, "want one of"), word == "nosuchword"; got != bad {
			t.Errorf("%s: refused %v, want %v", file(word), got, bad)
		}
	}
	if !refused("nosuchword", "want one of "+strings.Join(s.Enum, ", ")) {
		t.Errorf("%s: want exactly %v", file("nosuchword"), s.Enum)
	}
}
