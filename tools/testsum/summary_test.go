package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// stream builds go test -json lines from "action package test output" rows; a dash is an empty field.
func stream(rows ...[4]string) string {
	var b strings.Builder
	for _, r := range rows {
		for i := range r {
			if r[i] == "-" {
				r[i] = ""
			}
		}
		fmt.Fprintf(&b, "{\"Action\":%q,\"Package\":%q,\"Test\":%q,\"Output\":%q}\n", r[0], r[1], r[2], r[3])
	}
	return b.String()
}

func TestRun(t *testing.T) {
	passing := stream(
		[4]string{"output", "a", "TestX", "=== RUN   TestX\n"},
		[4]string{"output", "a", "TestX", "--- PASS: TestX (0.00s)\n"},
		[4]string{"pass", "a", "TestX", "-"},
		[4]string{"output", "a", "-", "PASS\n"},
		[4]string{"output", "a", "-", "ok  \ta\t0.01s\n"},
		[4]string{"pass", "a", "-", "-"},
	)
	skipping := stream(
		[4]string{"output", "b", "TestData", "=== RUN   TestData\n"},
		[4]string{"output", "b", "TestData", "    b_test.go:7: no shared data\n"},
		[4]string{"output", "b", "TestData", "--- SKIP: TestData (0.00s)\n"},
		[4]string{"skip", "b", "TestData", "-"},
		[4]string{"skip", "b", "FuzzRead/seed#0", "-"},
		[4]string{"pass", "b", "FuzzRead", "-"},
		[4]string{"output", "b", "-", "ok  \tb\t0.01s\n"},
		[4]string{"pass", "b", "-", "-"},
	)
	failing := stream(
		[4]string{"output", "c", "TestGood", "only of interest to itself\n"},
		[4]string{"pass", "c", "TestGood", "-"},
		[4]string{"output", "c", "TestBad", "=== RUN   TestBad\n"},
		[4]string{"output", "c", "TestBad", "--- FAIL: TestBad (0.00s)\n"},
		[4]string{"output", "c", "TestBad", "    c_test.go:9: got 1, want 2\n"},
		[4]string{"fail", "c", "TestBad", "-"},
		[4]string{"output", "c", "-", "FAIL\tc\t0.01s\n"},
		[4]string{"fail", "c", "-", "-"},
	)
	broken := stream(
		[4]string{"build-output", "-", "-", "d.go:1:1: expected 'package'\n"},
		[4]string{"output", "d", "-", "FAIL\td [build failed]\n"},
		[4]string{"fail", "d", "-", "-"},
	)
	unfinished := stream([4]string{"pass", "e", "TestX", "-"})

	tests := []struct {
		name   string
		in     string
		noskip bool
		want   string // of standard output
		err    string
	}{
		{"a package that passes is one line", passing, true, "ok  \ta\t0.01s\n1 passed, 0 failed\n", ""},
		{"other lines are copied", "go: downloading x\n" + passing, true,
			"go: downloading x\nok  \ta\t0.01s\n1 passed, 0 failed\n", ""},
		{"a skip fails, a skipped fuzz input does not", skipping, true,
			"ok  \tb\t0.01s\nskipped, counted as failed:\n  b TestData: b_test.go:7: no shared data\n1 passed, 1 " +
				"failed\n",
			"tests were skipped"},
		{"a skip is fine without -noskip", skipping, false, "ok  \tb\t0.01s\n1 passed, 0 failed\n", ""},
		{"a failure shows the output of its test", failing, true,
			"--- FAIL: TestBad (0.00s)\n    c_test.go:9: got 1, want 2\nFAIL\tc\t0.01s\n1 passed, 1 failed\n",
			"tests failed"},
		{"a package that does not build is one failure", broken, true,
			"d.go:1:1: expected 'package'\nFAIL\td [build failed]\n0 passed, 1 failed\n", "tests failed"},
		{"a package that never ends is one failure", unfinished, true,
			"FAIL\te [never ended]\n1 passed, 1 failed\n", "tests failed"},
		{"nothing is not success", "", true, "0 passed, 0 failed\n", "no test ran"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			err := run(strings.NewReader(tt.in), &out, options{noskip: tt.noskip})
			if out.String() != tt.want {
				t.Errorf("printed\n%s\nwant\n%s", out.String(), tt.want)
			}
			if got := fmt.Sprint(err); got != tt.err && (err != nil || tt.err != "") {
				t.Errorf("error %q, want %q", got, tt.err)
			}
		})
	}
}

func TestRunWritesClosingLineToFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "total")
	var out strings.Builder
	in := stream([4]string{"pass", "a", "TestX", "-"}, [4]string{"pass", "a", "-", "-"})
	if err := run(strings.NewReader(in), &out, options{noskip: true, total: file}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != "1 passed, 0 failed\n" || out.String() != "" {
		t.Errorf("file %q, standard output %q", got, out.String())
	}
}

// Ensure that the slowest tests are added to the file, the slowest first, without subtests.
func TestSlowest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "slow")
	if err := os.WriteFile(file, []byte("     9.0 z TestBefore\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	var in strings.Builder
	for i := range 12 {
		fmt.Fprintf(&in, `{"Action":"pass","Package":"p","Test":"Test%d","Elapsed":%d}`+"\n", i, i)
	}
	in.WriteString(`{"Action":"pass","Package":"p","Test":"Test1/sub","Elapsed":50}` + "\n")
	in.WriteString(`{"Action":"pass","Package":"p","Elapsed":99}` + "\n")
	if err := run(strings.NewReader(in.String()), &strings.Builder{}, options{slowest: file}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) != 11 || lines[0] != "     9.0 z TestBefore" || lines[1] != "    11.0 p Test11" ||
		lines[10] != "     2.0 p Test2" {
		t.Errorf("slowest: %q", lines)
	}
}
