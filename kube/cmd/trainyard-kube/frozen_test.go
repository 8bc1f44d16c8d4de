package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/yaml"

	"github.com/trainyard/trainyard/kube/config"
	"github.com/trainyard/trainyard/kube/controller"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/inventory.txt instead of comparing with it")

const inventory = "testdata/inventory.txt"

// Ensure that every flag with its default, every metric with its labels, and every field, named value and rule of the
// definitions is still there. There may be more of them, and sentences may change. A line of the inventory may be
// renewed only in a commit of its own that says why.
func TestInventory(t *testing.T) {
	lines := slices.Concat(flagsOf(t, ""), flagsOf(t, "manifests"), metricsOf(controller.NewMetrics()), fieldsOf(t))
	slices.Sort(lines)
	lines = slices.Compact(lines)
	if *rewrite {
		if err := os.MkdirAll("testdata", 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(inventory, []byte(strings.Join(lines, "\n")+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	b, err := os.ReadFile(inventory)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSpace(string(b)), "\n")
	if len(want) < 300 {
		t.Errorf("%s: %d lines, want more", inventory, len(want))
	}
	for _, line := range want {
		if _, ok := slices.BinarySearch(lines, line); !ok {
			t.Errorf("gone or changed: %s", line)
		}
	}
}

var flagText = regexp.MustCompile(`(?m)^  -([a-z-]+)( [a-z]+)?(?:\t|$)[^(]*?(?:\(default ([^)]*)\))?$`)

// flagsOf returns a line for each flag that a command's help lists.
func flagsOf(t *testing.T, command string) (lines []string) {
	t.Helper()
	var out bytes.Buffer
	err := run(context.Background(), append(strings.Fields(command), "--help"), &out, io.Discard)
	if !errors.Is(err, flag.ErrHelp) {
		t.Fatal(err)
	}
	help := strings.ReplaceAll(out.String(), "\n    \t", "\t")
	for _, m := range flagText.FindAllStringSubmatch(help, -1) {
		line := strings.TrimSpace("flag "+command) + " --" + m[1]
		if m[2] != "" {
			line += " takes a value"
		}
		if m[3] != "" {
			line += ", default " + m[3]
		}
		lines = append(lines, line)
	}
	if want := strings.Count(out.String(), "\n  -"); len(lines) != want || want == 0 {
		t.Fatalf("%d of %d flags are understood: %q\n%s", len(lines), want, lines, help)
	}
	return lines
}

var descText = regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)

// metricsOf returns a line for each metric that a collector describes.
func metricsOf(c prometheus.Collector) (lines []string) {
	ch := make(chan *prometheus.Desc, 100)
	c.Describe(ch)
	close(ch)
	for d := range ch {
		m := descText.FindStringSubmatch(d.String())
		lines = append(lines, fmt.Sprintf("metric %s{%s}", m[1], m[2]))
	}
	return lines
}

// fieldsOf returns a line for each value of the definitions but sentences.
func fieldsOf(t *testing.T) (lines []string) {
	t.Helper()
	for _, doc := range bytes.Split(config.CRDs, []byte("\n---\n")) {
		var v any
		if err := yaml.Unmarshal(doc, &v); err != nil {
			t.Fatal(err)
		}
		if crd, ok := v.(map[string]any); ok {
			name := crd["metadata"].(map[string]any)["name"]
			lines = append(lines, leaves(fmt.Sprint("definition ", name), crd["spec"])...)
		}
	}
	return lines
}

// leaves returns a line for each value of a document but descriptions. A place in a list is the name of what stands
// there, or its version's; other lists have none.
func leaves(path string, v any) (lines []string) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if _, text := v[key].(string); !text || key != "description" && key != "message" {
				lines = append(lines, leaves(path+"/"+key, v[key])...)
			}
		}
	case []any:
		for _, element := range v {
			at := ""
			if named, ok := element.(map[string]any); ok && named["name"] != nil {
				at = fmt.Sprint(named["name"])
			}
			lines = append(lines, leaves(path+"["+at+"]", element)...)
		}
	default:
		lines = append(lines, fmt.Sprintf("%s = %v", path, v))
	}
	return lines
}
