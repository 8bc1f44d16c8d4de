//go:build !invariants

package python

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const interpreter = "/usr/bin/python3"

// lacking returns what keeps this machine from testing the package, "" for nothing.
var lacking = sync.OnceValue(func() string {
	out, err := exec.Command(interpreter, "-c", "import hatchling, mypy, torch.distributed").CombinedOutput()
	if err == nil {
		return ""
	}
	return fmt.Sprintf("%s lacks a module: apt-get install --no-install-recommends python3-torch python3-hatchling "+
		"mypy (%v)\n%s", interpreter, err, out)
})

// python runs the interpreter in this folder, and returns what it wrote.
func python(t *testing.T, args ...string) string {
	t.Helper()
	if missing := lacking(); missing != "" {
		t.Skip(missing)
	}
	cmd := exec.CommandContext(t.Context(), interpreter, args...)
	cmd.Env = append(cmd.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH=src", "SOURCE_DATE_EPOCH=1700000000")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Ensure that the parts pass their own tests: checkpoints cut at any byte, each sample once an epoch, signals, lines.
func TestParts(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"test_sampler", "test_checkpoints", "test_job", "test_hosts",
		"test_callbacks"} {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			if out := python(t, "-m", "unittest", "-v", "tests/"+part+".py"); !strings.Contains(out, "\nOK\n") {
				t.Error(out)
			}
		})
	}
}

// Ensure that types are checked strictly, for the oldest Python that is promised, and that its syntax suffices.
func TestTypes(t *testing.T) {
	t.Parallel()
	python(t, "-m", "mypy", "--cache-dir="+t.TempDir(), "--config-file=pyproject.toml", "src")
	python(t, "-c", "import ast, pathlib\nfor p in pathlib.Path('src').rglob('*.py'):\n    "+
		"ast.parse(p.read_text(), feature_version=(3, 9))")
}

// Ensure that the wheel is built without a network, to the same bytes, and works where nothing else is installed.
func TestWheel(t *testing.T) {
	t.Parallel()
	var wheels [2][]byte
	var path string
	for i := range wheels {
		path = filepath.Join(t.TempDir(), "wheel")
		python(t, "-m", "hatchling", "build", "-t", "wheel", "-d", path)
		found, err := filepath.Glob(filepath.Join(path, "trainyard-*-py3-none-any.whl"))
		if err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		if wheels[i], err = os.ReadFile(found[0]); err != nil {
			t.Fatal(err)
		}
		path = found[0]
	}
	if string(wheels[0]) != string(wheels[1]) {
		t.Error("two builds of the wheel differ")
	}
	site := t.TempDir()
	python(t, "-m", "zipfile", "-e", path, site)
	out := python(t, "-I", "-S", "-c", "import sys; sys.path.insert(0, "+fmt.Sprintf("%q", site)+")\n"+
		"import trainyard\nwith trainyard.job() as ty: print(sum(ty.steps(range(5))), trainyard.__file__)")
	if want := "10 " + filepath.Join(site, "trainyard", "__init__.py") + "\n"; out != want {
		t.Errorf("%q, want %q", out, want)
	}
}

// Ensure that the wheel with the program is built without a network and has a program in bin that runs, next to the
// package.
func TestWheelWithProgram(t *testing.T) {
	t.Parallel()
	_ = python(t, "-c", "import hatchling")
	dir, site := t.TempDir(), t.TempDir()
	if said, failed := exec.Command("../hack/wheel", dir).CombinedOutput(); failed != nil {
		t.Fatalf("%v\n%s", failed, said)
	}
	found, err := filepath.Glob(filepath.Join(dir, "trainyard-*-py3-none-manylinux_2_17_x86_64.whl"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	out := python(t, "-c", "import sys, zipfile\nz = zipfile.ZipFile(sys.argv[1])\nz.extractall(sys.argv[2])\n"+
		"n = [i for i in z.infolist() if i.filename.endswith('.data/data/bin/trainyard')]\n"+
		"print(n[0].filename, oct(n[0].external_attr >> 16 & 0o111))", found[0], site)
	name, mode, _ := strings.Cut(strings.TrimSpace(out), " ")
	if mode != "0o111" {
		t.Errorf("the program has the mode %s, want one that runs", mode)
	}
	program := filepath.Join(site, name)
	if err = os.Chmod(program, 0o700); err != nil { // as installers do by that mode
		t.Fatal(err)
	}
	if said, failed := exec.Command(program, "version").CombinedOutput(); failed != nil {
		t.Errorf("%v\n%s", failed, said)
	}
	if _, err = os.Stat(filepath.Join(site, "trainyard", "py.typed")); err != nil {
		t.Error(err)
	}
}
