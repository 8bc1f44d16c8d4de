package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/trainyard/trainyard/internal/suggest"
)

// newRoot returns the command with all its verbs.
func newRoot() *cobra.Command {
	root := group(&cobra.Command{
		Use:   "trainyard",
		Short: "Schedule deep-learning training on GPUs",
		Long: `Trainyard schedules deep-learning training on GPUs: how many GPUs each job gets,
which jobs run, on exactly which GPUs. What runs in its simulator is what runs
in production.

Exit codes: 0 ok, 1 failure, 2 usage, 3 not found, 4 conflict, 5 refused,
6 no manager there, 7 not in time, 8 permission, 9 malformed input file,
10 job failed, 130 interrupted.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       ownBuild().Version,
	})
	root.SetVersionTemplate("trainyard {{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.PersistentFlags().Bool("no-color", false, "no colours, as with $NO_COLOR")
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 80"))
	for _, verbs := range [][]*cobra.Command{serveVerbs(), jobsVerbs(), pastVerbs(), simulateVerbs(), traceVerbs(), planVerbs(), experimentVerbs()} {
		root.AddCommand(verbs...)
	}
	root.AddCommand(newVersion())
	addCompletion(root)
	addHelp(root)
	return root
}

// addCompletion adds cobra's command that writes completion scripts, with errors of usage like all others.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() != "completion" {
			continue
		}
		group(c)
		for _, shell := range c.Commands() {
			shell.Args = exactly()
		}
	}
}

// addHelp adds cobra's command that prints the help of another, for which an unknown one is an error of usage.
func addHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		if c.Name() != "help" {
			continue
		}
		c.Args = func(_ *cobra.Command, args []string) error {
			about, rest, err := root.Find(args)
			switch {
			case err != nil:
				return usage(err)
			case len(rest) == 0:
				return nil
			case about.HasAvailableSubCommands():
				return about.Args(about, rest)
			}
			return usagef("help: %s has no command %q", ownName(about), rest[0])
		}
	}
}

// ownName returns the name of a command without that of the program, which stands before every message.
func ownName(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}

// group makes cmd a command that does nothing but hold others: without one it prints its help, and an unknown one is an
// error of usage.
func group(cmd *cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		if args[0] == cmd.Root().Name() {
			return usagef("%s stands twice, want it once; see `%s --help`", args[0], args[0])
		}
		var names []string
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				names = append(names, c.Name())
			}
		}
		return usagef("%q is not a command of %s%s; it has %s", args[0], cmd.CommandPath(),
			suggest.Hint(args[0], names), strings.Join(names, ", "))
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}

// flagError makes an error about flags one of usage, with the flag that was probably meant.
func flagError(cmd *cobra.Command, err error) error {
	hint := ""
	if unknown := (*pflag.NotExistError)(nil); errors.As(err, &unknown) {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		hint = suggest.Hint("--"+unknown.GetSpecifiedName(), names)
	}
	if invalid := (*pflag.InvalidValueError)(nil); errors.As(err, &invalid) {
		f := invalid.GetFlag()
		wish := map[string]string{"uint64": "a whole number >= 0", "int": "a whole number", "float64": "a number", "bool": "true or false"}[f.Value.Type()]
		if wish != "" {
			return usagef("--%s %q, want %s; see `%s --help`", f.Name, invalid.GetValue(), wish, cmd.CommandPath())
		}
	}
	return usagef("%w%s; see `%s --help`", err, hint, cmd.CommandPath())
}

// exactly wants as many arguments as there are names; a name in brackets may be left out.
func exactly(names ...string) cobra.PositionalArgs {
	need := 0
	for _, n := range names {
		if !strings.HasPrefix(n, "[") {
			need++
		}
	}
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= need && len(args) <= len(names) {
			return nil
		}
		wish := "no arguments"
		if len(names) > 0 {
			wish = strings.Join(names, " ")
		}
		return usagef("%s: %s, want %s; see `%s --help`", ownName(cmd), counted(len(args), "argument"), wish, cmd.CommandPath())
	}
}
