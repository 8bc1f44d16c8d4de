package browser

import (
	"encoding/json"
	"maps"
	"testing"
)

// Ensure that the published figures of an experiment stand before ours, as in --json.
func TestPublished(t *testing.T) {
	args := []string{"experiment", "eaco", "--seeds", "1"}
	var doc struct{ Published map[string]float64 }
	if err := json.Unmarshal(run(t, append(args, "--json")...), &doc); err != nil {
		t.Fatal(err)
	}
	b := open(t, 600, 900, true)
	b.show(report(t, args...))
	b.goTo("#/figures")
	got := value[map[string]float64](b, `Object.fromEntries([...document.querySelectorAll("#published tbody tr")].map(
		r => [r.cells[0].textContent, Number(r.querySelector("[data-value]").dataset.value)]))`)
	if len(got) == 0 || !maps.Equal(got, doc.Published) {
		t.Errorf("published: %v, want %v", got, doc.Published)
	}
	b.shot("figures-published")
	b.closed()
}
