package manager

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local/shim"
)

// Bounds of a working tree that is kept.
const (
	maxTree     = 256 << 20 // bytes of its files
	gitPatience = 5 * time.Minute
)

// gitTree keeps working trees of git as they are. It writes to an index and a folder of objects of its own, so that
// nothing in the repository changes.
type gitTree struct {
	ctx                  context.Context // of all it does
	root, scratch, state string
	env                  []string
}

// newTree writes the working tree that a folder is in, less ignored files, which become links; see shim.State.NewTree.
func newTree(state shim.State, folder string) (t task.Tree, put func() error, drop func(), err error) {
	ctx, cancel := context.WithTimeout(context.Background(), gitPatience)
	defer cancel()
	put, drop, err = state.NewTree(func(to, scratch string) (string, error) {
		g := &gitTree{ctx: ctx, root: folder, scratch: scratch, state: string(state)}
		t, err = g.write(to)
		return t.Sum, err
	})
	if err != nil && !errors.Is(err, api.ErrRefused) {
		err = fmt.Errorf("snapshot: git of %s: %w", folder, err)
	}
	return t, put, drop, err
}

// run runs git in the tree and returns what it printed.
func (g *gitTree) run(args ...string) (string, error) {
	cmd := exec.CommandContext(g.ctx, "git", append([]string{"-c", "core.fsmonitor=false", "-c",
		"core.splitIndex=false", "-c", "core.untrackedCache=false", "-c", "advice.addEmbeddedRepo=false", "-c",
		"core.safecrlf=false"}, args...)...)
	var out, said bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = g.root, &out, &said
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "GIT_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(append(cmd.Env, "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C"), g.env...)
	if err := cmd.Run(); err != nil {
		text, _, _ := strings.Cut(strings.TrimSpace(said.String()), "\n")
		return "", fmt.Errorf("%w: snapshot: git of %s: git %s: %w: %s", api.ErrRefused, g.root, args[0], err, text)
	}
	return out.String(), nil
}

// write writes the tree to a folder that is not there yet.
func (g *gitTree) write(to string) (t task.Tree, err error) {
	where, err := g.run("rev-parse", "--path-format=absolute", "--show-toplevel", "--git-path", "index", "--git-path",
		"objects")
	if err != nil {
		return t, err
	}
	paths := strings.Split(strings.TrimSuffix(where, "\n"), "\n")
	if len(paths) != 3 {
		return t, fmt.Errorf("%w: snapshot: git of %s: a path with a line break, want another", api.ErrRefused, g.root)
	}
	g.root, t.Root = paths[0], paths[0]
	index, objects := filepath.Join(g.scratch, "index"), filepath.Join(g.scratch, "objects")
	err = errors.Join(os.Mkdir(objects, 0o700), copyIndex(paths[1], index))
	if err != nil {
		return t, err
	}
	g.env = []string{"GIT_INDEX_FILE=" + index, "GIT_OBJECT_DIRECTORY=" + objects,
		"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + paths[2]}
	err = g.check()
	if err != nil {
		return t, err
	}
	if _, err = g.run(append([]string{"add", "--all", "--"}, g.whole()...)...); err != nil {
		return t, err
	}
	err = g.noModules()
	if err != nil {
		return t, err
	}
	tree, err := g.run("write-tree")
	if err != nil {
		return t, err
	}
	if commit, none := g.run("rev-parse", "--verify", "--quiet", "HEAD^{commit}"); none == nil {
		t.Commit = strings.TrimSpace(commit)
		_, differs := g.run("diff-index", "--cached", "--quiet", "HEAD")
		t.Changed = differs != nil
	}
	if _, err = g.run("checkout-index", "--all", "--prefix="+to+"/"); err == nil {
		err = errors.Join(os.MkdirAll(to, 0o700), g.link(to))
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(tree) + "\x00" + t.Root))
	t.Sum = hex.EncodeToString(sum[:])
	return t, err
}

// copyIndex copies the index of a repository, which may have none yet. The copy has the time of the original, by which
// git knows files that may have changed since they were looked at, though they seem not to.
func copyIndex(from, to string) error {
	info, err := os.Stat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	b, bad := os.ReadFile(from)
	err = errors.Join(err, bad)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(to, b, 0o600), os.Chtimes(to, info.ModTime(), info.ModTime()))
}

// whole are the words by which git takes the whole tree, but for a state folder of ours in it.
func (g *gitTree) whole() []string {
	words := []string{"."}
	state, err := filepath.EvalSymlinks(g.state)
	if err != nil {
		return words
	}
	if rel, bad := filepath.Rel(g.root, state); bad == nil && filepath.IsLocal(rel) && rel != "." {
		words = append(words, ":(exclude,literal)"+rel)
	}
	return words
}

// check refuses a tree that is too large, before anything of it is read.
func (g *gitTree) check() error {
	names, err := g.run(append([]string{"ls-files", "-z", "--exclude-standard", "--cached", "--others", "--"},
		g.whole()...)...)
	size := int64(0)
	for name := range strings.SplitSeq(names, "\x00") {
		if info, gone := os.Lstat(filepath.Join(g.root, name)); gone == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
	}
	if size > maxTree {
		return fmt.Errorf("%w: snapshot: git of %s: %d MiB of files, want at most %d: have git ignore what is data",
			api.ErrRefused, g.root, size>>20, maxTree>>20)
	}
	return err
}

// noModules refuses a tree with submodules, which have repositories of their own.
func (g *gitTree) noModules() error {
	out, err := g.run("ls-files", "-z", "--stage")
	for entry := range strings.SplitSeq(out, "\x00") {
		if strings.HasPrefix(entry, "160000 ") {
			_, name, _ := strings.Cut(entry, "\t")
			return fmt.Errorf("%w: snapshot: git of %s: %s is a submodule, want none: its files are in a repository "+
				"of its own", api.ErrRefused, g.root, name)
		}
	}
	return err
}

// link makes links to what is ignored, such as data and environments of Python: relative paths to them hold.
func (g *gitTree) link(to string) error {
	out, err := g.run("status", "--porcelain", "-z", "--no-renames", "--ignored=matching", "--untracked-files=all")
	for entry := range strings.SplitSeq(out, "\x00") {
		name, ignored := strings.CutPrefix(entry, "!! ")
		name = strings.TrimSuffix(name, "/")
		if !ignored || !filepath.IsLocal(name) {
			continue
		}
		at := filepath.Join(to, name)
		bad := os.MkdirAll(filepath.Dir(at), 0o700)
		if bad == nil {
			bad = os.Symlink(filepath.Join(g.root, name), at)
		}
		err = errors.Join(err, bad)
	}
	return err
}
