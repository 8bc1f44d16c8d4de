package access

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainyard/trainyard/api"
)

// TokensName is the file in the state folder of those who may ask over the network.
const TokensName = "tokens.json"

// Limits of the tokens.
const (
	maxTokens     = 1000
	maxTokensFile = 1 << 20
	maxTokenName  = 64
)

// Token admits a user over the network: who bears a secret, or has the key of a certificate. Neither is kept, only a
// hash: a secret is 32 random bytes, which no search finds from theirs.
type Token struct {
	Name    string    `json:"name"`           // by which it is revoked; unique
	User    string    `json:"user"`           // as whom its bearer acts
	Role    string    `json:"role"`           // viewer, user or admin
	Cert    bool      `json:"cert,omitempty"` // of a certificate
	SHA256  string    `json:"sha256"`         // of the secret, or of the certificate in DER; hexadecimal
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"` // zero = never
}

// validate returns the first thing wrong with t.
func (t *Token) validate() error {
	sum, err := hex.DecodeString(t.SHA256)
	switch _, badRole := api.ParseRole(t.Role); {
	case t.Name == "" || len(t.Name) > maxTokenName || strings.ContainsFunc(t.Name,
		func(c rune) bool { return c <= ' ' || c > '~' }):
		return fmt.Errorf("name %q, want 1 to %d letters without blanks", t.Name, maxTokenName)
	case t.User == "" || len(t.User) > maxTokenName:
		return fmt.Errorf("user %q, want 1 to %d bytes", t.User, maxTokenName)
	case badRole != nil:
		return badRole
	case err != nil || len(sum) != sha256.Size:
		return fmt.Errorf("sha256 %q, want %d bytes in hexadecimal", t.SHA256, sha256.Size)
	}
	return nil
}

// Tokens are those who may ask the manager of a folder over the network. All may use it at any time, in any process.
type Tokens struct {
	dir string

	mu    sync.Mutex
	stamp stamp // of the file that list was read from
	list  []Token
	err   error
}

// stamp is one state of a file: it is replaced, never written to, but its mode may be changed.
type stamp struct {
	mode  fs.FileMode
	inode uint64
	size  int64
	mtime time.Time
}

// OpenTokens returns the tokens of a state folder.
func OpenTokens(dir string) *Tokens { return &Tokens{dir: dir} }

// List returns the tokens, in order of creation. A file that is not there has none; one that cannot be read, or that
// others may write, is an error.
func (t *Tokens) List() ([]Token, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.refresh()
	return slices.Clone(t.list), err
}

// refresh reads the file if it is another than before. After an error no one is admitted.
func (t *Tokens) refresh() error {
	path := filepath.Join(t.dir, TokensName)
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		t.stamp, t.list, t.err = stamp{}, nil, nil
		return nil
	}
	if err != nil {
		t.stamp, t.list, t.err = stamp{}, nil, fmt.Errorf("%w; %s", err, repairTokens(path, err))
		return t.err
	}
	now := stamp{mode: info.Mode(), size: info.Size(), mtime: info.ModTime()}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		now.inode = s.Ino
	}
	if now == t.stamp {
		return t.err
	}
	t.stamp = now
	t.list, t.err = readTokens(path, info)
	if t.err != nil {
		t.list = nil
		t.err = fmt.Errorf("%s: %w; %s", path, t.err, repairTokens(path, t.err))
	}
	return t.err
}

// errMode says that others may write the file.
var errMode = errors.New("others may write it, want 0600")

// repairTokens says, of why the file at path cannot be used, by which command it is repaired.
func repairTokens(path string, why error) string {
	word := "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	if errors.Is(why, errMode) || errors.Is(why, fs.ErrPermission) {
		return fmt.Sprintf("no one is admitted over the network until `chmod 600 %s` repairs that", word)
	}
	return fmt.Sprintf("no one is admitted over the network until `mv %s %s` puts it out of the way; then make tokens "+
		"by `trainyard token create`", word, strings.TrimSuffix(word, "'")+".bad'")
}

// readTokens reads the file at path.
func readTokens(path string, info fs.FileInfo) (list []Token, err error) {
	switch {
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%v, want a regular file", info.Mode())
	case info.Mode().Perm()&0o022 != 0:
		return nil, fmt.Errorf("mode %#o: %w", info.Mode().Perm(), errMode)
	case info.Size() > maxTokensFile:
		return nil, fmt.Errorf("%d bytes, want at most %d", info.Size(), maxTokensFile)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseTokens(text)
}

// parseTokens reads what a file of tokens says: a list in JSON, of which [] has none. Nothing else stands for none: a
// file that was emptied or half written admits no one by mistake, and says so.
func parseTokens(text []byte) (list []Token, err error) {
	at := func(offset int64) int {
		return 1 + bytes.Count(text[:min(max(offset, 0), int64(len(text)))], []byte{'\n'})
	}
	if kind := kindOf(text); kind != "a list" {
		return nil, fmt.Errorf("line %d: %s, want a list of tokens, such as [] for none",
			at(int64(len(text)-len(bytes.TrimLeft(text, jsonBlanks)))), kind)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err = d.Decode(&list)
	if err != nil {
		offset := d.InputOffset()
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			offset = syntax.Offset
		} else if kind := (*json.UnmarshalTypeError)(nil); errors.As(err, &kind) {
			offset = kind.Offset
		} else if errors.Is(err, io.ErrUnexpectedEOF) {
			offset, err = int64(len(text)), errors.New("the list ends early, want the whole of it")
		}
		return nil, fmt.Errorf("line %d: %w", at(offset), err)
	}
	if rest := bytes.TrimLeft(text[d.InputOffset():], jsonBlanks); len(rest) > 0 {
		return nil, fmt.Errorf("line %d: more behind the list of tokens, want nothing", at(int64(len(text)-len(rest))))
	}
	if len(list) > maxTokens {
		return nil, fmt.Errorf("%d tokens, want at most %d", len(list), maxTokens)
	}
	for i := range list {
		if err := list[i].validate(); err != nil {
			return nil, fmt.Errorf("token %d: %w", i+1, err)
		}
	}
	return list, nil
}

// jsonBlanks are what JSON takes for blanks.
const jsonBlanks = " \t\r\n"

// kindOf says what a text of JSON starts with.
func kindOf(text []byte) string {
	switch text = bytes.TrimLeft(text, jsonBlanks); {
	case len(text) == 0:
		return "nothing"
	case text[0] == '[':
		return "a list"
	case text[0] == '{':
		return "an object"
	case text[0] == '"':
		return "a string"
	case bytes.HasPrefix(text, []byte("null")):
		return "null"
	case text[0] == '-' || text[0] >= '0' && text[0] <= '9':
		return "a number"
	}
	return "no JSON"
}

// secretPrefix starts every secret, so that one that was published by mistake is found by a search.
const secretPrefix = "trainyard_"

// Add makes a token and returns its secret, which is given to no one else and kept nowhere. Of t, Name, User, Role and
// Expires count.
func (t *Tokens) Add(token Token) (secret string, err error) {
	var b [32]byte
	_, _ = rand.Read(b[:]) // it never fails
	secret = secretPrefix + base64.RawURLEncoding.EncodeToString(b[:])
	token.Cert, token.SHA256 = false, hash([]byte(secret))
	return secret, t.add(token)
}

// AddCertificate admits who has the key of the first certificate in text, which is PEM. No one need have signed it.
func (t *Tokens) AddCertificate(token Token, text []byte) error {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return errors.New("no certificate, want one in PEM")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return err
	}
	token.Cert, token.SHA256 = true, hash(cert.Raw)
	if token.Expires.IsZero() || token.Expires.After(cert.NotAfter) {
		token.Expires = cert.NotAfter
	}
	return t.add(token)
}

func (t *Tokens) add(token Token) error {
	token.Created = time.Now().UTC().Truncate(time.Second)
	if err := token.validate(); err != nil {
		return err
	}
	return t.change(func(list []Token) ([]Token, error) {
		switch {
		case slices.ContainsFunc(list, func(o Token) bool { return o.Name == token.Name }):
			return nil, fmt.Errorf("token %q %w, want another name", token.Name, ErrTokenThere)
		case len(list) == maxTokens:
			return nil, fmt.Errorf("there are %d tokens already; revoke one first", maxTokens)
		}
		return append(list, token), nil
	})
}

// ErrTokenThere says that a name is taken.
var ErrTokenThere = errors.New("is there already")

// ErrNoToken says that there is no token of a name.
var ErrNoToken = errors.New("no such token")

// Revoke removes a token. Every manager of the folder refuses it from its next request on, and ends what it streams to
// its bearer within a second.
func (t *Tokens) Revoke(name string) error {
	return t.change(func(list []Token) ([]Token, error) {
		n := len(list)
		list = slices.DeleteFunc(list, func(o Token) bool { return o.Name == name })
		if len(list) == n {
			return nil, fmt.Errorf("token %q: %w", name, ErrNoToken)
		}
		return list, nil
	})
}

// change replaces the file, durably, while no one else does.
func (t *Tokens) change(f func([]Token) ([]Token, error)) error {
	folder, err := os.Open(t.dir)
	if err != nil {
		return err
	}
	defer folder.Close() // and its lock
	err = unix.Flock(int(folder.Fd()), unix.LOCK_EX)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	err = t.refresh()
	if err != nil {
		return err
	}
	list, err := f(slices.Clone(t.list))
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(replaceFile(filepath.Join(t.dir, TokensName), append(text, '\n')), folder.Sync())
}

// replaceFile writes a file of our own, whole or not at all.
func replaceFile(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// Bearer returns whom a secret admits.
func (t *Tokens) Bearer(secret string, now time.Time) (api.Who, bool) {
	return t.find(false, []byte(secret), now)
}

// Certified returns whom a certificate, in DER, admits. That its key is there was proved.
func (t *Tokens) Certified(der []byte, now time.Time) (api.Who, bool) { return t.find(true, der, now) }

// find looks at all tokens, whichever fits, so that the time it takes says nothing of them.
func (t *Tokens) find(cert bool, what []byte, now time.Time) (who api.Who, found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.refresh() != nil {
		return api.Who{}, false
	}
	sum := []byte(hash(what))
	for i := range t.list {
		o := &t.list[i]
		same := subtle.ConstantTimeCompare(sum, []byte(strings.ToLower(o.SHA256))) == 1
		if same && o.Cert == cert && (o.Expires.IsZero() || now.Before(o.Expires)) {
			role, _ := api.ParseRole(o.Role)
			who, found = api.Who{Name: o.User, Role: role}, true
		}
	}
	return who, found
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
