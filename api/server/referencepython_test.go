package server

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/reference"
)

// Ensure that the types of the Python client are those of the documents that OpenAPI describes.
func TestReferencePython(t *testing.T) {
	schemas := described(t).Components.Schemas
	var b strings.Builder
	b.WriteString(`"""The documents of a manager. Written by ` + "`make reference`" + ` from the description that
` + "``GET /openapi.json``" + ` serves. Do not edit."""

from typing import Any, Dict, List, Optional, TypedDict

`)
	written := make(map[string]bool)
	var write func(name string)
	write = func(name string) {
		s, known := schemas[name]
		if !known || written[name] {
			return
		}
		written[name] = true
		for _, field := range slices.Sorted(maps.Keys(s.Properties)) { // what a type names stands before it
			f := s.Properties[field]
			for of := &f; of != nil; of = of.Items {
				write(of.kind())
			}
		}
		typed(&b, name, &s)
	}
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		write(name)
	}
	reference.Compare(t, "../..", "python/src/trainyard/_documents.py", strings.TrimSuffix(b.String(), "\n"))
}

// keywords are names of fields that a class of Python cannot have.
var keywords = []string{"class", "from", "global", "in", "is", "not", "or", "pass", "with"}

// typed writes a TypedDict: what is always there in a class of its own, as Python 3.9 has no other way, and keywords by
// a call.
func typed(b *strings.Builder, name string, s *schema) {
	var always, some, words []string
	for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
		f := s.Properties[field]
		line := fmt.Sprintf("    %s: %s\n", field, pythonType(&f))
		switch {
		case slices.Contains(keywords, field):
			words = append(words, fmt.Sprintf("%q: %s", field, pythonType(&f)))
		case slices.Contains(s.Required, field):
			always = append(always, line)
		default:
			some = append(some, line)
		}
	}
	base, total := "TypedDict", ""
	if len(some) > 0 && len(always) > 0 {
		fmt.Fprintf(b, "\nclass _%s(TypedDict):\n%s\n", name, strings.Join(always, ""))
		base, always = "_"+name, nil
	}
	if len(words) > 0 {
		fmt.Fprintf(b, "\n_%[1]sWords = TypedDict(\"_%[1]sWords\", {%[2]s}, total=False)\n\n", name,
			strings.Join(words, ", "))
		base = strings.TrimPrefix(base+", _"+name+"Words", "TypedDict, ")
	}
	if len(some) > 0 {
		total = ", total=False"
	}
	fmt.Fprintf(b, "\nclass %s(%s%s):\n%s\n", name, base, total, strings.Join(append(always, some...), ""))
}

// pythonType is the type of a value in Python.
func pythonType(s *schema) string {
	is := map[string]string{"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
	switch kind := s.kind(); {
	case s.Ref != "":
		return kind
	case s.Items != nil:
		return "Optional[List[" + pythonType(s.Items) + "]]"
	case kind == "object":
		return "Dict[str, Any]"
	case is[kind] != "":
		return is[kind]
	}
	return "Any"
}
