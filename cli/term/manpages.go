package term

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newMan is the verb that writes man pages.
func newMan() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write man pages of every command",
		Long: `Writes a man page of each command into a folder, over older ones: what --help
prints. ` + "`man -l DIR/trainyard.1`" + ` shows the first. man finds them by name if the
folder is man1 in one of $MANPATH.`,
		Example: `  trainyard man ~/.local/share/man/man1`,
		Args:    Exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "" {
				return Usagef("man: DIR \"\", want a folder")
			}
			n, err := writePages(cmd.Root(), args[0])
			if err != nil {
				return err
			}
			return WriteText(cmd.OutOrStdout(), fmt.Sprintf("%s in %s\n", Counted(n, "page"), args[0]))
		},
	}
}

// writePages writes the pages of a command and of all below it, and returns how many there are.
func writePages(cmd *cobra.Command, dir string) (n int, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return 0, err
	}
	if err := os.WriteFile(filepath.Join(dir, pageName(cmd)+".1"), []byte(manPage(cmd)), 0o666); err != nil {
		return 0, err
	}
	for _, c := range available(cmd) {
		more, failed := writePages(c, dir)
		if failed != nil {
			return 0, failed
		}
		n += more
	}
	return n + 1, nil
}

// available are the commands below another that are listed.
func available(cmd *cobra.Command) (list []*cobra.Command) {
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			list = append(list, c)
		}
	}
	return list
}

// pageName is the name of the page of a command.
func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage is the page of a command in roff.
func manPage(cmd *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"trainyard %s\" \"Trainyard\"\n.nh\n.ad l\n", roff(strings.ToUpper(pageName(cmd))),
		roff(OwnBuild().Version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(pageName(cmd)), roff(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n%s\n", roff(cmd.UseLine()))
	about := cmd.Long
	if about == "" {
		about = cmd.Short
	}
	section(&b, "DESCRIPTION", about)
	pageFlags(&b, "OPTIONS", cmd.NonInheritedFlags())
	pageFlags(&b, "OPTIONS OF EVERY COMMAND", cmd.InheritedFlags())
	section(&b, "EXAMPLES", cmd.Example)
	var others []string
	if cmd.HasParent() {
		others = append(others, roff(pageName(cmd.Parent()))+"(1)")
	}
	for _, c := range available(cmd) {
		others = append(others, roff(pageName(c))+"(1)")
	}
	fmt.Fprintf(&b, ".SH SEE ALSO\n%s\n", strings.Join(others, ",\n"))
	return b.String()
}

// section writes paragraphs under a title, if there are any.
func section(b *strings.Builder, title, text string) {
	text = strings.Trim(text, "\n")
	if text == "" {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	for i, paragraph := range strings.Split(text, "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		if strings.HasPrefix(paragraph, " ") || strings.Contains(paragraph, "\n ") { // a table, or commands
			fmt.Fprintf(b, ".nf\n%s\n.fi\n", roff(paragraph))
		} else {
			b.WriteString(roff(paragraph) + "\n")
		}
	}
}

// pageFlags writes flags under a title, if there are any to be listed.
func pageFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, about := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		fmt.Fprintf(b, ".TP\n\\fB%s\\fR", roff(name))
		if value != "" {
			fmt.Fprintf(b, " \\fI%s\\fR", roff(value))
		}
		fmt.Fprintf(b, "\n%s\n", roff(about))
	})
}

// roff writes text so that nothing in it is a request or an escape.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", `\(ga`, "'", `\(aq`, "^", `\(ha`, "~", `\(ti`, `"`, `\(dq`).
		Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
