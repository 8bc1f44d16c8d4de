package contexts

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/trainyard/trainyard/internal/suggest"
)

// Context says how a host is reached. Exactly one of State, Server and Command is set.
type Context struct {
	Name      string   `yaml:"name" json:"name"`
	State     string   `yaml:"state,omitempty" json:"state,omitempty"`           // folder of a manager on this machine, absolute
	Server    string   `yaml:"server,omitempty" json:"server,omitempty"`         // https://HOST:PORT
	TokenFile string   `yaml:"token_file,omitempty" json:"token_file,omitempty"` // of Server: holds its token
	CA        string   `yaml:"ca,omitempty" json:"ca,omitempty"`                 // of Server: PEM of whom to trust; "": whom the machine trusts
	Cert      string   `yaml:"cert,omitempty" json:"cert,omitempty"`             // of Server: PEM of the client's certificate
	Key       string   `yaml:"key,omitempty" json:"key,omitempty"`               // of Cert
	Command   []string `yaml:"command,omitempty,flow" json:"command,omitempty"`  // program and arguments; no shell runs it
}

// File is what contexts.yaml holds.
type File struct {
	Current  string    `yaml:"current,omitempty" json:"current,omitempty"` // chosen by `context use`; "": none
	Contexts []Context `yaml:"contexts" json:"contexts"`
}

// ErrUnknown is the error of a name that the file does not have.
var ErrUnknown = errors.New("no such context")

// Find returns the context of a name.
func (f *File) Find(name string) (*Context, error) {
	var names []string
	for i := range f.Contexts {
		if f.Contexts[i].Name == name {
			return &f.Contexts[i], nil
		}
		names = append(names, f.Contexts[i].Name)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%w: %q; there are none, add one by `trainyard context add`", ErrUnknown, name)
	}
	return nil, fmt.Errorf("%w: %q%s, want one of %s", ErrUnknown, name, suggest.Hint(name, names),
		strings.Join(names, ", "))
}

// Add adds a context, or puts it in the place of the one that has its name.
func (f *File) Add(c Context) {
	if i := slices.IndexFunc(f.Contexts, func(o Context) bool { return o.Name == c.Name }); i >= 0 {
		f.Contexts[i] = c
		return
	}
	f.Contexts = append(f.Contexts, c)
}

// Remove removes the context of a name, which is then not the current one either.
func (f *File) Remove(name string) error {
	if _, err := f.Find(name); err != nil {
		return err
	}
	f.Contexts = slices.DeleteFunc(f.Contexts, func(c Context) bool { return c.Name == name })
	if f.Current == name {
		f.Current = ""
	}
	return nil
}

// Kind names what the context is: "state", "server" or "command".
func (c *Context) Kind() string {
	switch {
	case c.State != "":
		return "state"
	case c.Server != "":
		return "server"
	}
	return "command"
}

// Where says in a few words where the context leads.
func (c *Context) Where() string {
	switch c.Kind() {
	case "state":
		return c.State
	case "server":
		return c.Server
	}
	return strings.Join(c.Command, " ")
}

var goodName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)
})

// kinds counts the ways by which the context names its host; one is right.
func (c *Context) kinds() (n int) {
	for _, is := range []bool{c.State != "", c.Server != "", len(c.Command) > 0} {
		if is {
			n++
		}
	}
	return n
}

// Check names the first field that is wrong.
func (c *Context) Check() error {
	kinds := c.kinds()
	switch {
	case !goodName().MatchString(c.Name):
		return fmt.Errorf("name %q, want letters, digits, dots, dashes and underscores, at most 63, the first a "+
			"letter or a digit", c.Name)
	case kinds != 1:
		return fmt.Errorf("context %s has %d of state, server and command, want one", c.Name, kinds)
	case c.State != "" && !filepath.IsAbs(c.State):
		return fmt.Errorf("context %s: state %q, want an absolute path", c.Name, c.State)
	case c.Server == "" && c.TokenFile+c.CA+c.Cert+c.Key != "":
		return fmt.Errorf("context %s: token_file, ca, cert and key are those of a server, and it has none", c.Name)
	case (c.Cert == "") != (c.Key == ""):
		return fmt.Errorf("context %s: cert and key belong together, want both or none", c.Name)
	case len(c.Command) > 0 && c.Command[0] == "":
		return fmt.Errorf("context %s: the command has no program", c.Name)
	}
	if c.Server == "" {
		return nil
	}
	for _, path := range []string{c.TokenFile, c.CA, c.Cert, c.Key} {
		if path != "" && !filepath.IsAbs(path) {
			return fmt.Errorf("context %s: file %q, want an absolute path", c.Name, path)
		}
	}
	return c.checkServer()
}

func (c *Context) checkServer() error {
	u, err := url.Parse(c.Server)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.Port() == "" || strings.Trim(u.Path, "/") != "" ||
		u.RawQuery != "" || u.User != nil {
		return fmt.Errorf("context %s: server %q, want https://HOST:PORT", c.Name, c.Server)
	}
	return nil
}

// Address returns HOST:PORT of a server.
func (c *Context) Address() string {
	return strings.TrimRight(strings.TrimPrefix(c.Server, "https://"), "/")
}

// check names the first thing wrong in the whole file.
func (f *File) check() error {
	seen := map[string]bool{}
	for i := range f.Contexts {
		c := &f.Contexts[i]
		if err := c.Check(); err != nil {
			return err
		}
		if seen[c.Name] {
			return fmt.Errorf("context %s is there twice, want it once", c.Name)
		}
		seen[c.Name] = true
	}
	if f.Current != "" && !seen[f.Current] {
		return fmt.Errorf("current %q is none of the contexts", f.Current)
	}
	return nil
}
