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
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local"
	"github.com/trainyard/trainyard/driver/local/shim"
)

// Bounds of a working tree that is kept.
const (
	maxTree     = 256 << 20 // bytes of its files
	maxFiles    = 100_000
	maxLinks    = 10_000
	maxListed   = 32 << 20         // bytes of what git prints
	gitPatience = 45 * time.Second // a submission may take a minute
)

// gitTree keeps working trees of git as they are. It writes to an index and a folder of objects of its own, so that
// nothing in the repository changes.
type gitTree struct {
	ctx                  context.Context // of all it does
	root, scratch, state string
	env                  []string
}

// newTree writes the working tree that a folder is in, less ignored files, which become links; see shim.State.NewTree.
func newTree(ctx context.Context, state shim.State, folder string) (t task.Tree, put func() error, drop func(),
	err error) {
	ctx, cancel := context.WithTimeout(ctx, gitPatience)
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
		"core.safecrlf=false", "-c", "core.hooksPath=" + os.DevNull}, args...)...)
	var out, said listing
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = g.root, &out, &said, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its filters end with it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	for _, kv := range local.Passed() {
		if !strings.HasPrefix(kv, "GIT_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(append(cmd.Env, "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C"), g.env...)
	if err := cmd.Run(); err != nil {
		text, _, _ := strings.Cut(strings.TrimSpace(said.b.String()), "\n")
		if g.ctx.Err() != nil {
			text = fmt.Sprintf("it had not ended within %v; a filter of the repository may hang", gitPatience)
		}
		return "", fmt.Errorf("%w: snapshot: git of %s: git %s: %w: %s", api.ErrRefused, g.root, args[0], err, text)
	}
	return out.b.String(), nil
}

// listing is what git prints, of which there is an end.
type listing struct{ b bytes.Buffer }

// Write fails where it would be longer.
func (l *listing) Write(p []byte) (int, error) {
	if l.b.Len()+len(p) > maxListed {
		return 0, fmt.Errorf("more than %d MiB of names of files", maxListed>>20)
	}
	return l.b.Write(p)
}

// write writes the tree to a folder that is not there yet.
func (g *gitTree) write(to string) (t task.Tree, err error) {
	folder := g.root
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
		"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + quoted(paths[2])}
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
		exit := (*exec.ExitError)(nil)
		if t.Changed = differs != nil; t.Changed && (!errors.As(differs, &exit) || exit.ExitCode() != 1) {
			return t, differs
		}
	}
	if _, err = g.run("checkout-index", "--all", "--prefix="+to+"/"); err != nil {
		return t, err
	}
	made, err := g.complete(to, folder)
	sum := sha256.Sum256([]byte(strings.Join(append(made, strings.TrimSpace(tree), t.Root), "\x00")))
	t.Sum = hex.EncodeToString(sum[:])
	return t, err
}

// complete makes in a copy what git does not keep: links to what is ignored, and the folder that the job runs in if
// that is empty. It returns their names.
func (g *gitTree) complete(to, folder string) ([]string, error) {
	err := os.MkdirAll(to, 0o700)
	if err != nil {
		return nil, err
	}
	made, err := g.link(to)
	if err != nil {
		return nil, err
	}
	if folder, err = filepath.EvalSymlinks(folder); err != nil {
		return nil, err
	}
	rel, err := filepath.Rel(g.root, folder)
	if err != nil || !filepath.IsLocal(rel) {
		return nil, fmt.Errorf("%w: snapshot: git of %s: %s is not in it", api.ErrRefused, g.root, folder)
	}
	if _, missing := os.Stat(filepath.Join(to, rel)); errors.Is(missing, fs.ErrNotExist) {
		return append(made, rel), os.MkdirAll(filepath.Join(to, rel), 0o700)
	}
	return made, nil
}

// quoted is a path as git takes it in a list of them.
func quoted(path string) string {
	if strings.ContainsAny(path, ":\"") {
		return strconv.Quote(path)
	}
	return path
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
	if inside := g.ours(); inside != "" {
		words = append(words, ":(exclude,literal)"+inside)
	}
	return words
}

// ours is the path in the tree of a state folder of ours, "" if that is elsewhere.
func (g *gitTree) ours() string {
	state, err := filepath.EvalSymlinks(g.state)
	if err != nil {
		return ""
	}
	rel, err := filepath.Rel(g.root, state)
	if err != nil || !filepath.IsLocal(rel) || rel == "." {
		return ""
	}
	return rel
}

// check refuses a tree that is too large, before anything of it is read.
func (g *gitTree) check() error {
	names, err := g.run(append([]string{"ls-files", "-z", "--exclude-standard", "--cached", "--others", "--"},
		g.whole()...)...)
	if n := strings.Count(names, "\x00"); n > maxFiles {
		return fmt.Errorf("%w: snapshot: git of %s: %d files, want at most %d: have git ignore what is data",
			api.ErrRefused, g.root, n, maxFiles)
	}
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

// link makes links to what is ignored, such as data and environments of Python: relative paths to them hold. It returns
// their names, sorted.
func (g *gitTree) link(to string) (names []string, err error) {
	out, err := g.run("status", "--porcelain", "-z", "--no-renames", "--ignored=matching", "--untracked-files=all")
	ours := g.ours()
	for entry := range strings.SplitSeq(out, "\x00") {
		name, ignored := strings.CutPrefix(entry, "!! ")
		name = strings.TrimSuffix(name, "/")
		if !ignored || !filepath.IsLocal(name) || ours != "" && strings.HasPrefix(name+"/", ours+"/") {
			continue
		}
		names = append(names, name)
		if len(names) > maxLinks {
			return nil, fmt.Errorf("%w: snapshot: git of %s: more than %d files are ignored one by one: have git "+
				"ignore their folder", api.ErrRefused, g.root, maxLinks)
		}
		at := filepath.Join(to, name)
		bad := os.MkdirAll(filepath.Dir(at), 0o700)
		if bad == nil {
			bad = os.Symlink(filepath.Join(g.root, name), at)
		}
		err = errors.Join(err, bad)
	}
	slices.Sort(names)
	return names, err
}
