package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/contexts"
)

func TestMain(m *testing.M) { testscript.Main(withPrograms{m}, map[string]func(){"trainyard": main}) }

// TestScripts runs the contract of the command line, one file per matter. In addition to the usual commands there are
//
//	code N trainyard ...   runs the command, which must end with exit code N and say why on one line of stderr
//	json KEY=VALUE...      stdout of the last command is one document with these values, as in results.0.system="fifo"
//	gz FILE [N]            writes FILE.gz, cut to its first N bytes
//	near KEY=NUMBER...     json for figures, which may differ by 1e-9
//
// Every script finds the bundled trace as testbed.csv and, as worked.csv, the three jobs of the worked example.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *rewrite,
		Setup: func(e *testscript.Env) error {
			e.Setenv(client.StateVariable, filepath.Join(e.WorkDir, "none.state"))
			return copyTraces(e)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": scriptCode,
			"json": scriptJSON,
			"gz":   scriptGzip,
			"near": scriptNear,
		},
	})
}

// TestRunScripts runs the contract of the verbs about real jobs, with the real program. In addition to the commands of
// TestScripts there is
//
//	ends N trainyard ...   runs the command, which must end with exit code N, whatever it says
//	until REGEXP COMMAND   runs the command until it succeeds and its stdout matches
//
// A manager that a script serves has the folder day.state.
func TestRunScripts(t *testing.T) { runScripts(t, "testdata/run", "") }

// TestRunScriptsByContext runs the same scripts with verbs about jobs going to the manager by a context whose command
// is trainyard connect, instead of its folder: what they print is the same.
func TestRunScriptsByContext(t *testing.T) {
	dir := t.TempDir()
	scripts, err := filepath.Glob("testdata/run/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatal(scripts, err)
	}
	for _, name := range scripts {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text = folderAlone.ReplaceAll(text, nil)
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	runScripts(t, dir, filepath.Join(programs, byContextFolder))
}

// folderAlone matches a paragraph of a script about a folder that no manager serves: no context of kind command leads
// there.
var folderAlone = regexp.MustCompile(`(?ms)^# Of the folder alone: .*?\n\n`)

// runScripts runs the scripts of a folder. instead, if set, is a folder with what takes the place of the program.
func runScripts(t *testing.T, dir, instead string) {
	testscript.Run(t, testscript.Params{
		Dir:           dir,
		UpdateScripts: *rewrite && instead == "",
		Setup: func(e *testscript.Env) error {
			there := contexts.Context{Name: "there", Command: []string{filepath.Join(programs, "trainyard"), "connect"}}
			config := filepath.Join(e.WorkDir, "config")
			file := &contexts.File{Contexts: []contexts.Context{there}}
			if err := file.Save(filepath.Join(config, "trainyard", "contexts.yaml")); err != nil {
				return err
			}
			e.Setenv(client.StateVariable, filepath.Join(e.WorkDir, "day.state"))
			e.Setenv("XDG_CONFIG_HOME", config)
			e.Setenv("PATH", strings.Join([]string{instead, programs, e.Getenv("PATH")},
				string(filepath.ListSeparator)))
			e.Defer(func() {
				if err := endJobs(e.WorkDir); err != nil {
					t.Error(err)
				}
			})
			return copyTraces(e)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":  scriptCode,
			"ends":  scriptEnds,
			"json":  scriptJSON,
			"until": scriptUntil,
		},
	})
}

const worked = "job_id,submit_s,num_gpus,duration_s\nJ1,0,2,2\nJ2,0,1,8\nJ3,0,2,6\n"

func copyTraces(e *testscript.Env) error {
	text, err := os.ReadFile(exampleTrace)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(e.WorkDir, "testbed.csv"), text, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(e.WorkDir, "worked.csv"), []byte(worked), 0o644)
}

func scriptEnds(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: COMMAND N COMMAND...")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

func scriptUntil(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until REGEXP COMMAND...")
	}
	want, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	for deadline := time.Now().Add(50 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if err := ts.Exec(args[1], args[2:]...); err == nil && want.MatchString(ts.ReadFile("stdout")) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("still not: %s", want)
		}
	}
}

func scriptCode(ts *testscript.TestScript, neg bool, args []string) {
	scriptEnds(ts, neg, args)
	got := args[0]
	said := ts.ReadFile("stderr")
	if got != "0" && (!strings.HasPrefix(said, "trainyard: ") || strings.Count(said, "\n") != 1) {
		ts.Fatalf("stderr is not one line that starts with trainyard:")
	}
	if got != "0" && ts.ReadFile("stdout") != "" {
		ts.Fatalf("stdout is not empty")
	}
}

func scriptJSON(ts *testscript.TestScript, neg bool, args []string) {
	var doc any
	if err := json.Unmarshal([]byte(ts.ReadFile("stdout")), &doc); neg || err != nil {
		ts.Fatalf("json: %v", err)
	}
	for _, arg := range args {
		key, want, _ := strings.Cut(arg, "=")
		value, err := lookUp(doc, strings.Split(key, "."))
		ts.Check(err)
		got, err := json.Marshal(value)
		ts.Check(err)
		if string(got) != want {
			ts.Fatalf("json: %s is %s, want %s", key, got, want)
		}
	}
}

// lookUp follows path into a document; a number is an index.
func lookUp(doc any, path []string) (any, error) {
	for i, step := range path {
		switch v := doc.(type) {
		case map[string]any:
			next, ok := v[step]
			if !ok {
				return nil, fmt.Errorf("json: no key %s", strings.Join(path[:i+1], "."))
			}
			doc = next
		case []any:
			n, err := strconv.Atoi(step)
			if err != nil || n >= len(v) {
				return nil, fmt.Errorf("json: no element %s of %d", strings.Join(path[:i+1], "."), len(v))
			}
			doc = v[n]
		default:
			return nil, fmt.Errorf("json: nothing below %s", strings.Join(path[:i], "."))
		}
	}
	return doc, nil
}

func scriptGzip(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: gz FILE [N]")
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(ts.ReadFile(args[0])))
	ts.Check(err)
	ts.Check(w.Close())
	if len(args) > 1 {
		n, err := strconv.Atoi(args[1])
		ts.Check(err)
		b.Truncate(n)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".gz"), b.Bytes(), 0o644))
}
