package report

import (
	"fmt"
	"strings"
	"testing"
)

// Ensure that a text is what a number behind the rest of it makes again, and that names that differ in numbers take
// less than their texts, while others stay texts.
func TestNumbered(t *testing.T) {
	for _, s := range []string{"", "0", "00", "007", "7", "a", "a0", "a00", "job-12", "x1234567890123456789",
		"999999999999999999999999", "1000000000000000", "v1.50", "é9", "-1", "٣"} {
		before, n := splitNumber(s)
		if again := before + strings.TrimPrefix(fmt.Sprint(n), "-1"); again != s || n < -1 || n >= 1<<53 {
			t.Errorf("%q is %q and %d, which make %q", s, before, n, again)
		}
	}
	for _, x := range []struct {
		name     string
		of       func(i int) string
		numbered bool
	}{
		{"numbers", func(i int) string { return fmt.Sprint(i) }, true},
		{"attempts", func(i int) string { return fmt.Sprintf("application_1506638472019_%d", 10000+i*3) }, true},
		{"words", func(i int) string { return strings.Repeat("ab", i%40) + fmt.Sprint("x", i, "y") }, false},
	} {
		var c columns
		c.table("t", 1000)
		c.texts("name", 1000, x.of)
		list := c.header.Tables[0].Columns
		if got := list[len(list)-1].Kind == "numbered"; got != x.numbered {
			t.Errorf("%s: numbered is %v, want %v", x.name, got, x.numbered)
		}
		if packed, err := c.pack(); err != nil || x.numbered && len(packed) > 1500 {
			t.Errorf("%s: %d bytes, %v", x.name, len(packed), err)
		}
	}
}
