package jobs

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/contexts"
	"github.com/trainyard/trainyard/cli/term"
)

func newContext() *cobra.Command {
	cmd := term.Group(&cobra.Command{
		Use:   "context",
		Short: "Keep the hosts you work with under names",
		Long: `Keeps machines and clusters under names, in contexts.yaml in your configuration
folder. Verbs about jobs, nodes and events go to one by --context NAME, by
$TRAINYARD_CONTEXT, or to the one in use.`,
	})
	cmd.AddCommand(newContextAdd(), newContextList(), newContextUse(), newContextRemove())
	return cmd
}

// contextFile is the user's file of contexts.
func contextFile() (path string, file *contexts.File, err error) {
	if path, err = contexts.Path(); err != nil {
		return "", nil, term.Usagef("no configuration folder: %w; set $XDG_CONFIG_HOME", err)
	}
	file, err = contexts.Load(path)
	return path, file, client.ContextError(err)
}

func newContextAdd() *cobra.Command {
	var c contexts.Context
	var command string
	var replace bool
	cmd := &cobra.Command{
		Use:   "add NAME {--state DIR|--server URL|--command CMD}",
		Short: "Add a host under a name",
		Long: `Adds a context: a state folder on this machine, a server on the network, or a
command whose input and output are the connection. The command is split into
words as a shell does, with quotes, and is run without one.`,
		Example: `  trainyard context add lab --command 'ssh lab trainyard connect'
  trainyard context add team --server https://gpu.example.org:8443 \
      --token-file team.token --ca team.pem`,
		Args: term.Exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			c.Name = args[0]
			if c.Command, err = splitCommand(command); err != nil {
				return term.Usagef("--command: %w", err)
			}
			for _, path := range []*string{&c.State, &c.TokenFile, &c.CA, &c.Cert, &c.Key} {
				if *path == "" {
					continue
				}
				if *path, err = filepath.Abs(*path); err != nil {
					return err
				}
			}
			err = c.Check()
			if err != nil {
				return term.Usage(err)
			}
			path, file, err := contextFile()
			if err != nil {
				return err
			}
			if _, unknown := file.Find(c.Name); unknown == nil && !replace {
				return &term.CodedError{Code: term.ExitConflict,
					Err: fmt.Errorf("context %s is there already; --replace puts this one in its place", c.Name)}
			}
			file.Add(c)
			return file.Save(path)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&c.State, "state", "", "state `FOLDER` of a manager on this machine")
	fs.StringVar(&c.Server, "server", "", "`URL` of a server on the network, https://HOST:PORT")
	fs.StringVar(&c.TokenFile, "token-file", "", "with --server: `FILE` that holds its token")
	fs.StringVar(&c.CA, "ca", "", "with --server: `FILE` of certificates (PEM) to trust, in place of this machine's")
	fs.StringVar(&c.Cert, "cert", "", "with --server: `FILE` of your certificate (PEM)")
	fs.StringVar(&c.Key, "key", "", "with --cert: `FILE` of its key (PEM)")
	fs.StringVar(&command, "command", "", "`COMMAND` whose input and output are the connection")
	fs.BoolVar(&replace, "replace", false, "replace the context that has this name")
	_ = cmd.MarkFlagDirname("state")
	return cmd
}

func newContextList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List contexts; a star marks the one in use",
		Args:  term.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, file, err := contextFile()
			if err != nil {
				return err
			}
			if asJSON {
				return term.WriteJSON(cmd.OutOrStdout(), file)
			}
			if len(file.Contexts) == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "no contexts; add one by `trainyard context add NAME --command 'ssh "+
					"HOST trainyard connect'`")
				return nil
			}
			t := term.Table{Left: 4}
			t.Add("", "name", "kind", "leads to")
			for i := range file.Contexts {
				c, mark := &file.Contexts[i], ""
				if c.Name == file.Current {
					mark = "*"
				}
				t.Add(mark, c.Name, c.Kind(), c.Where())
			}
			return term.WriteText(cmd.OutOrStdout(), t.Text(term.WidthOf(cmd.OutOrStdout())))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON document instead of the table")
	return cmd
}

func newContextUse() *cobra.Command {
	return &cobra.Command{
		Use:   "use {NAME | -}",
		Short: "Have verbs go to a context unless they say otherwise; - undoes it",
		Args:  term.Exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, file, err := contextFile()
			if err != nil {
				return err
			}
			file.Current = ""
			if args[0] != "-" {
				c, err := file.Find(args[0])
				if err != nil {
					return client.ContextError(err)
				}
				file.Current = c.Name
			}
			return file.Save(path)
		},
	}
}

func newContextRemove() *cobra.Command {
	return &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a context; the host itself is left alone",
		Args:  term.Exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, file, err := contextFile()
			if err != nil {
				return err
			}
			if err := file.Remove(args[0]); err != nil {
				return client.ContextError(err)
			}
			return file.Save(path)
		},
	}
}

// splitCommand splits a command line into words as a shell does: at blanks, but not inside quotes. A backslash takes
// the next character as it is, except inside single quotes. Nothing is expanded.
func splitCommand(line string) ([]string, error) {
	var s splitter
	for _, c := range line {
		switch {
		case s.escaped:
			s.word, s.escaped = append(s.word, c), false
		case c == '\\' && s.quote != '\'':
			s.escaped, s.inWord = true, true
		case s.quote != 0:
			s.quoted(c)
		case c == '\'' || c == '"':
			s.quote, s.inWord = c, true
		case c == ' ' || c == '\t' || c == '\n':
			s.endWord()
		default:
			s.word, s.inWord = append(s.word, c), true
		}
	}
	if s.quote != 0 || s.escaped {
		return nil, errors.New("a quote is not closed")
	}
	s.endWord()
	return s.words, nil
}

// splitter is where splitCommand stands in a line.
type splitter struct {
	words   []string
	word    []rune
	inWord  bool // word is one, though it may be empty
	quote   rune // the quote that is open; 0: none
	escaped bool // by a backslash right before
}

// quoted takes a character inside quotes.
func (s *splitter) quoted(c rune) {
	if c == s.quote {
		s.quote = 0
		return
	}
	s.word = append(s.word, c)
}

func (s *splitter) endWord() {
	if s.inWord {
		s.words = append(s.words, string(s.word))
	}
	s.word, s.inWord = nil, false
}
