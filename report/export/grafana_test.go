package export

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the dashboards of docs/grafana")

// Ensure that docs/grafana has the dashboards as they are written, that panels lie apart and have numbers of their own,
// units and queries, and that nothing has a fixed uid.
func TestGrafana(t *testing.T) {
	for _, name := range Dashboards {
		var b bytes.Buffer
		if err := Grafana(&b, name); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("..", "..", "docs", "grafana", name+".json")
		if *rewrite {
			if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		have, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(have, b.Bytes()) {
			t.Errorf("%s is not what the code gives; write it with -rewrite", path)
		}
		checkBoard(t, name, b.Bytes())
	}
	if err := Grafana(new(bytes.Buffer), "moon"); err == nil || !strings.Contains(err.Error(), "machine") {
		t.Errorf("a dashboard moon: %v, want an error that lists them", err)
	}
}

func checkBoard(t *testing.T, name string, text []byte) {
	t.Helper()
	var board struct {
		UID    string
		ID     *int
		Panels []struct {
			ID          int
			Title       string
			GridPos     struct{ X, Y, W, H int }
			Datasource  struct{ UID string }
			FieldConfig struct{ Defaults struct{ Unit string } }
			Targets     []struct{ Expr, RefID string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	if board.UID != "" || board.ID != nil {
		t.Errorf("%s: uid %q, id %v, want none", name, board.UID, board.ID)
	}
	taken, ids, titles := map[[2]int]string{}, map[int]bool{}, map[string]bool{}
	for _, p := range board.Panels {
		if ids[p.ID] || titles[p.Title] || p.ID == 0 || p.Title == "" {
			t.Errorf("%s: panel %d %q, want a number and a title of its own", name, p.ID, p.Title)
		}
		ids[p.ID], titles[p.Title] = true, true
		if p.Datasource.UID != "${datasource}" || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 {
			t.Errorf("%s: %s: data source %q, unit %q, %d queries, want the variable, a unit and some", name, p.Title,
				p.Datasource.UID, p.FieldConfig.Defaults.Unit, len(p.Targets))
		}
		if g := p.GridPos; g.X < 0 || g.X+g.W > 24 || g.W < 1 || g.H < 1 {
			t.Errorf("%s: %s lies at %+v, want it within 24 columns", name, p.Title, g)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("%s: %s lies over %s", name, p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}
