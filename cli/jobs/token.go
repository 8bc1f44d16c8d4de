package jobs

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/manager/access"
)

func newToken() *cobra.Command {
	cmd := term.Group(&cobra.Command{
		Use:   "token",
		Short: "Say who may ask a manager over the network",
		Long: `Makes, lists and revokes tokens of a state folder, for those who ask its manager
over the network (serve --listen). A manager that runs follows a change at its
next request.`,
	})
	cmd.AddCommand(newTokenCreate(), newTokenList(), newTokenRevoke())
	return cmd
}

// tokensOf returns the tokens of the folder that a flag names, which is made if it is not there.
func tokensOf(state string) (*access.Tokens, error) {
	dir, err := client.StateFolder(state)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return access.OpenTokens(dir), nil
}

func newTokenCreate() *cobra.Command {
	var state, user, role, cert string
	var last time.Duration
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a token and print its secret, once",
		Long: `Makes a token and prints its secret, which is kept nowhere: send it as
Authorization: Bearer. With --cert nothing is printed: whoever has the key of
that certificate is admitted.`,
		Example: "  trainyard token create ann-laptop --user ann --role user --expires 2160h",
		Args:    term.Exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case user == "":
				return term.Usagef("token create: no --user, want the name as which its bearer acts")
			case cmd.Flags().Changed("expires") && last <= 0:
				return term.Usagef("--expires %v, want > 0", last)
			}
			tokens, err := tokensOf(state)
			if err != nil {
				return err
			}
			t := access.Token{Name: args[0], User: user, Role: role}
			if last > 0 {
				t.Expires = time.Now().Add(last).UTC().Truncate(time.Second)
			}
			if cert == "" {
				secret, bad := tokens.Add(t)
				if bad != nil {
					return tokenError("token", bad)
				}
				return term.WriteText(cmd.OutOrStdout(), secret+"\n")
			}
			text, err := os.ReadFile(cert)
			if err != nil {
				return err
			}
			if err := tokens.AddCertificate(t, text); err != nil {
				return tokenError(cert+":", err)
			}
			return nil
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	client.AddState(cmd, &state)
	fs.StringVar(&user, "user", "", "as whom its bearer acts: `NAME`")
	fs.StringVar(&role, "role", "viewer", "what he may do: viewer, user or admin")
	fs.DurationVar(&last, "expires", 0, "it holds for `DURATION`, such as 720h (default: until it is revoked)")
	fs.StringVar(&cert, "cert", "", "admit who has the key of the certificate in `FILE`, in PEM, instead of a secret")
	term.CompleteFlag(cmd, "role", term.OneOf(func() []string { return []string{"viewer", "user", "admin"} }))
	return cmd
}

// tokenError gives what keeps a token from being made its exit code; what is wrong with what was given is said of what.
func tokenError(what string, err error) error {
	if errors.Is(err, access.ErrTokenThere) {
		return &term.CodedError{Code: term.ExitConflict, Err: err}
	}
	return term.Usagef("%s %w", what, err)
}

func newTokenList() *cobra.Command {
	var state string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List tokens: whose they are, what they allow, until when",
		Args:  term.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := tokenList(state)
			if err != nil {
				return err
			}
			if len(list) == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "no tokens; make one by `trainyard token create NAME --user USER`")
				return nil
			}
			t := term.Table{Left: 6}
			t.Add("name", "user", "role", "by", "created", "expires")
			for i := range list {
				o := &list[i]
				by, until := "secret", "never"
				if o.Cert {
					by = "certificate"
				}
				if !o.Expires.IsZero() {
					until = o.Expires.Local().Format(time.DateTime)
				}
				t.Add(o.Name, o.User, o.Role, by, o.Created.Local().Format(time.DateTime), until)
			}
			return term.WriteText(cmd.OutOrStdout(), t.Text(term.WidthOf(cmd.OutOrStdout())))
		},
	}
	client.AddState(cmd, &state)
	return cmd
}

// tokenList returns the tokens of a folder, which need not be there.
func tokenList(state string) ([]access.Token, error) {
	dir, err := client.StateFolder(state)
	if err != nil {
		return nil, err
	}
	return access.OpenTokens(dir).List()
}

func newTokenRevoke() *cobra.Command {
	var state string
	cmd := &cobra.Command{
		Use:   "revoke NAME",
		Short: "Admit the bearer of a token no more",
		Args:  term.Exactly("NAME"),
		ValidArgsFunction: func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			list, _ := tokenList(state)
			names := make([]string, len(list))
			for i := range list {
				names[i] = list[i].Name
			}
			return term.WithPrefix(names, typed), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := client.StateFolder(state)
			if err != nil {
				return err
			}
			err = access.OpenTokens(dir).Revoke(args[0])
			if errors.Is(err, access.ErrNoToken) {
				return &term.CodedError{Code: term.ExitNotFound,
					Err: fmt.Errorf("%w; `trainyard token list` shows which there are", err)}
			}
			if err == nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "token %q is revoked: its bearer is admitted no more\n", args[0])
			}
			return err
		},
	}
	client.AddState(cmd, &state)
	return cmd
}
