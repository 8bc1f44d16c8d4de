package access

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Ensure that only a list stands for tokens, an empty one for none, and that of anything else the line is named, what
// is there and what is wanted.
func TestWhatTokensAre(t *testing.T) {
	const sum = `"sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"`
	for text, want := range map[string]string{
		"[]":         "",
		" \n[ ]\r\n": "",
		`[{"name":"a","user":"ann","role":"user",` + sum + `}]`: "",
		"":               "line 1: nothing, want a list",
		" \n\t\n":        "line 3: nothing, want a list",
		"null":           "line 1: null, want a list",
		"\nnull\n":       "line 2: null, want a list",
		"{}":             "line 1: an object, want a list",
		"0":              "line 1: a number, want a list",
		"-1e9":           "line 1: a number, want a list",
		`"x"`:            "line 1: a string, want a list",
		"true":           "line 1: no JSON, want a list",
		"\xef\xbb\xbf[]": "line 1: no JSON, want a list",
		"[null]":         `token 1: name ""`,
		"[\n7]":          "line 2: ",
		"[{}]":           "token 1: ",
		"[]]":            "line 1: more behind",
		"[]\n[]":         "line 2: more behind",
		"[]\n}":          "line 2: more behind",
		"[]null":         "more behind",
		"[\n":            "line 2: the list ends early",
		"[\n,]":          "line 2: invalid character",
		"[{\n\"x\":1}]":  "line 2: ",
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, TokensName)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := OpenTokens(dir).List()
		if want == "" {
			if err != nil || list == nil && len(text) > 10 {
				t.Errorf("%q: %v, %v", text, list, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), path+": ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q of %s", text, err, want, path)
		}
	}
}

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
