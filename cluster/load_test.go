package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Ensure that a shorthand means nodes x GPUs per node and keeps its spelling.
func TestShorthand(t *testing.T) {
	for _, c := range []struct {
		spec        string
		nodes, gpus int
		types       string
	}{
		{"15x4", 15, 60, "gpu"},
		{"1x1", 1, 1, "gpu"},
		{"15x4:v100", 15, 60, "v100"},
		{"10x8:a100+4x4:t4", 14, 96, "a100 t4"},
		{"2x8:a100+4x4+1x8:a100", 7, 40, "a100 gpu"},
		{"1000000x1", 1000000, 1000000, "gpu"},
	} {
		got, err := Load(c.spec)
		if err != nil {
			t.Error(err)
			continue
		}
		if len(got.Nodes) != c.nodes || got.GPUs() != c.gpus || strings.Join(got.Types, " ") != c.types ||
			got.String() != c.spec || got.Name != c.spec {
			t.Errorf("%s: %d nodes, %d GPUs, types %q, %s", c.spec, len(got.Nodes), got.GPUs(), got.Types, got)
		}
	}
}

// Ensure that the nodes of a shorthand are numbered through, in order, and have the type of their part.
func TestShorthandNodes(t *testing.T) {
	c, err := Load("2x8:a100+1x4:t4")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range c.Nodes {
		got = append(got, fmt.Sprint(n.Name, " ", n.GPUs, " ", c.Types[n.Type], " ", n.Rack, " ", n.Pool))
	}
	if want := []string{"node0 8 a100 0 -1", "node1 8 a100 0 -1", "node2 4 t4 0 -1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLoadErrors(t *testing.T) {
	const wanted = "want NODESxGPUS such as 15x4 or 15x4:v100, or a YAML file"
	dir := t.TempDir()
	missing := filepath.Join(dir, "lab")
	for _, c := range []struct{ spec, want string }{
		{"", `"": ` + wanted},
		{"15by4", `"15by4": ` + wanted},
		{"15x", `"15x": ` + wanted},
		{"15x4:", `"15x4:": ` + wanted},
		{"15x4+", `"15x4+": ` + wanted},
		{"-1x4", `"-1x4": ` + wanted},
		{"15X4", `"15X4": ` + wanted},
		{"0x4", `"0x4": 0 nodes, want 1 to 1000000`},
		{"4x0:v100", `"4x0:v100": 0 GPUs per node, want 1 to 1000000`},
		{"99999999999999999999x4", `"99999999999999999999x4": 99999999999999999999 nodes, want 1 to 1000000`},
		{"1000000x1+1x1", `"1000000x1+1x1": 1000001 GPUs in total, want at most 1000000`},
		{"no-such.yaml", `no-such.yaml: no such file or directory, ` + wanted},
		{missing, missing + `: no such file or directory, ` + wanted},
		{dir, dir + `: is a directory, ` + wanted},
	} {
		if _, err := Load(c.spec); fmt.Sprint(err) != "cluster: "+c.want {
			t.Errorf("%q:\n got %v\nwant cluster: %s", c.spec, err, c.want)
		}
	}
	if _, err := Load(missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v is not fs.ErrNotExist", err)
	}
}

// Ensure that a file is read, that its path stands in errors and its last element is the name, and that a longer file
// than allowed is refused.
func TestLoadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mixed.yaml")
	load := func(src string) (*Cluster, error) {
		if err := os.WriteFile(path, []byte(src), 0o600); err != nil {
			t.Fatal(err)
		}
		return Load(path)
	}
	if c, err := load("nodes: [{count: 8, gpus: 8, type: a100}, {count: 12, gpus: 4}]"); err != nil ||
		c.String() != "mixed.yaml (20 nodes, 112 GPUs)" {
		t.Errorf("%v, %v", c, err)
	}
	if c, err := load("nodes: [{gpus: 1}]"); err != nil || c.String() != "mixed.yaml (1 node, 1 GPU)" {
		t.Errorf("%v, %v", c, err)
	}
	if _, err := load("nodes: 3"); fmt.Sprint(err) != "cluster: "+path+":1:8: nodes 3, want a list of at least one" {
		t.Error(err)
	}
	if _, err := load(strings.Repeat("#\n", maxFile)); fmt.Sprint(err) != "cluster: "+path+
		":1:1: more than 1 MiB, want less" {
		t.Error(err)
	}
}
