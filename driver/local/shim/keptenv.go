package shim

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/trainyard/trainyard/driver/local/beneath"
)

// envFolder is where the environments are that jobs inherit, by their digests. Values of variables are in no log and no
// order: there are passwords among them.
const envFolder = "env"

// maxEnv bounds the file of an environment in bytes: JSON writes a byte of text as six at most.
const maxEnv = 8 << 20

// encodeEnv returns what writeJSON writes of an environment: in order of names, so that alike ones are alike.
func encodeEnv(env map[string]string) []byte {
	b, err := json.Marshal(env)
	if err != nil {
		panic("shim: environment: " + err.Error()) // strings alone
	}
	return append(b, '\n')
}

// EnvDigest returns the SHA-256 of an environment, in hexadecimal, by which it is kept.
func EnvDigest(env map[string]string) string { return digestOf(encodeEnv(env)) }

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// KeepEnv keeps an environment for jobs that inherit it, by its digest: alike ones are kept once. It is durable when
// KeepEnv returns.
func (s State) KeepEnv(env map[string]string) error {
	folder := filepath.Join(string(s), envFolder)
	err := os.Mkdir(folder, 0o700)
	if err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	digest := EnvDigest(env)
	if _, err = s.KeptEnv(digest); err != nil { // not there, or not whole: a power cut can leave it so
		err = writeJSON(filepath.Join(folder, digest), env)
	}
	return errors.Join(err, syncDir(folder), syncDir(string(s)))
}

// ErrOther says that bytes are not those of a digest.
var ErrOther = errors.New("not what has this SHA-256")

// KeepEnvText keeps what EnvText returned, by the digest that it had, see KeepEnv; ErrOther if it is something else.
func (s State) KeepEnvText(digest string, b []byte) error {
	var env map[string]string
	if err := json.Unmarshal(b, &env); err != nil || EnvDigest(env) != digest {
		return ErrOther
	}
	return s.KeepEnv(env)
}

// HasEnv reports whether there is a file of an environment, whatever is in it.
func (s State) HasEnv(digest string) bool {
	_, err := os.Lstat(filepath.Join(string(s), envFolder, digest))
	return err == nil
}

// ErrEnvLost says that an environment which jobs inherit is not there any more, or is not what was kept.
var ErrEnvLost = errors.New("the environment that it was submitted with is lost")

// KeptEnv returns the environment of a digest; ErrEnvLost, with the file, if it cannot be had.
func (s State) KeptEnv(digest string) (env map[string]string, err error) {
	_, env, err = s.EnvText(digest)
	return env, err
}

// EnvText returns the file of an environment as well, see KeptEnv.
func (s State) EnvText(digest string) (b []byte, env map[string]string, err error) {
	path := filepath.Join(envFolder, digest)
	b, err = beneath.Read(string(s), path, maxEnv)
	switch {
	case err != nil:
	case digestOf(b) != digest:
		err = errors.New("it was changed")
	default:
		err = json.Unmarshal(b, &env)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %s: %w", ErrEnvLost, filepath.Join(string(s), path), err)
	}
	return b, env, nil
}

// KeptEnvs returns the digests of the environments that are kept.
func (s State) KeptEnvs() (digests []string, err error) {
	entries, err := os.ReadDir(filepath.Join(string(s), envFolder))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if len(e.Name()) == 2*sha256.Size {
			digests = append(digests, e.Name())
		}
	}
	return digests, err
}

// DropEnv removes an environment, and returns its size in bytes.
func (s State) DropEnv(digest string) (int64, error) {
	path := filepath.Join(string(s), envFolder, digest)
	info, err := os.Lstat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), os.Remove(path)
}

// inherited puts the variables that the job of an order inherits to their place among its own: those after count more.
func (o *Order) inherited() error {
	if o.Inherit == "" {
		return nil
	}
	env, err := o.State.KeptEnv(o.Inherit)
	if err != nil {
		return err
	}
	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	o.Env = slices.Insert(slices.Clone(o.Env), min(o.InheritAt, len(o.Env)), list...)
	return nil
}
