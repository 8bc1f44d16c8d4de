package device

import "testing"

// Ensure that slots have equal parts of the machine's memory, and that memory of which nothing is known is none.
func TestHostSlots(t *testing.T) {
	const meminfo = "MemTotal:        8048764 kB\nMemFree:         1048764 kB\n"
	for _, c := range []struct {
		text string
		n    int
		want float32
	}{{meminfo, 1, 7.6}, {meminfo, 4, 1.9}, {meminfo, 1000, 0}, {"MemFree: 4 kB\n", 2, 0}, {"", 2, 0},
		{"MemTotal: -4 kB\n", 2, 0}, {"MemTotal: NaN kB\n", 2, 0}} {
		if got := shareOf(c.text, c.n); got != c.want {
			t.Errorf("%d slots of %q: %v GiB, want %v", c.n, c.text, got, c.want)
		}
	}
	h := Host(2)
	list, err := h.List(t.Context())
	if err != nil || len(list) != 2 || list[0].Name != "slot-0" || list[1].MemoryGB != h.MemoryGB || !(h.MemoryGB > 0) {
		t.Errorf("%+v, %v, want two slots with memory", list, err)
	}
}
