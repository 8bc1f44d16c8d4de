package serve

import (
	"os/exec"
	"strings"
	"testing"
)

// Ensure that a shell takes the commands that serve prints for what they mean, whatever the folder is called.
func TestHintsAreQuoted(t *testing.T) {
	for _, dir := range []string{"", "/plain", "/lab one", "/it's; rm -rf $HOME", "/a`id`b$(id)", "/new\nline",
		"/tilde ~*?"} {
		said := first(dir)
		want := []string{"submit", "--state", dir, "--", "python", "train.py", "ps", "--state", dir}
		if dir == "" {
			want = []string{"submit", "--", "python", "train.py", "ps"}
		}
		_, rest, _ := strings.Cut(said, "`")
		submit, rest, _ := strings.Cut(rest, " -- python train.py`")
		_, ps, _ := strings.Cut(rest, "look by `")
		ps = strings.TrimSuffix(ps, "`\n")
		script := "trainyard() { for a; do printf '%s\\0' \"$a\"; done; }\n" + submit +
			" -- python train.py\n" + ps + "\n"
		out, err := exec.Command("sh", "-c", script).Output()
		if got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); err != nil ||
			strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("%q: a shell reads %q, %v, want %q", dir, got, err, want)
		}
	}
}
