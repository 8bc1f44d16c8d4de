package manager

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/manager/jobfile"
)

// gitIn runs git in a folder.
func gitIn(t *testing.T, folder string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b", "-c", "gc.auto=0"},
		args...)...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// contents returns what is in a folder, by path: the bytes and the mode of files, where links lead.
func contents(t *testing.T, folder string, skip func(path string) bool) map[string]string {
	t.Helper()
	found := make(map[string]string)
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(folder, path)
		if err != nil || e.IsDir() && !skip(rel) {
			return err
		}
		switch {
		case skip(rel) && e.IsDir():
			return fs.SkipDir
		case skip(rel):
		case e.Type() == fs.ModeSymlink:
			to, bad := os.Readlink(path)
			found[rel], err = "link to "+to, bad
		default:
			b, bad := os.ReadFile(path)
			info, worse := e.Info()
			if bad != nil || worse != nil {
				return fmt.Errorf("%w, %w", bad, worse)
			}
			found[rel] = fmt.Sprintf("%v %s", info.Mode()&0o100, b)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Ensure that of random repositories a copy of the working tree is what is there less what is ignored, which is linked,
// and that the repository is the same, byte for byte, whatever was staged, changed or removed meanwhile.
func TestKeptTreesAreAsTheWorkingTree(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Fatal("no git: ", err)
	}
	none := func(string) bool { return false }
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 24))
		folder, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		gitIn(t, folder, "init", "-q")
		var names []string
		for i := range 12 {
			names = append(names, []string{"a", "b/c", "b/d e", "ü/x", "data/in", "k.log"}[rng.IntN(6)]+fmt.Sprint(i%4))
		}
		names = append(names, "data/"+"in9", "b/deep/er/k.log8")
		write := func(name string) {
			path := filepath.Join(folder, name)
			err = os.MkdirAll(filepath.Dir(path), 0o700)
			if err != nil {
				t.Fatal(err)
			}
			_ = os.Remove(path)
			if rng.IntN(6) == 0 && !strings.Contains(name, ".log") {
				err = os.Symlink("a0", path)
			} else {
				err = os.WriteFile(path, []byte(fmt.Sprint(rng.IntN(4))), []os.FileMode{0o600, 0o700}[rng.IntN(2)])
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(folder, ".gitignore"), []byte("data/\n*.log*\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		commits := rng.IntN(3)
		for range commits + 1 {
			for _, name := range names {
				if rng.IntN(2) == 0 {
					write(name)
				}
			}
			if commits > 0 {
				gitIn(t, folder, "add", "--all")
				gitIn(t, folder, "commit", "-q", "--allow-empty", "-m", "x")
			}
		}
		for _, name := range names { // at once: files that seem unchanged to git by size and second
			switch rng.IntN(4) {
			case 0:
				write(name)
			case 1:
				_ = os.Remove(filepath.Join(folder, name))
			case 2:
				if strings.Contains(name, "a") && rng.IntN(2) == 0 {
					gitIn(t, folder, "add", "--all")
				}
			}
		}
		before := contents(t, filepath.Join(folder, ".git"), none)
		state := shim.State(t.TempDir())
		if seed%2 > 0 { // in the tree, and not in the copy
			state = shim.State(filepath.Join(folder, "st"))
		}
		for range 2 {
			tree, err := new(scripts).keepTree(t.Context(), state, folder)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			root, err := state.KeptTree(tree.Sum)
			if err != nil {
				t.Fatal(err)
			}
			ignored := func(path string) bool {
				return path == ".git" || path == "data" || path == "st" || strings.Contains(path, ".log")
			}
			got, want := contents(t, root, ignored), contents(t, folder, ignored)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("seed %d: got\n%v\nwant\n%v", seed, got, want)
			}
			for path := range contents(t, folder, func(p string) bool { return p == ".git" || p == "st" }) {
				mine, _ := os.ReadFile(filepath.Join(root, path))
				theirs, _ := os.ReadFile(filepath.Join(folder, path))
				if string(mine) != string(theirs) {
					t.Errorf("seed %d: %s is %q in the copy, want %q", seed, path, mine, theirs)
				}
			}
		}
		if after := contents(t, filepath.Join(folder, ".git"), none); fmt.Sprint(before) != fmt.Sprint(after) {
			t.Errorf("seed %d: the repository is another", seed)
		}
		if digests, left, err := state.Snapshots(); err != nil || len(digests) != 1 || len(left) > 0 {
			t.Errorf("seed %d: %v, %v, %v, want one snapshot", seed, digests, left, err)
		}
	}
}

// Ensure that others submit while git works on a tree for long, and that what it writes is counted meanwhile.
func TestOthersSubmitWhileATreeIsWritten(t *testing.T) {
	dir, folder := t.TempDir(), t.TempDir()
	gitIn(t, folder, "init", "-q")
	gitIn(t, folder, "config", "filter.slow.clean", "touch started; until [ -e go ]; do sleep 0.02; done; cat")
	for name, text := range map[string]string{".gitattributes": "*.bin filter=slow\n", ".gitignore": "started\ngo\n",
		"a.bin": "a", "job.sh": "true"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	k, slow := &scripts{}, make(chan error, 1)
	tree := []jobfile.Job{{Task: task.Task{Dir: folder, Command: []string{"true"}, Tree: task.Tree{Root: folder}}}}
	go func() {
		_, err := k.keep(t.Context(), dir, tree, nil)
		slow <- err
	}()
	for {
		if _, err := os.Stat(filepath.Join(folder, "started")); err == nil {
			break
		}
		select {
		case err := <-slow:
			t.Fatalf("the tree is kept already: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	path := filepath.Join(folder, "job.sh")
	script := []jobfile.Job{{Task: task.Task{Dir: folder, Command: []string{"sh", path}, Script: task.Script{At: 1}}}}
	_, bad := k.keep(t.Context(), dir, script, map[string]string{path: "true"})
	if bad != nil || script[0].Task.Script.Sum == "" {
		t.Errorf("another's script is not kept: %v", bad)
	}
	k.mu.Lock()
	if len(k.turns) != 1 {
		t.Errorf("%d trees are being written, want 1", len(k.turns))
	}
	k.mu.Unlock()
	if err := os.WriteFile(filepath.Join(folder, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := <-slow
	sum := tree[0].Task.Tree.Sum
	if err != nil || sum == "" || len(k.turns) != 0 || k.pending[sum] != 1 {
		t.Errorf("tree %q, %d being written, %v", sum, len(k.turns), err)
	}
}

// Ensure that what is ignored is in a copy as it is at each submission, as is the folder that a job runs in.
func TestCopiesHaveWhatGitDoesNotKeep(t *testing.T) {
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	gitIn(t, folder, "init", "-q")
	if err := os.WriteFile(filepath.Join(folder, ".gitignore"), []byte("data\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	state, k, sums := shim.State(t.TempDir()), new(scripts), make(map[string]bool)
	for _, dir := range []string{".", "exp/one", "data", "."} { // data is there from the third on
		at := filepath.Join(folder, dir)
		if err := os.MkdirAll(at, 0o700); err != nil {
			t.Fatal(err)
		}
		tree, err := k.keepTree(t.Context(), state, at)
		if err != nil {
			t.Fatalf("%s: %v", dir, err)
		}
		root, err := state.KeptTree(tree.Sum)
		if err != nil {
			t.Fatal(err)
		}
		if _, missing := os.Stat(filepath.Join(root, dir)); missing != nil {
			t.Errorf("the folder of the job: %v", missing)
		}
		to, err := os.Readlink(filepath.Join(root, "data"))
		if there := len(sums) >= 2; there != (err == nil) || there && to != filepath.Join(folder, "data") {
			t.Errorf("%s: data is %q, %v", dir, to, err)
		}
		sums[tree.Sum] = true
	}
	if len(sums) != 3 {
		t.Errorf("%d copies, want 3: what is alike is kept once", len(sums))
	}
}
