// Command crdgen writes config/crds.yaml from what controller-gen made of the types: all definitions in one file,
// without most of the schema of pod templates: it is too long for kubectl apply, and costs the API server several
// milliseconds at every write of a job.
package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: crdgen FOLDER FILE")
		os.Exit(2)
	}
	if err := generate(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "crdgen:", err)
		os.Exit(1)
	}
}

func generate(from, to string) error {
	files, err := filepath.Glob(filepath.Join(from, "*.yaml"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("%s: no definitions, want those that controller-gen makes", from)
	}
	slices.Sort(files)
	var out bytes.Buffer
	out.WriteString("# Made by go generate; do not edit.\n")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var crd map[string]any
		if err = yaml.Unmarshal(text, &crd); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		lighten(crd)
		if text, err = yaml.Marshal(crd); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		out.WriteString("---\n")
		out.Write(text)
	}
	return os.WriteFile(to, out.Bytes(), 0o644)
}

// lighten makes a definition of which the API server has little to do at every write: of pod templates it looks at what
// rules speak of, and status, which the controller alone writes, it takes as it comes, as one thing.
func lighten(node any) {
	properties, _ := node.(map[string]any)
	for name, child := range properties {
		schema, _ := child.(map[string]any)
		switch {
		case name == "template" && schema["type"] == "object":
			properties[name] = template()
		case name == "metadata" && schema["type"] == "object": // that rules may say that they are about it
			schema["properties"] = map[string]any{"name": map[string]any{"type": "string"}}
		case schema["x-kubernetes-int-or-string"] == true: // a rule says in words what it is to look like
			delete(schema, "pattern")
		case schema["format"] == "date-time" && schema["x-kubernetes-validations"] != nil: // the rule looks at the text
			delete(schema, "format")
		case schema["format"] == "int32": // of one that is too large the API server would not say in what field it is
			delete(schema, "format")
			bound(schema)
		case name == "status" && schema["type"] == "object":
			unchecked(schema)
			schema["x-kubernetes-map-type"] = "atomic"
		default:
			lighten(child)
		}
	}
	if list, is := node.([]any); is {
		for _, item := range list {
			lighten(item)
		}
	}
}

// bound says of which numbers an int32 is one.
func bound(schema map[string]any) {
	for rule, most := range map[string]int64{"minimum": math.MinInt32, "maximum": math.MaxInt32} {
		if _, said := schema[rule]; !said {
			schema[rule] = most
		}
	}
}

// template is the schema of pod templates: any, and what rules speak of. The controller reads all of it, strictly.
func template() map[string]any {
	words := map[string]any{"type": "array", "items": map[string]any{"type": "string"}}
	container := open(map[string]any{"command": words, "args": words})
	pod := open(map[string]any{
		"containers":      map[string]any{"type": "array", "items": container},
		"nodeName":        map[string]any{"type": "string"},
		"schedulingGates": map[string]any{"type": "array", "items": open(nil)},
	})
	t := open(map[string]any{"spec": pod})
	t["x-kubernetes-map-type"] = "atomic"
	return t
}

// open is the schema of an object of which only some properties are known.
func open(properties map[string]any) map[string]any {
	s := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	if properties != nil {
		s["properties"] = properties
	}
	return s
}

// unchecked takes away what the API server would check of values in addition to their types.
func unchecked(node any) {
	switch node := node.(type) {
	case []any:
		for _, item := range node {
			unchecked(item)
		}
	case map[string]any:
		if _, isSchema := node["type"].(string); isSchema {
			for _, rule := range []string{"enum", "pattern", "minLength", "maxLength", "minimum", "maximum", "required",
				"x-kubernetes-list-map-keys"} {
				delete(node, rule)
			}
			if _, isList := node["x-kubernetes-list-type"]; isList {
				node["x-kubernetes-list-type"] = "atomic"
			}
		}
		for _, child := range node {
			unchecked(child)
		}
	}
}
