package lint

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestReached finds the functions and methods of all modules that no program reaches.
//
// The programs are the packages main: their main, and every init and package variable of what they import. A function
// is reached when one that is reached names it. A method is reached when it is named, or when its type is used and
// satisfies an interface that has such a method: one of ours that is used, or any of another module, which we cannot
// see used. So nothing is reported that could run, short of reflection; a little that cannot is not reported.
//
// Tests reach nothing: what they alone need belongs into test files, or into a kit, which is a package that no program
// has and that is named ...test or imported by tests.
func TestReached(t *testing.T) {
	found, err := unreachedOfAll()
	if err != nil {
		t.Fatal(err)
	}
	judge(t, "reached", found)
}

// unreachedOfAll looks through all modules once.
var unreachedOfAll = sync.OnceValues(func() ([]finding, error) {
	p, err := loadProgram(root)
	if err != nil {
		return nil, err
	}
	if len(p.packages) < 50 {
		return nil, fmt.Errorf("%d packages were loaded, want all of both modules", len(p.packages))
	}
	p.walk()
	return p.unreached(), nil
})

// program is the types of all packages of our modules.
type program struct {
	files    *token.FileSet
	root     string
	packages map[string]*checked // by import path
	others   types.Importer
	exports  map[string]string // files of export data, by import path

	bodies  map[*types.Func]*ast.FuncDecl
	info    map[*ast.FuncDecl]*types.Info
	reached map[types.Object]bool
	linked  map[string]bool          // packages that a program has, by import path
	tested  map[string]bool          // packages that tests import, by import path
	live    map[*types.TypeName]bool // types of ours that reached code uses
	used    map[*types.Interface]bool
	called  map[string]bool    // methods of interfaces without a name that reached code calls, by name
	foreign []*types.Interface // interfaces of other modules
	queue   []types.Object
}

type checked struct {
	listed
	types *types.Package
	info  *types.Info
	files []*ast.File
}

// listed is what the go command says of a package.
type listed struct {
	ImportPath, Dir, Name, Export string
	GoFiles, CgoFiles             []string
	TestImports, XTestImports     []string
	Module                        *struct{ Path string }
}

func (l *listed) ours() bool {
	return l.Module != nil && (l.Module.Path == modulePath || strings.HasPrefix(l.Module.Path, modulePath+"/"))
}

const modulePath = "github.com/trainyard/trainyard"

// loadProgram type-checks the packages of the root module and of kube/ from source, and takes those of others as
// compiled.
func loadProgram(dir string) (*program, error) {
	p := &program{
		files: token.NewFileSet(), root: dir, packages: map[string]*checked{}, exports: map[string]string{},
		bodies: map[*types.Func]*ast.FuncDecl{}, info: map[*ast.FuncDecl]*types.Info{},
		reached: map[types.Object]bool{}, linked: map[string]bool{}, tested: map[string]bool{},
		live: map[*types.TypeName]bool{}, used: map[*types.Interface]bool{}, called: map[string]bool{},
	}
	var ours []*listed
	// Of a package of others that both modules use, kube's version counts: it is the newer.
	for _, module := range []string{"kube", "."} {
		packages, err := list(filepath.Join(dir, module))
		if err != nil {
			return nil, err
		}
		for _, l := range packages {
			if l.ours() {
				ours = append(ours, l)
				for _, path := range append(l.TestImports, l.XTestImports...) {
					p.tested[path] = true
				}
			} else if p.exports[l.ImportPath] == "" {
				p.exports[l.ImportPath] = l.Export
			}
		}
	}
	p.others = importer.ForCompiler(p.files, "gc", func(path string) (io.ReadCloser, error) {
		if p.exports[path] == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(p.exports[path])
	})
	// The go command lists what a package imports before it.
	for _, l := range ours {
		if p.packages[l.ImportPath] == nil {
			if err := p.check(l); err != nil {
				return nil, err
			}
		}
	}
	p.collectForeign()
	return p, nil
}

// list runs the go command. It compiles what is not in its cache.
func list(dir string) ([]*listed, error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Name,Export,GoFiles,CgoFiles,"+
		"TestImports,XTestImports,Module", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as in the Makefile
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return nil, fmt.Errorf("go list in %s: %w: %s", dir, err, exit.Stderr)
		}
		return nil, err
	}
	var packages []*listed
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		l := &listed{}
		if err := d.Decode(l); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		packages = append(packages, l)
	}
}

// Import is for the type checker.
func (p *program) Import(path string) (*types.Package, error) {
	if c := p.packages[path]; c != nil {
		return c.types, nil
	}
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	return p.others.Import(path)
}

func (p *program) check(l *listed) error {
	var files []*ast.File
	for _, name := range append(l.GoFiles, l.CgoFiles...) {
		f, err := parser.ParseFile(p.files, filepath.Join(l.Dir, name), nil,
			parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	return p.add(l, files)
}

// add type-checks a package.
func (p *program) add(l *listed, files []*ast.File) error {
	info := &types.Info{
		Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{}, Types: map[ast.Expr]types.TypeAndValue{},
	}
	conf := types.Config{Importer: p, FakeImportC: true}
	pkg, err := conf.Check(l.ImportPath, p.files, files, info)
	if err != nil {
		return err
	}
	p.packages[l.ImportPath] = &checked{*l, pkg, info, files}
	for _, f := range files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				if obj, ok := info.Defs[fn.Name].(*types.Func); ok {
					p.bodies[obj] = fn
					p.info[fn] = info
				}
			}
		}
	}
	return nil
}

// collectForeign finds the interfaces of other packages that ours import, and of those that these name.
func (p *program) collectForeign() {
	seen := map[*types.Package]bool{}
	var visit func(pkg *types.Package)
	visit = func(pkg *types.Package) {
		if seen[pkg] {
			return
		}
		seen[pkg] = true
		for _, to := range pkg.Imports() {
			visit(to)
		}
		if p.packages[pkg.Path()] != nil {
			return
		}
		for _, name := range pkg.Scope().Names() {
			if t, ok := pkg.Scope().Lookup(name).(*types.TypeName); ok {
				if i, ok := t.Type().Underlying().(*types.Interface); ok && i.NumMethods() > 0 {
					p.foreign = append(p.foreign, i)
				}
			}
		}
	}
	for _, c := range p.packages {
		visit(c.types)
	}
	errorType := types.Universe.Lookup("error").Type().Underlying().(*types.Interface)
	p.foreign = append(p.foreign, errorType)
}

// walk marks what is reached, until nothing more is.
func (p *program) walk() {
	linked := p.linked
	var link func(pkg *types.Package)
	link = func(pkg *types.Package) {
		if linked[pkg.Path()] {
			return
		}
		linked[pkg.Path()] = true
		if c := p.packages[pkg.Path()]; c != nil {
			p.startup(c)
		}
		for _, to := range pkg.Imports() {
			link(to)
		}
	}
	for _, c := range p.packages {
		if c.Name == "main" {
			link(c.types)
		}
	}
	for {
		for len(p.queue) > 0 {
			obj := p.queue[len(p.queue)-1]
			p.queue = p.queue[:len(p.queue)-1]
			if fn, ok := obj.(*types.Func); ok {
				if d := p.bodies[fn]; d != nil {
					p.uses(d, p.info[d])
				}
			}
		}
		p.dispatch()
		if len(p.queue) == 0 {
			return
		}
	}
}

// startup reaches what runs when the package is linked: main, init, and the values of its variables.
func (p *program) startup(c *checked) {
	for _, f := range c.files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && (d.Name.Name == "init" || d.Name.Name == "main" && c.Name == "main") {
					p.uses(d, c.info)
					p.reached[c.info.Defs[d.Name]] = true
				}
			case *ast.GenDecl:
				if d.Tok == token.VAR {
					p.values(d, c.info)
				}
			}
		}
	}
}

// values reaches what the values of variables use. `var _ I = T{}` only proves something, and reaches nothing.
func (p *program) values(d *ast.GenDecl, info *types.Info) {
	for _, s := range d.Specs {
		v, ok := s.(*ast.ValueSpec)
		if !ok || len(v.Names) == 1 && v.Names[0].Name == "_" {
			continue
		}
		p.uses(v, info)
	}
}

// uses reaches all that the node names.
func (p *program) uses(node ast.Node, info *types.Info) {
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if obj := info.Uses[n]; obj != nil {
				p.reach(obj)
			}
		case *ast.CompositeLit:
			p.liveType(info.Types[n].Type)
		case *ast.SelectorExpr:
			if s := info.Selections[n]; s != nil {
				p.reach(s.Obj())
			}
		}
		if e, ok := n.(ast.Expr); ok {
			p.liveType(info.Types[e].Type)
		}
		return true
	})
}

func (p *program) reach(obj types.Object) {
	switch obj := obj.(type) {
	case *types.Func:
		fn := obj.Origin()
		if recv := fn.Signature().Recv(); recv != nil && types.IsInterface(recv.Type()) {
			p.called[fn.Name()] = true
		}
		if !p.reached[fn] {
			p.reached[fn] = true
			p.queue = append(p.queue, fn)
		}
	case *types.TypeName:
		p.liveType(obj.Type())
	}
}

// liveType marks the named types that values of t hold or point to.
func (p *program) liveType(t types.Type) {
	switch t := t.(type) {
	case *types.Named:
		name := t.Origin().Obj()
		if name.Pkg() == nil || p.packages[name.Pkg().Path()] == nil || p.live[name] {
			return
		}
		p.live[name] = true
		p.liveType(t.Origin().Underlying())
	case *types.Alias:
		p.liveType(types.Unalias(t))
	case *types.Pointer:
		p.liveType(t.Elem())
	case *types.Slice:
		p.liveType(t.Elem())
	case *types.Array:
		p.liveType(t.Elem())
	case *types.Map:
		p.liveType(t.Key())
		p.liveType(t.Elem())
	case *types.Chan:
		p.liveType(t.Elem())
	case *types.Interface:
		p.used[t] = true
	case *types.Struct:
		for f := range t.Fields() {
			p.liveType(f.Type())
		}
	}
}

// dispatch reaches the methods of live types that may be called by an interface.
func (p *program) dispatch() {
	for name := range p.live {
		named, ok := name.Type().(*types.Named)
		if !ok || types.IsInterface(named) {
			continue
		}
		for sel := range types.NewMethodSet(types.NewPointer(named)).Methods() {
			fn, ok := sel.Obj().(*types.Func)
			if !ok || p.reached[fn.Origin()] || p.bodies[fn.Origin()] == nil {
				continue
			}
			if p.called[fn.Name()] || p.satisfies(named, fn) {
				p.reach(fn)
			}
		}
	}
}

// unnamed are methods that the standard library calls by interfaces without a name.
var unnamed = []string{"Unwrap", "Is", "As", "Timeout", "Temporary", "CloseWrite"}

// satisfies says whether an interface of ours that is used, or one of another module, has the method, and a pointer to
// the type satisfies it.
func (p *program) satisfies(named *types.Named, fn *types.Func) bool {
	if slices.Contains(unnamed, fn.Name()) {
		return true
	}
	ptr := types.NewPointer(named)
	has := func(i *types.Interface) bool {
		for m := range i.Methods() {
			if m.Name() == fn.Name() && (named.TypeParams().Len() > 0 || types.Implements(ptr, i)) {
				return true
			}
		}
		return false
	}
	for i := range p.used {
		if has(i) {
			return true
		}
	}
	return slices.ContainsFunc(p.foreign, has)
}

// isKit says whether a package is one that tests share, by its name or as they import it, and no program has.
func (p *program) isKit(pkg *types.Package) bool {
	return (strings.HasSuffix(pkg.Name(), "test") || p.tested[pkg.Path()]) && !p.linked[pkg.Path()]
}

// unreached lists the functions of ours that nothing reaches, less generated ones and those of kits.
func (p *program) unreached() []finding {
	var found []finding
	for fn, d := range p.bodies {
		pos := p.files.Position(d.Pos())
		if p.reached[fn] || d.Name.Name == "_" || d.Body == nil || p.isKit(fn.Pkg()) {
			continue
		}
		rel, err := filepath.Rel(p.root, pos.Filename)
		if abs, e := filepath.Abs(p.root); err != nil && e == nil {
			rel, _ = filepath.Rel(abs, pos.Filename)
		}
		rel = filepath.ToSlash(rel)
		if strings.HasPrefix(filepath.Base(rel), "zz_generated") {
			continue
		}
		name := strings.TrimPrefix(fn.Pkg().Path(), modulePath+"/") + "." + funcName(d)
		lines := p.files.Position(d.End()).Line - pos.Line + 1
		found = append(found, finding{
			at:   fmt.Sprintf("%s:%d", rel, pos.Line),
			what: fmt.Sprintf("%s: no program reaches it (%d lines)", name, lines),
			name: name,
		})
	}
	slices.SortFunc(found, func(a, b finding) int { return strings.Compare(a.at+a.name, b.at+b.name) })
	return found
}

func TestReachedFinds(t *testing.T) {
	text := `package main

import (
	"fmt"
	"sort"
)

func main() {
	direct()
	var s speaker = &loud{}
	s.speak()
	fmt.Println(shown{}, value)
	sort.Sort(byLength{})
	f := (*loud).shout
	f(nil)
	generic[int](3)
}

var value = initial()
var _ = proof()

func initial() int     { return 1 }
func proof() int       { return 1 }
func direct()          { func() { indirect() }() }
func indirect()        {}
func dead()            { deadToo() }
func deadToo()         {}
func generic[T any](T) {}

type speaker interface{ speak() }

type loud struct{}

func (l *loud) speak()    {}
func (l *loud) shout()    {}
func (l *loud) whisper()  {}
func (l *loud) Len() int  { return 0 }

type shown struct{}

func (shown) String() string { return "" }

type byLength struct{}

func (byLength) Len() int           { return 0 }
func (byLength) Less(i, j int) bool { return false }
func (byLength) Swap(i, j int)      {}

type unused struct{}

func (unused) speak()         {}
func (unused) String() string { return "" }
`
	p := &program{
		files: token.NewFileSet(), root: ".", packages: map[string]*checked{}, others: importer.Default(),
		bodies: map[*types.Func]*ast.FuncDecl{}, info: map[*ast.FuncDecl]*types.Info{},
		reached: map[types.Object]bool{}, linked: map[string]bool{}, tested: map[string]bool{},
		live: map[*types.TypeName]bool{}, used: map[*types.Interface]bool{}, called: map[string]bool{},
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	build.Default.GOROOT = strings.TrimSpace(string(root)) // tests that are built with -trimpath know none
	p.others = importer.ForCompiler(p.files, "source", nil)
	f, err := parser.ParseFile(p.files, "main.go", text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.add(&listed{ImportPath: "main", Name: "main"}, []*ast.File{f}); err != nil {
		t.Fatal(err)
	}
	p.collectForeign()
	p.walk()
	var got []string
	for _, f := range p.unreached() {
		_, name, _ := strings.Cut(f.name, ".")
		got = append(got, name)
	}
	slices.Sort(got)
	want := "dead deadToo loud.Len loud.whisper proof unused.String unused.speak"
	if strings.Join(got, " ") != want {
		t.Errorf("unreached: %v, want %s", got, want)
	}
}
