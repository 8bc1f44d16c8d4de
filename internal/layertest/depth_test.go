package layertest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// deepest bounds the longest path of imports below a package of our modules: each edge is a layer that a reader must
// know. A package main is bound by what it imports. The verbs, which were part of main, have been counted since they
// left it.
const deepest = 6

func TestDepth(t *testing.T) {
	root := moduleRoot(t)
	var packages []*source
	for _, folder := range []string{".", "kube"} {
		module, more, err := load(os.DirFS(filepath.Join(root, folder)))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range more {
			p.folder = module + "/" + p.folder
		}
		packages = append(packages, more...)
	}
	at := depths(packages)
	if len(at) < 50 {
		t.Fatalf("%d packages, want those of both modules", len(at))
	}
	found := 0
	for _, p := range packages {
		n := at[p.folder]
		found = max(found, n)
		t.Logf("%d %s", n, p.folder)
		if n > deepest {
			t.Errorf("%s: %d imports deep, want at most %d", p.folder, n, deepest)
		}
	}
	t.Logf("deepest: %d, at most %d", found, deepest)
}

// depths returns of each package, by its import path, the length of the longest path of imports below it. Packages main
// are left out.
func depths(packages []*source) map[string]int {
	byPath := map[string]*source{}
	for _, p := range packages {
		byPath[p.folder] = p
	}
	at := map[string]int{}
	var depth func(p *source) int
	depth = func(p *source) int {
		if n, ok := at[p.folder]; ok {
			return n
		}
		n := 0
		for _, u := range p.imports {
			if to := byPath[u.what]; to != nil {
				n = max(n, depth(to)+1)
			}
		}
		at[p.folder] = n
		return n
	}
	for _, p := range packages {
		if !p.main {
			depth(p)
		}
	}
	return at
}

// TestAPIStandsAlone: a program that speaks the API of a manager links no engine, and nothing of others.
func TestAPIStandsAlone(t *testing.T) {
	module, packages, err := load(os.DirFS(moduleRoot(t)))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range beyondStandard(module, packages, "api") {
		t.Error(line)
	}
}

// beyondStandard returns what the package in folder imports that is not of the standard library.
func beyondStandard(module string, packages []*source, folder string) []string {
	var lines []string
	for _, p := range packages {
		if p.folder != folder {
			continue
		}
		for _, u := range p.imports {
			first, _, _ := strings.Cut(u.what, "/")
			if strings.Contains(first, ".") || first == module {
				lines = append(lines, fmt.Sprintf("%s: %s imports %s: it is the contract, want the standard library "+
					"alone", u.where, folder, u.what))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func TestDepthFinds(t *testing.T) {
	module, packages, err := load(fstest.MapFS{
		"go.mod":          {Data: []byte("module m\n")},
		"sched/a.go":      {Data: []byte("package sched\n")},
		"engine/a.go":     {Data: []byte("package engine\n\nimport (\n\t\"m/sched\"\n\t\"m/stage/x\"\n)\n")},
		"stage/x/a.go":    {Data: []byte("package x\n\nimport \"m/sched\"\n")},
		"cmd/t/a.go":      {Data: []byte("package main\n\nimport \"m/engine\"\n")},
		"api/a.go":        {Data: []byte("package api\n\nimport \"net/http\"\n")},
		"api/b.go":        {Data: []byte("package api\n\nimport (\n\t\"example.com/x\"\n\t\"m/sched\"\n)\n")},
		"api/more/a.go":   {Data: []byte("package more\n\nimport \"example.com/x\"\n")},
		"sched/a_test.go": {Data: []byte("package sched\n\nimport \"m/engine\"\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := beyondStandard(module, packages, "api"); len(got) != 2 || !strings.Contains(got[0], "example.com/x") {
		t.Errorf("api: %q, want two lines", got)
	}
	for _, p := range packages {
		p.folder = module + "/" + p.folder
	}
	at := depths(packages)
	for name, want := range map[string]int{"m/sched": 0, "m/stage/x": 1, "m/engine": 2, "m/api": 1} {
		if at[name] != want {
			t.Errorf("%s is %d deep, want %d", name, at[name], want)
		}
	}
	if _, ok := at["m/cmd/t"]; ok {
		t.Error("a program has a depth")
	}
}
