package layertest

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// moduleRoot returns the folder of the nearest go.mod above the test.
func moduleRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = up
	}
}

func TestLayers(t *testing.T) {
	fsys := os.DirFS(moduleRoot(t))
	module, packages, err := load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range check(module, packages) {
		t.Error(line)
	}
	missed, err := unseen(fsys, packages)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range missed {
		t.Error(line)
	}
}

// unseen returns one line for each folder of the table that has Go files although load saw no package of it: a check
// that saw nothing would pass. It looks for the files by another way than load, one and two folders deep.
func unseen(fsys fs.FS, packages []*source) ([]string, error) {
	seen := map[string]bool{}
	for _, p := range packages {
		top, _, _ := strings.Cut(p.folder, "/")
		seen[top] = true
	}
	var missed []string
	for _, r := range rows {
		for _, pattern := range r.patterns {
			top, _, _ := strings.Cut(pattern, "/")
			has, err := hasPackage(fsys, top)
			if err != nil {
				return nil, err
			}
			if has && !seen[top] {
				missed = append(missed, fmt.Sprintf("layer %d: %s has Go files, but no package of it was checked",
					r.layer, top))
			}
		}
	}
	if !seen["sched"] {
		missed = append(missed, "layer 0: sched was not checked")
	}
	return missed, nil
}

func hasPackage(fsys fs.FS, top string) (bool, error) {
	for _, depth := range []string{"*.go", "*/*.go"} {
		files, err := fs.Glob(fsys, path.Join(top, depth))
		if err != nil {
			return false, err
		}
		for _, f := range files {
			if !strings.HasSuffix(f, "_test.go") && path.Base(path.Dir(f)) != "testdata" {
				return true, nil
			}
		}
	}
	return false, nil
}

// TestUnseen proves that a load which loses packages is noticed.
func TestUnseen(t *testing.T) {
	fsys := fstest.MapFS{
		"sched/job.go":        {},
		"driver/sim/sim.go":   {},
		"engine/run_test.go":  {},
		"trace/testdata/x.go": {},
	}
	tests := []struct {
		folders []string
		want    string
	}{
		{[]string{"sched", "driver/sim"}, ""},
		{[]string{"sched"}, "layer 4: driver has Go files, but no package of it was checked"},
		{[]string{"driver/sim"}, "layer 0: sched has Go files, but no package of it was checked; layer 0: sched was " +
			"not checked"},
	}
	for _, tt := range tests {
		var packages []*source
		for _, f := range tt.folders {
			packages = append(packages, &source{folder: f})
		}
		missed, err := unseen(fsys, packages)
		if got := strings.Join(missed, "; "); err != nil || got != tt.want {
			t.Errorf("with %v: %q, %v, want %q", tt.folders, got, err, tt.want)
		}
	}
}

// TestCheckFinds proves that the check can fail, rule by rule, and that it leaves alone what is allowed. Each case is
// one file of a module m; want is part of the one line expected, or empty.
func TestCheckFinds(t *testing.T) {
	tests := []struct{ name, file, text, want string }{
		{"a lower layer", "stage/order/a.go", `import "m/model/dist"`, ""},
		{"a higher layer", "model/price/a.go", `import "m/stage/order"`, "layer 1 imports layer 2"},
		{"the same layer", "stage/order/a.go", `import "m/stage/place"`, "layer 2 imports layer 2"},
		{"a named exception", "model/price/a.go", `import "m/model/speedup"`, ""},
		{"own subfolders", "system/pal/a.go", `import "m/system/pal/score"`, ""},
		{"the table of names", "system/a.go", `import "m/system/pal"`, ""},
		{"the table of names from a system", "system/pal/a.go", `import "m/system"`, "not the reverse"},
		{"systems of each other", "system/pal/a.go", `import "m/system/tiresias"`, "layer 4 imports layer 4"},
		{"a system and a driver", "system/pal/a.go", `import "m/driver/sim"`, "decides from the View alone"},
		{"a verb and a replica", "cli/plan/a.go", `import "m/replica/gavel"`, "presets alone"},
		{"a preset and a replica", "simulate/a.go", `import "m/replica/gavel"`, ""},
		{"a driver and a system", "driver/sim/a.go", `import "m/system/pal"`, "never decides"},
		{"a driver and a stage", "driver/sim/a.go", `import "m/stage/order"`, "never decides"},
		{"a driver and the truth", "driver/sim/a.go", `import "m/trace"`, ""},
		{"the engine and a stage", "engine/a.go", `import "m/stage/order"`, "it knows none"},
		{"the engine and a model", "engine/a.go", `import "m/model/price"`, "it knows none"},
		{"a policy and the truth", "stage/order/a.go", `import "m/trace"`, "ground truth"},
		{"third parties in a model", "model/price/a.go", `import "example.com/x"`, ""},
		{"third parties in sched", "sched/a.go", `import "example.com/x"`, "stands below everything"},
		{"anything above from internal", "internal/heap/a.go", `import "m/model/price"`, "at most"},
		{"sched from internal", "internal/heap/a.go", `import "m/sched"`, ""},
		{"third parties in internal", "internal/heap/a.go", `import "example.com/x"`, "stands below everything"},
		{"third parties in the YAML reader", "internal/strictyaml/a.go", `import "example.com/x"`, ""},
		{"the YAML reader in a model", "model/price/a.go", `import "m/internal/strictyaml"`, "opens files"},
		{"the YAML reader in a reader", "cluster/a.go", `import "m/internal/strictyaml"`, ""},
		{"a package without a row", "utils/a.go", ``, "in no layer"},
		{"a package without a row, imported", "cmd/trainyard/a.go", `import "m/utils"`, "in no layer"},
		{"files in a driver", "driver/sim/a.go", `import "os"`, ""},
		{"files in a model", "model/price/a.go", `import "os"`, "no I/O"},
		{"the network below net", "stage/order/a.go", `import "net/http"`, "no I/O"},
		{"a package that starts alike", "engine/a.go", `import "log2"`, ""},
		{"structured logs", "engine/a.go", `import "log/slog"`, "return errors and events"},
		{"locks", "metrics/a.go", `import "sync/atomic"`, "one goroutine"},
		{"the clock", "engine/a.go", "import \"time\"\nvar _ = time.Now()", "time comes from the View"},
		{"the clock as a value", "engine/a.go", "import t \"time\"\nvar now = t.Now", "time comes from the View"},
		{"the clock by a dot", "engine/a.go", "import . \"time\"\nvar now = Now()", "time comes from the View"},
		{"a duration", "engine/a.go", "import \"time\"\nvar d = time.Second", ""},
		{"global randomness", "stage/order/a.go", "import \"math/rand/v2\"\nvar x = rand.IntN(3)",
			"never from the global one"},
		{"a seeded source", "stage/order/a.go", "import \"math/rand/v2\"\nvar x = rand.New(rand.NewPCG(1, 2))", ""},
		{"a goroutine", "engine/a.go", "func f() { go f() }", "the order of its work"},
		{"a goroutine in a driver", "driver/local/a.go", "func f() { go f() }", ""},
		{"an impure helper", "engine/a.go", `import "m/internal/files"`, "engine is pure and imports it"},
		{"a test file", "engine/a_test.go", `import "os"`, ""},
		{"test data", "engine/testdata/a.go", `import "os"`, ""},
		{"a nested module", "kube/driver/a.go", `import "m/driver/sim"`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			module, packages, err := load(fstest.MapFS{
				"go.mod":                  {Data: []byte("module m // a comment\n\ngo 1.26\n")},
				"kube/go.mod":             {Data: []byte("module m/kube\n")},
				"internal/files/files.go": {Data: []byte("package files\n\nimport \"os\"\n")},
				tt.file:                   {Data: []byte("package a\n\n" + tt.text + "\n")},
			})
			if err != nil {
				t.Fatal(err)
			}
			got := check(module, packages)
			switch {
			case tt.want == "" && len(got) > 0:
				t.Errorf("found %q, want nothing", got)
			case tt.want != "" && (len(got) != 1 || !strings.Contains(got[0], tt.want)):
				t.Errorf("found %q, want one line with %q", got, tt.want)
			}
		})
	}
}
