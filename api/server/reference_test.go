package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/trainyard/trainyard/internal/reference"
)

// description is what the page needs of OpenAPI.
type description struct {
	Paths      map[string]map[string]route `json:"paths"`
	Components struct {
		Schemas map[string]schema `json:"schemas"`
	} `json:"components"`
}

type route struct {
	Summary     string `json:"summary"`
	Description string `json:"description"`
	Parameters  []struct {
		Name        string `json:"name"`
		In          string `json:"in"`
		Description string `json:"description"`
		Schema      schema `json:"schema"`
	} `json:"parameters"`
	Body *struct {
		Content map[string]struct {
			Schema schema `json:"schema"`
		} `json:"content"`
	} `json:"requestBody"`
}

type schema struct {
	Type        any               `json:"type"`
	Format      string            `json:"format"`
	Description string            `json:"description"`
	Enum        []any             `json:"enum"`
	Ref         string            `json:"$ref"`
	Items       *schema           `json:"items"`
	Properties  map[string]schema `json:"properties"`
	Required    []string          `json:"required"`
	Rest        any               `json:"additionalProperties"`
}

// kind says in a few words what a schema takes.
func (s *schema) kind() string {
	switch types, several := s.Type.([]any); {
	case s.Ref != "":
		return s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]
	case s.Items != nil:
		return "list of " + s.Items.kind()
	case several:
		return fmt.Sprint(types[0])
	case s.Type != nil:
		return fmt.Sprint(s.Type)
	}
	return "any"
}

func (s *schema) about() string {
	about := s.Description
	for i, word := range s.Enum {
		if i == 0 {
			about = strings.TrimSuffix(about, ".") + "; one of "
		} else {
			about += ", "
		}
		about += reference.Code(fmt.Sprint(word))
	}
	return strings.TrimPrefix(about, "; ")
}

// described returns what OpenAPI says of a server.
func described(t *testing.T) (d description) {
	t.Helper()
	r := newRig(t, 1, nil)
	text, err := json.Marshal(r.server.docs.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// Ensure that the page of the API has every route and every document, as OpenAPI describes them.
func TestReferenceAPI(t *testing.T) {
	d := described(t)
	b := new(strings.Builder)
	b.WriteString("# API\n\n<!-- Written by `make reference` from the description that `GET /openapi.json` serves. " +
		"Do not edit. -->\n\nHow to use it: [the guide](../guide/api.md).\n\n## Routes\n")
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			if o, ok := d.Paths[path][strings.ToLower(method)]; ok {
				describeRoute(b, method, path, &o)
			}
		}
	}
	b.WriteString("\n## Documents\n")
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		s := d.Components.Schemas[name]
		rows := [][]string{{"field", "type", "meaning"}}
		for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
			f := s.Properties[field]
			kind := f.kind()
			if slices.Contains(s.Required, field) {
				kind += ", always"
			}
			rows = append(rows, []string{reference.Code(field), kind, f.about()})
		}
		fmt.Fprintf(b, "\n### %s\n\n%s", name, reference.Table(rows...))
	}
	reference.Compare(t, "../..", "docs/reference/api.md", b.String())
}

func describeRoute(b *strings.Builder, method, path string, o *route) {
	fmt.Fprintf(b, "\n### %s %s\n\n%s. %s\n", method, path, strings.TrimSuffix(o.Summary, "."), o.Description)
	if o.Body != nil {
		for _, kind := range slices.Sorted(maps.Keys(o.Body.Content)) {
			s := o.Body.Content[kind].Schema
			fmt.Fprintf(b, "\nBody: %s, as `%s`.\n", s.kind(), kind)
		}
	}
	rows := [][]string{{"parameter", "in", "type", "meaning"}}
	for _, p := range o.Parameters {
		rows = append(rows, []string{reference.Code(p.Name), p.In, p.Schema.kind(), p.Description})
	}
	if len(rows) > 1 {
		b.WriteString("\n" + reference.Table(rows...))
	}
}

var descText = regexp.MustCompile(`fqName: "([^"]+)", help: "([^"]*)".*variableLabels: \{([^}]*)\}`)

// Ensure that the page of metrics has every figure of a manager.
func TestReferenceMetrics(t *testing.T) {
	ch := make(chan *prometheus.Desc, 100)
	for _, c := range append(slices.Clone(NewMeter().all), standing{}) {
		c.Describe(ch)
	}
	close(ch)
	rows := [][]string{{"name", "labels", "meaning"}}
	for d := range ch {
		m := descText.FindStringSubmatch(d.String())
		rows = append(rows, []string{reference.Code(m[1]), m[3], m[2]})
	}
	slices.SortFunc(rows[1:], func(x, y []string) int { return strings.Compare(x[0], y[0]) })
	reference.Compare(t, "../..", "docs/reference/metrics.md", "# Metrics of a manager\n\n<!-- Written by "+
		"`make reference` from `api/server/metrics.go`. Do not edit. -->\n\n`GET /metrics` serves these figures and "+
		"those of Go and of the process. Those of the controller are\n[here](kubernetes.md#metrics).\n\n"+
		reference.Table(rows...))
}
