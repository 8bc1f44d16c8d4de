package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/internal/reference"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
	"github.com/trainyard/trainyard/trace"
)

const (
	repository = "../.."
	madeBy     = "\n<!-- Written by `make reference` from %s. Do not edit. -->\n\n"
)

// page returns the head of a page that is written from some source.
func page(title, source, about string) *strings.Builder {
	b := new(strings.Builder)
	fmt.Fprintf(b, "# %s\n"+madeBy+"%s\n", title, source, about)
	return b
}

// Ensure that the page of systems has every system with its keys, as they are declared.
func TestReferenceSystems(t *testing.T) {
	b := page("Systems and their keys", "`system/table.go` and the keys declared in `system/*`",
		"`--set SYSTEM.KEY=VALUE` sets a key of one system, `--set '*.KEY=VALUE'` of all that take it.")
	table := system.Table()
	rows := [][]string{{"system", "what it does", "what it assumes", "source", "keys of its own"}}
	for i := range table {
		s := &table[i]
		var own []string
		for _, k := range s.Keys {
			own = append(own, reference.Code(k.Name))
		}
		rows = append(rows, []string{reference.Code(s.Name), s.Line, s.Assumes, s.Source, strings.Join(own, ", ")})
	}
	b.WriteString("\n" + reference.Table(rows...))
	for _, list := range []struct {
		title string
		keys  key.List
	}{
		{"Keys of every system", system.Common}, {"Keys of what provides nodes", system.Provisioning},
		{"Keys of the simulated cluster", simulate.RuntimeKeys},
	} {
		fmt.Fprintf(b, "\n## %s\n\n%s", list.title, keysOf(list.keys))
	}
	for i := range table {
		if s := &table[i]; len(s.Keys) > 0 {
			fmt.Fprintf(b, "\n## %s\n\n%s", s.Name, keysOf(s.Keys))
		}
	}
	rows = [][]string{{"preset", "what it reproduces", "systems"}}
	for i := range simulate.Presets {
		p := &simulate.Presets[i]
		rows = append(rows, []string{reference.Code(p.Name), p.Line, strings.Join(p.Systems(), ", ")})
	}
	b.WriteString("\n## Presets\n\n" + reference.Table(rows...))
	reference.Compare(t, repository, "docs/reference/systems.md", b.String())
}

func keysOf(keys key.List) string {
	rows := [][]string{{"key", "default", "for real jobs", "meaning", "where"}}
	for i := range keys {
		k := &keys[i]
		rows = append(rows, []string{reference.Code(k.Name), reference.Code(k.Default), reference.Code(k.Live), k.Doc,
			placesOf(k.Use)})
	}
	return reference.Table(rows...)
}

// placesOf says where a key may be given; "" is anywhere.
func placesOf(use key.Use) string {
	var places []string
	for _, p := range []struct {
		use  key.Use
		word string
	}{{key.Simulation, "simulation"}, {key.Machine, "machine"}, {key.Cluster, "Kubernetes"}} {
		if use&p.use != 0 {
			places = append(places, p.word)
		}
	}
	return strings.Join(places, ", ")
}

// Ensure that the page of the command line has every verb with its flags.
func TestReferenceCommands(t *testing.T) {
	b := page("Command line", "the commands of the program", "Every verb and flag of `trainyard`. "+
		"`trainyard VERB --help` prints the same.")
	root := newRoot()
	fmt.Fprintf(b, "\n%s\n\n## Flags of every verb\n\n%s", root.Long, flagsOf(root.PersistentFlags()))
	describeVerbs(b, root)
	reference.Compare(t, repository, "docs/reference/cli.md", b.String())
}

func describeVerbs(b *strings.Builder, parent *cobra.Command) {
	for _, c := range parent.Commands() {
		if !c.IsAvailableCommand() {
			continue
		}
		about := c.Long
		if about == "" {
			about = c.Short
		}
		fmt.Fprintf(b, "\n## %s\n\n```\n%s\n```\n\n```text\n%s\n```\n", c.CommandPath(), c.UseLine(),
			strings.TrimSpace(about))
		if c.HasLocalFlags() {
			b.WriteString("\n" + flagsOf(c.LocalNonPersistentFlags()))
		}
		describeVerbs(b, c)
	}
}

func flagsOf(set *pflag.FlagSet) string {
	rows := [][]string{{"flag", "default", "meaning"}}
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, about := pflag.UnquoteUsage(f)
		name := strings.TrimSpace("--" + f.Name + " " + value)
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		def := f.DefValue
		if def == "false" || def == "[]" || def == "0" || def == "0s" {
			def = ""
		}
		rows = append(rows, []string{reference.Code(name), reference.Code(def), about})
	})
	if len(rows) == 1 {
		return ""
	}
	return reference.Table(rows...)
}

// Ensure that the page of events has every kind with its word, number and fields.
func TestReferenceEvents(t *testing.T) {
	b := page("Events", "`sched/eventform.go`",
		"A log is a header line and one JSON line per event. Fields whose value is zero are left out, except those "+
			"that\nthe table names. The number of a kind is in the hash of a log and never changes.")
	kinds := reference.Consts(t, "../../sched/eventform.go", "EventKind")
	causes := map[sched.Cause]string{sched.ByDriver: "driver", sched.ByUser: "user", sched.ByEngine: "engine"}
	rows := [][]string{{"number", "kind", "caused by", "place in an instant", "named fields", "meaning"}}
	for k := sched.NoEvent + 1; k < sched.EventKinds; k++ {
		f := k.Form()
		rows = append(rows, []string{strconv.Itoa(int(k)), reference.Code(f.Word), causes[f.Cause],
			strconv.Itoa(int(f.Turn)), fieldsOf(f), kinds[k].Comment})
	}
	b.WriteString("\n" + reference.Table(rows...))
	for _, list := range []struct {
		title string
		words []string
	}{
		{"Outcomes", words(sched.RejectedJob)}, {"States of a node", words(sched.NodeGone)},
		{"Commands", sched.JobCommanded.Form().Words}, {"Orders", sched.Ordered.Form().Words},
		{"States of a GPU", sched.GPUChanged.Form().Words},
	} {
		fmt.Fprintf(b, "\n## %s\n\n", list.title)
		for i, word := range list.words {
			if word != "" {
				fmt.Fprintf(b, "- %d: `%s`\n", i, word)
			}
		}
	}
	reference.Compare(t, repository, "docs/reference/events.md", b.String())
}

// words returns the words of the numbers 0 to last.
func words[T interface {
	~uint8
	String() string
}](last T) (all []string) {
	for i := T(0); i <= last; i++ {
		all = append(all, i.String())
	}
	return all
}

// fieldsOf lists the names that a kind gives its fields.
func fieldsOf(f *sched.EventForm) string {
	var all []string
	for _, field := range []struct {
		name string
		has  bool
	}{
		{"job", f.Job != sched.NotNamed}, {"attempt", f.Attempt}, {"node", f.Node != sched.NotNamed}, {"pool", f.Pool},
		{f.Value, f.Value != ""}, {f.Code, f.Code != ""}, {f.From, f.From != ""},
	} {
		if field.has {
			all = append(all, reference.Code(field.name))
		}
	}
	return strings.Join(all, ", ")
}

// Ensure that the page of reasons has every wait code and every reason word.
func TestReferenceReasons(t *testing.T) {
	b := page("Reasons", "`explain/waiting.go` and `sched/target.go`", "Words for programs. `trainyard why` and the "+
		"reason of a TrainingJob say the same in sentences.")
	rows := [][]string{{"code", "meaning"}}
	for i, c := range reference.Consts(t, "../../explain/waiting.go", "Code") {
		if word := explain.Code(i).String(); word != "" {
			rows = append(rows, []string{reference.Code(word), c.Comment})
		}
	}
	b.WriteString("\n## Why a job waits\n\n`Have`, `Need`, `Limit`, `Until` and `Jobs` are fields of the answer.\n\n" +
		reference.Table(rows...))
	rows = [][]string{{"word", "meaning"}}
	for i, c := range reference.Consts(t, "../../sched/target.go", "ReasonCode") {
		if word := sched.ReasonCode(i).String(); word != "" {
			rows = append(rows, []string{reference.Code(word), c.Comment})
		}
	}
	b.WriteString("\n## Why a decision was taken\n\nNumbers that a reason holds are in brackets.\n\n" +
		reference.Table(rows...))
	reference.Compare(t, repository, "docs/reference/reasons.md", b.String())
}

var namedCode = regexp.MustCompile(`(\d+) ([a-z ]+)`)

// Ensure that the page of exit codes has every code that the help names and the program declares.
func TestReferenceExitCodes(t *testing.T) {
	b := page("Exit codes", "`cli/term/exitcodes.go` and `trainyard --help`",
		"Every verb ends with one of these codes.")
	comments := make(map[string]string)
	for _, c := range reference.Consts(t, "../../cli/term/exitcodes.go", "") {
		comments[c.Value] = c.Comment
	}
	_, list, _ := strings.Cut(newRoot().Long, "Exit codes: ")
	rows := [][]string{{"code", "name", "when"}}
	list = strings.ReplaceAll(list, "\n", " ")
	for _, m := range namedCode.FindAllStringSubmatch(list, -1) {
		if _, declared := comments[m[1]]; !declared {
			t.Errorf("exit code %s is not declared", m[1])
		}
		rows = append(rows, []string{m[1], m[2], comments[m[1]]})
	}
	if len(rows) != len(comments)+1 {
		t.Errorf("help names %d codes, %d are declared", len(rows)-1, len(comments))
	}
	b.WriteString("\n" + reference.Table(rows...))
	reference.Compare(t, repository, "docs/reference/exit-codes.md", b.String())
}

var (
	documentName = regexp.MustCompile(`^trainyard\.[a-z-]+/v\d+$`)
	memoryName   = regexp.MustCompile(`^[a-z-]+/\d+$`)
)

// Ensure that the page of formats has every trace format, every document that verbs print, and every saved memory.
func TestReferenceFormats(t *testing.T) {
	b := page("Formats", "`trace` and the names that the code gives its documents", "What Trainyard reads and writes.")
	rows := [][]string{{"format", "what it is", "columns"}}
	for _, f := range trace.Formats() {
		rows = append(rows, traceFormat(f))
	}
	documents, memories := namesOfFormats(t)
	fmt.Fprintf(b, "\n## Traces\n\n%s\n## Documents of `--json`\n\nFields are only ever added to a document.\n\n%s"+
		"\n## Saved memories of systems\n\nA state folder, and a record on Kubernetes, names the format of each "+
		"part.\n\n%s",
		reference.Table(rows...), listOf(documents), listOf(memories))
	reference.Compare(t, repository, "docs/reference/formats.md", b.String())
}

func listOf(names []string) string {
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "- `%s`\n", name)
	}
	return b.String()
}

// namesOfFormats returns the documents that string literals of the program name, and the words that methods Format
// return.
func namesOfFormats(t *testing.T) (documents, memories []string) {
	t.Helper()
	err := filepath.WalkDir(repository, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "bin" || d.Name() == "kube" || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		documents = append(documents, literals(f, documentName)...)
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Name.Name == "Format" && fn.Recv != nil {
				memories = append(memories, literals(fn, memoryName)...)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(documents)
	slices.Sort(memories)
	return slices.Compact(documents), slices.Compact(memories)
}

// literals returns the strings below n that match.
func literals(n ast.Node, match *regexp.Regexp) (all []string) {
	ast.Inspect(n, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if s, err := strconv.Unquote(lit.Value); err == nil && match.MatchString(s) {
				all = append(all, s)
			}
		}
		return true
	})
	return all
}

func traceFormat(f trace.Format) []string {
	columns := strings.Join(f.Columns, ", ")
	if len(f.Optional) > 0 {
		columns += "; optional: " + strings.Join(f.Optional, ", ")
	}
	if len(f.Ignored) > 0 {
		columns += "; read over: " + strings.Join(f.Ignored, ", ")
	}
	if f.Headless {
		columns += "; no header line"
	}
	return []string{reference.Code(f.Name), f.Line, columns}
}
