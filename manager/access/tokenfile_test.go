package access

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Ensure that a file of tokens that cannot be used admits no one, that what is said of it names the file and a command,
// and that this command repairs it, whatever the name of the folder.
func TestUnreadableTokens(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"no JSON":     func(path string) error { return os.WriteFile(path, []byte(`[{"name":`), 0o600) },
		"wrong types": func(path string) error { return os.WriteFile(path, []byte(`{"name":7}`), 0o600) },
		"unknown":     func(path string) error { return os.WriteFile(path, []byte(`[{"secret":"x"}]`), 0o600) },
		"no user":     func(path string) error { return os.WriteFile(path, []byte(`[{"name":"x"}]`), 0o600) },
		"huge":        func(path string) error { return os.WriteFile(path, make([]byte, maxTokensFile+1), 0o600) },
		"a folder":    func(path string) error { return os.Mkdir(path, 0o700) },
		"a link":      func(path string) error { return os.Symlink("/dev/zero", path) },
		"all may write": func(path string) error {
			err := os.WriteFile(path, []byte("[]"), 0o600)
			if err == nil {
				err = os.Chmod(path, 0o666)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "ann's folder $(false)")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			tokens, path := OpenTokens(dir), filepath.Join(dir, TokensName)
			secret, err := tokens.Add(Token{Name: "one", User: "ann", Role: "user"})
			if err == nil {
				err = os.Remove(path)
			}
			if err == nil {
				err = spoil(path)
			}
			if err != nil {
				t.Fatal(err)
			}
			_, err = tokens.List()
			if err == nil || !strings.Contains(err.Error(), path) {
				t.Fatalf("%v, want an error that names %s", err, path)
			}
			if _, admitted := tokens.Bearer(secret, time.Now()); admitted {
				t.Error("someone is admitted")
			}
			_, command, _ := strings.Cut(err.Error(), "until `")
			command, _, _ = strings.Cut(command, "` ")
			if out, failed := exec.CommandContext(t.Context(), "sh", "-c", command).CombinedOutput(); failed != nil {
				t.Fatalf("%q of %v: %v, %s", command, err, failed, out)
			}
			if _, err = tokens.Add(Token{Name: "two", User: "ann", Role: "user"}); err != nil {
				t.Errorf("after %q: %v", command, err)
			}
		})
	}
}
