package client

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/manager/kept"
)

// Once are the flags that say how jobs are submitted exactly once, whatever becomes of the manager meanwhile.
type Once struct {
	Key      string        // flag --key; "" = a new one is made
	Patience time.Duration // flag --patience
}

// patience is how long a verb asks again to submit jobs.
const patience = 30 * time.Second

// Define adds the flags.
func (o *Once) Define(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.DurationVar(&o.Patience, "patience", patience, "how long to ask again where no manager answers; 0: ask once")
	fs.StringVar(&o.Key, "key", "", "`KEY` of jobs that may have been submitted already: then only say which they are")
}

// Check refuses values that make no sense.
func (o *Once) Check(cmd *cobra.Command) error {
	switch {
	case o.Patience < 0:
		return term.Usagef("--patience %v, want a time such as 30s, or 0 to ask once", o.Patience)
	case cmd.Flags().Changed("key") && api.CheckKey(o.Key) != nil:
		return term.Usagef("--key: %w", api.CheckKey(o.Key))
	}
	return nil
}

// Await waits for the folder of a manager that has never served, where a flag says for how long: a script may start
// `serve` in the line before.
func (o *Once) Await(cmd *cobra.Command, to *Target) {
	if !cmd.Flags().Changed("patience") {
		return
	}
	const between = 100 * time.Millisecond
	for start := time.Now(); time.Since(start) < o.Patience; {
		c, err := to.Dial()
		if err == nil {
			_ = c.Close()
		}
		if !errors.Is(err, api.ErrNoManager) {
			return
		}
		select {
		case <-cmd.Context().Done():
			return
		case <-time.After(between):
		}
	}
}

// Submit submits jobs, once. args are the arguments of the verb, for the command that asks again.
func (o *Once) Submit(cmd *cobra.Command, to *Target, c *api.Client, s *api.Submission, args []string) (api.Submitted,
	error) {
	if s.Dry {
		return c.Submit(cmd.Context(), *s)
	}
	key := o.Key
	if key == "" {
		key = newKey()
	}
	doc, err := c.SubmitOnce(cmd.Context(), *s, key, api.Retry{Patience: o.Patience, Again: func(why error,
		reached bool) bool {
		if !reached && !cmd.Flags().Changed("patience") && !to.returns() {
			return false
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "trainyard: %v; asking again for up to %v, under the key %s\n", why, o.Patience,
			key)
		return true
	}})
	if !errors.Is(err, api.ErrUnknown) {
		return doc, err
	}
	code := term.ExitUnknown
	if errors.Is(err, context.Canceled) {
		code, err = term.ExitInterrupted, fmt.Errorf("interrupted; %w", api.ErrUnknown)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "trainyard: this asks again, and submits nothing twice:\n  %s\n",
		again(cmd, key, args))
	return doc, &term.CodedError{Code: code, Err: err}
}

// newKey makes a key that no other submission has.
func newKey() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// returns reports whether a manager that is not there may come back: it is elsewhere, or its folder holds a log.
func (t *Target) returns() bool {
	c, err := t.choose()
	return err == nil && (c.Kind() != "state" || kept.Folder(c.State).Kept())
}

// again is the command line that asks for the same jobs under a key, for a shell.
func again(cmd *cobra.Command, key string, args []string) string {
	words := strings.Fields(cmd.CommandPath())
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Name != "key" {
			words = append(words, term.ShellWord("--"+f.Name+"="+f.Value.String()))
		}
	})
	words = append(words, "--key="+key)
	for i, arg := range args {
		if i == cmd.ArgsLenAtDash() {
			words = append(words, "--")
		}
		words = append(words, term.ShellWord(arg))
	}
	return strings.Join(words, " ")
}
