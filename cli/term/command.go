package term

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/trainyard/trainyard/internal/suggest"
)

// Root returns the command of the program, with all its verbs.
func Root(verbs ...*cobra.Command) *cobra.Command {
	root := Group(&cobra.Command{
		Use:   "trainyard",
		Short: "Schedule deep-learning training on GPUs",
		Long: `Trainyard schedules deep-learning training on GPUs: how many GPUs each job gets,
which jobs run, on exactly which GPUs. What runs in its simulator is what runs
in production.

Exit codes: 0 ok, 1 failure, 2 usage, 3 not found, 4 conflict, 5 refused,
6 no manager there, 7 not in time, 8 permission, 9 malformed input file,
10 job failed, 11 outcome unknown, 130 interrupted.`,
		SilenceErrors: true,
		SilenceUsage:  true,
	})
	addVersion(root)
	root.SetFlagErrorFunc(flagError)
	root.PersistentFlags().Bool("no-color", false, "no colours, as with $NO_COLOR")
	root.SetUsageFunc(writeUsage)
	root.AddCommand(verbs...)
	root.AddCommand(newVersion(), newMan())
	addCompletion(root)
	addHelp(root)
	return root
}

// addVersion adds the flag that asks for the version.
func addVersion(root *cobra.Command) {
	asked := root.Flags().BoolP("version", "v", false, "version for "+root.Name())
	run := root.RunE
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if *asked {
			return WriteText(cmd.OutOrStdout(), root.Name()+" "+OwnBuild().Version+"\n")
		}
		return run(cmd, args)
	}
}

// Execute carries out one command line and returns its exit code.
func Execute(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) int {
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	if coded := (*CodedError)(nil); errors.Is(err, context.Canceled) && !errors.As(err, &coded) {
		err = errors.New("interrupted; no file was written")
		fmt.Fprintln(stderr, "trainyard:", err)
		return ExitInterrupted
	}
	fmt.Fprintln(stderr, "trainyard:", OneLine(err.Error()))
	return ExitCode(err)
}

// addCompletion adds cobra's command that writes completion scripts, with errors of usage like all others.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() != "completion" {
			continue
		}
		Group(c)
		for _, shell := range c.Commands() {
			shell.Args = Exactly()
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
				return Usage(err)
			case len(rest) == 0:
				return nil
			case about.HasAvailableSubCommands():
				return about.Args(about, rest)
			}
			return Usagef("help: %s has no command %q", OwnName(about), rest[0])
		}
	}
}

// OwnName returns the name of a command without that of the program, which stands before every message.
func OwnName(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}

// Group makes cmd a command that does nothing but hold others: without one it prints its help, and an unknown one is an
// error of usage.
func Group(cmd *cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		if args[0] == cmd.Root().Name() {
			return Usagef("%s stands twice, want it once; see `%s --help`", args[0], args[0])
		}
		var names []string
		meant := ""
		for _, c := range cmd.Commands() {
			if !c.IsAvailableCommand() {
				continue
			}
			names = append(names, c.Name())
			if slices.Contains(c.SuggestFor, args[0]) {
				meant = suggest.Hint(c.Name(), []string{c.Name()})
			}
		}
		if meant == "" {
			meant = suggest.Hint(args[0], names)
		}
		return Usagef("%q is not a command of %s%s; it has %s", args[0], cmd.CommandPath(), meant,
			strings.Join(names, ", "))
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}

// flagError makes an error about flags one of usage, with the flag that was probably meant. Where the flag is that of a
// command which is not there, the command is what is wrong.
func flagError(cmd *cobra.Command, err error) error {
	if args := cmd.Flags().Args(); cmd.HasAvailableSubCommands() && len(args) > 0 {
		if wrong := cmd.Args(cmd, args); wrong != nil {
			return wrong
		}
	}
	hint := ""
	if unknown := (*pflag.NotExistError)(nil); errors.As(err, &unknown) {
		if unknown.GetSpecifiedName() == "context" && cmd.Flags().Lookup("state") != nil {
			return Usagef("%s: it is for the machine on which it is typed, and takes no --context; run it there, or "+
				"name a folder of this machine by --state", OwnName(cmd))
		}
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		hint = suggest.Hint("--"+unknown.GetSpecifiedName(), names)
	}
	if invalid := (*pflag.InvalidValueError)(nil); errors.As(err, &invalid) {
		f := invalid.GetFlag()
		wanted := map[string]string{"uint64": "a whole number >= 0", "int": "a whole number", "float64": "a number",
			"bool": "true or false", "duration": "a time with its unit, as 90s, 5m or 1h"}[f.Value.Type()]
		if wanted != "" {
			return Usagef("--%s %q, want %s; see `%s --help`", f.Name, invalid.GetValue(), wanted, cmd.CommandPath())
		}
	}
	return Usagef("%w%s; see `%s --help`", err, hint, cmd.CommandPath())
}

// Exactly wants as many arguments as there are names; a name in brackets may be left out.
func Exactly(names ...string) cobra.PositionalArgs {
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
		wanted := "no arguments"
		if len(names) > 0 {
			wanted = strings.Join(names, " ")
		}
		return Usagef("%s: %s, want %s; see `%s --help`", OwnName(cmd), Counted(len(args), "argument"), wanted,
			cmd.CommandPath())
	}
}
