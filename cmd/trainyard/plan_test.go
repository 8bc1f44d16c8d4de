package main

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/internal/shareddata"
)

// scriptNear is json for figures, which may differ by 1e-9.
func scriptNear(ts *testscript.TestScript, neg bool, args []string) {
	var doc any
	if err := json.Unmarshal([]byte(ts.ReadFile("stdout")), &doc); neg || err != nil {
		ts.Fatalf("near: %v", err)
	}
	for _, arg := range args {
		key, text, _ := strings.Cut(arg, "=")
		want, err := strconv.ParseFloat(text, 64)
		ts.Check(err)
		value, err := lookUp(doc, strings.Split(key, "."))
		ts.Check(err)
		if got, ok := value.(float64); !ok || math.Abs(got-want) > 1e-9*max(1, math.Abs(want)) {
			ts.Fatalf("near: %s is %v, want %v", key, value, want)
		}
	}
}

// Ensure that what docs/guide/plans.md shows is what a script runs: every file and output, and every command.
func TestPlanDoc(t *testing.T) {
	doc, err := os.ReadFile("../../docs/guide/plans.md")
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("testdata/script/plan.txtar")
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for i, block := range strings.Split(string(doc), "```") {
		if i%2 == 1 {
			_, text, _ := strings.Cut(block, "\n")
			if shown++; !strings.Contains(string(script), text) {
				t.Errorf("no script has\n%s", text)
			}
			continue
		}
		for line := range strings.Lines(block) {
			// that is TestPlanPollux
			if command, ok := strings.CutPrefix(line, "    trainyard "); ok && !strings.Contains(command, "$D") {
				if shown++; !strings.Contains(string(script), "exec trainyard "+command) {
					t.Errorf("no script runs %s", command)
				}
			}
		}
	}
	if shown != 9 {
		t.Errorf("%d blocks and commands, want 9", shown)
	}
}

// Ensure that the profiles of Pollux give the plan that was computed independently from some of the widths, or a better
// one: 1417 s at 128 GPUs.
func TestPlanPollux(t *testing.T) {
	data := filepath.Join(shareddata.DataDir(t), "pollux/osdi21")
	var out, stderr bytes.Buffer
	code := run(context.Background(), []string{"plan", "--workload", data + "/workloads/workload-6.csv", "--profiles",
		data + "/traces", "--window", "28800",
		"--restart-overhead", "cifar10=50,deepspeech2=25,bert=120,yolov3=80,imagenet=250,ncf=15", "--max-gpus",
		"ncf=1,64", "--budget", "128", "--json"}, &out, &stderr)
	if code != term.ExitOK {
		t.Fatal(stderr.String())
	}
	var doc struct {
		AvgJCT float64 `json:"avg_jct_h"`
		Usage  float64 `json:"usage_gpus"`
		Least  float64 `json:"min_budget"`
	}
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if jct := 3600 * doc.AvgJCT; jct > 1417.5 || jct < 0.95*1417 || math.Abs(doc.Usage-128) > 1e-9 ||
		math.Abs(doc.Least-86.3) > 0.1 {
		t.Errorf("mean JCT %v s with %v GPUs, at least %v", jct, doc.Usage, doc.Least)
	}
}
