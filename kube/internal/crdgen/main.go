// Command crdgen writes config/crds.yaml from what controller-gen made of the types: all definitions in one file, without the
// descriptions of pod templates, which kubectl explain pod tells as well and which are too long for kubectl apply.
package main

import (
	"bytes"
	"fmt"
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
		silence(crd, false)
		if text, err = yaml.Marshal(crd); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		out.WriteString("---\n")
		out.Write(text)
	}
	return os.WriteFile(to, out.Bytes(), 0o644)
}

// silence takes descriptions away below pod templates.
func silence(node any, below bool) {
	switch node := node.(type) {
	case []any:
		for _, item := range node {
			silence(item, below)
		}
	case map[string]any:
		if _, is := node["description"].(string); is && below {
			delete(node, "description")
		}
		for key, item := range node {
			silence(item, below || key == "template")
		}
	}
}
