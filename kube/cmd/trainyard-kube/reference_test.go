package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/yaml"

	"github.com/trainyard/trainyard/internal/reference"
	"github.com/trainyard/trainyard/kube/config"
	"github.com/trainyard/trainyard/kube/controller"
)

// Ensure that the page of Kubernetes has every flag, every metric and every field of the definitions.
func TestReference(t *testing.T) {
	b := new(strings.Builder)
	b.WriteString("# Kubernetes\n\n<!-- Written by `make reference` from the flags, metrics and definitions of " +
		"kube/. Do not edit. -->\n\nHow to use it: [the guide](../guide/kubernetes.md).\n")
	for _, command := range []string{"", "manifests"} {
		var out bytes.Buffer
		_ = run(context.Background(), append(strings.Fields(command), "--help"), &out, io.Discard)
		fmt.Fprintf(b, "\n## %s\n\n```text\n%s\n```\n", strings.TrimSpace("trainyard-kube "+command),
			strings.TrimSpace(strings.ReplaceAll(out.String(), "\t", "    ")))
	}
	b.WriteString("\n## Metrics\n\n" + metricsTable(controller.NewMetrics()))
	for _, doc := range bytes.Split(config.CRDs, []byte("\n---\n")) {
		describeDefinition(t, b, doc)
	}
	reference.Compare(t, "../../..", "docs/reference/kubernetes.md", b.String())
}

var helpText = regexp.MustCompile(`fqName: "([^"]+)", help: "([^"]*)".*variableLabels: \{([^}]*)\}`)

func metricsTable(c prometheus.Collector) string {
	ch := make(chan *prometheus.Desc, 100)
	c.Describe(ch)
	close(ch)
	rows := [][]string{{"name", "labels", "meaning"}}
	for d := range ch {
		m := helpText.FindStringSubmatch(d.String())
		rows = append(rows, []string{reference.Code(m[1]), m[3], m[2]})
	}
	slices.SortFunc(rows[1:], func(x, y []string) int { return strings.Compare(x[0], y[0]) })
	return reference.Table(rows...)
}

// definition is what the page needs of a CustomResourceDefinition.
type definition struct {
	Spec struct {
		Names    struct{ Kind string }
		Versions []struct {
			Schema struct {
				OpenAPIV3Schema property `json:"openAPIV3Schema"`
			}
		}
	}
}

type property struct {
	Type        string
	Description string
	Default     any
	Enum        []any
	Properties  map[string]property
	Items       *property
}

func describeDefinition(t *testing.T, b *strings.Builder, doc []byte) {
	t.Helper()
	var d definition
	if err := yaml.Unmarshal(doc, &d); err != nil {
		t.Fatal(err)
	}
	for _, v := range d.Spec.Versions {
		rows := [][]string{{"field", "type", "default", "meaning"}}
		for _, part := range []string{"spec", "status"} {
			p := v.Schema.OpenAPIV3Schema.Properties[part]
			rows = p.rows(part, rows)
		}
		fmt.Fprintf(b, "\n## %s\n\n%s", d.Spec.Names.Kind, reference.Table(rows...))
	}
}

// rows adds a row for each field below p. Of a pod template, which is Kubernetes' own, it adds the first alone.
func (p *property) rows(path string, rows [][]string) [][]string {
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		f := p.Properties[name]
		def := ""
		if f.Default != nil {
			def = reference.Code(fmt.Sprint(f.Default))
		}
		about := f.Description
		for _, word := range f.Enum {
			about += " " + reference.Code(fmt.Sprint(word))
		}
		rows = append(rows, []string{reference.Code(path + "." + name), f.Type, def, about})
		switch {
		case name == "template":
		case f.Items != nil:
			rows = f.Items.rows(path+"."+name+"[]", rows)
		default:
			rows = f.rows(path+"."+name, rows)
		}
	}
	return rows
}
