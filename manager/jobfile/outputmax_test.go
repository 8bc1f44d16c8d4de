package jobfile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/attempt/task"
)

// Ensure that sizes of outputs are read in their units, within their bounds, and nothing else.
func TestOutputMax(t *testing.T) {
	for text, want := range map[string]int64{"64MiB": 64 << 20, "65536KiB": 64 << 20, "1GiB": 1 << 30, "3TiB": 3 << 40,
		"1PiB": 1 << 50} {
		f := parse(t, "jobs: [{command: [a], output: {max: "+text+"}}]")
		if got := f.Jobs[0].Task.MaxOutput; got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
	none := parse(t, "defaults: {output: {max: 1GiB}}\njobs: [{command: [a], output: {}}]").Jobs[0].Task.MaxOutput
	if none != 0 {
		t.Errorf("none: %d", none)
	}
	for _, text := range []string{"-1", "0", "1", "1024", "1KiB", "1MiB", "1023KiB", "63MiB", "-64MiB", "2PiB",
		"1025TiB", "1GB", "1gib", "1.5GiB", "01GiB", "1 GiB", "+1GiB", "0x1GiB",
		"99999999999999999999PiB", "16384PiB", "GiB",
		"''", "[1GiB]", "{a: 1}", "true", "1EiB", "8388608PiB"} {
		_, err := Parse([]byte("jobs:\n- command: [a]\n  output: {max: "+text+"}"), "f")
		if err == nil || !strings.Contains(fmt.Sprint(err), "f:3:17: ") || !strings.Contains(fmt.Sprint(err),
			"want a size from 64MiB to 1PiB, as in 500MiB or 1GiB") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Ensure that files of a job's own are read, and that what makes no sense is refused with what is wanted.
func TestOutputFile(t *testing.T) {
	t.Parallel()
	got := parse(t, "jobs: [{command: [a], output: {file: x-%j, error: y, mode: once}}]").Jobs[0].Task.Output
	if (got != task.OutputFile{File: "x-%j", Error: "y", Mode: "once"}) {
		t.Errorf("%+v", got)
	}
	got = parse(t, "jobs: [{command: [a], output: {file: x, mode: append}}]").Jobs[0].Task.Output
	if (got != task.OutputFile{File: "x"}) {
		t.Errorf("%+v", got)
	}
	for output, want := range map[string]string{
		"{file: x, max: 1GiB}":  "max next to file, want one of them",
		"{error: x}":            "output without file",
		"{mode: once}":          "output without file",
		"{file: x, mode: wrap}": `output mode "wrap"`,
		"{file: x-%N}":          `output file "x-%N" has %N, want %j`,
		"{file: x, error: a/}":  `output error "a/", want the path of a file`,
		"{file: [x]}":           "output file",
	} {
		_, err := Parse([]byte("jobs:\n- command: [a]\n  output: "+output), "f")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "jobfile: f:") {
			t.Errorf("%s: %v, want %s", output, err, want)
		}
	}
}
