// Package promql tests the dashboards of docs/grafana with Prometheus' own parser.
package promql

import (
	"context"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

const root = "../.."

// scraped are labels that Prometheus gives to all that it reads.
var scraped = []string{"instance"}

// expressions returns the expressions of a dashboard, with an interval in place of Grafana's.
func expressions(t *testing.T, name string) (list []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "grafana", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Targets []struct {
				Expr   string `json:"expr"`
				Legend string `json:"legendFormat"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	for _, p := range board.Panels {
		for _, q := range p.Targets {
			list = append(list, strings.ReplaceAll(q.Expr, "$__rate_interval", "5m"))
		}
	}
	if len(list) < 10 {
		t.Fatalf("%s: %d expressions, want more", name, len(list))
	}
	return list
}

// used returns the metrics of expressions with the labels that are asked of each, and checks that counters alone are
// asked for their rate.
func used(t *testing.T, list []string) map[string][]string {
	t.Helper()
	metrics := map[string][]string{}
	p := parser.NewParser(parser.Options{})
	for _, text := range list {
		expr, err := p.ParseExpr(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
			v, ok := node.(*parser.VectorSelector)
			if !ok {
				return nil
			}
			metrics[v.Name] = append(metrics[v.Name], matched(v)...)
			for _, above := range path {
				if a, isSum := above.(*parser.AggregateExpr); isSum {
					metrics[v.Name] = append(metrics[v.Name], a.Grouping...)
				}
				if c, isCall := above.(*parser.Call); isCall && (c.Func.Name == "rate" || c.Func.Name == "increase") &&
					!strings.HasSuffix(v.Name, "_total") && !strings.HasSuffix(v.Name, "_bucket") {
					t.Errorf("%s: %s of %s, which is no counter", text, c.Func.Name, v.Name)
				}
			}
			return nil
		})
	}
	return metrics
}

// matched returns the labels that a selector looks at.
func matched(v *parser.VectorSelector) (names []string) {
	for _, m := range v.LabelMatchers {
		if m.Name != model.MetricNameLabel {
			names = append(names, m.Name)
		}
	}
	return names
}

// missing reports each metric and label that is asked for and is not there.
func missing(t *testing.T, asked map[string][]string, there map[string][]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		have, ok := there[name]
		if !ok {
			t.Errorf("no metric %s, want one", name)
			continue
		}
		for _, label := range asked[name] {
			if !slices.Contains(have, label) && !slices.Contains(scraped, label) {
				t.Errorf("%s has no label %s, only %v", name, label, have)
			}
		}
	}
}

// Ensure that each expression about a machine parses, and that what it asks for is in the figures of a real manager.
func TestMachine(t *testing.T) {
	missing(t, used(t, expressions(t, "machine")), served(t))
}

// served starts a manager, trains a job, and returns the names of its figures with their labels.
func served(t *testing.T) map[string][]string {
	t.Helper()
	dir := t.TempDir()
	bin := filepath.Join(dir, "trainyard")
	build := exec.Command("go", "build", "-o", bin, "./cmd/trainyard")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	state := filepath.Join(dir, "s")
	env := append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_STATE_HOME="+dir, "TRAINYARD_STATE="+state)
	serve := exec.Command(bin, "serve", "--slots", "2")
	serve.Env = env
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = serve.Process.Signal(syscall.SIGTERM)
		_ = serve.Wait()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for {
		submit := exec.CommandContext(ctx, bin, "submit", "--gpus", "1", "--", "true")
		submit.Env = env
		out, err := submit.CombinedOutput()
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		time.Sleep(100 * time.Millisecond)
	}
	wait := exec.CommandContext(ctx, bin, "wait", "0")
	wait.Env = env
	if out, err := wait.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return figures(ctx, t, filepath.Join(state, "control"))
}

// figures reads /metrics by a socket.
func figures(ctx context.Context, t *testing.T, socket string) map[string][]string {
	t.Helper()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dial}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	read := expfmt.NewTextParser(model.UTF8Validation)
	families, err := read.TextToMetricFamilies(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	there := map[string][]string{}
	for name, f := range families {
		names := []string{}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				names = append(names, l.GetName())
			}
			if m.GetHistogram() != nil {
				there[name+"_bucket"] = append(names, "le")
			}
		}
		there[name] = names
	}
	return there
}

// Ensure that each expression about a cluster parses, and that what it asks for is in the reference of the controller's
// figures, which the code writes, or is one of the process.
func TestCluster(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "reference", "kubernetes.md"))
	if err != nil {
		t.Fatal(err)
	}
	there := map[string][]string{"process_resident_memory_bytes": nil}
	row := regexp.MustCompile("(?m)^\\| `(trainyard_[a-z_]+)` \\| ([a-z,]*) *\\|")
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		there[m[1]] = strings.Split(m[2], ",")
		there[m[1]+"_bucket"] = []string{"le"}
	}
	missing(t, used(t, expressions(t, "cluster")), there)
}
