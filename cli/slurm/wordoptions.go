package slurm

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// unused are options that have no meaning on one machine without partitions and accounts. An option is written
// long/short; one that ends with ! has no value.
type unused []string

// define adds the options, hidden.
func (u unused) define(fs *pflag.FlagSet) {
	for _, option := range u {
		name, noValue := strings.CutSuffix(option, "!")
		long, short, _ := strings.Cut(name, "/")
		if noValue {
			fs.BoolP(long, short, false, "")
		} else {
			fs.StringP(long, short, "", "")
		}
		_ = fs.MarkHidden(long)
	}
}

// note names those that were given, on one line.
func (u unused) note(cmd *cobra.Command) {
	var given []string
	for _, option := range u {
		long, _, _ := strings.Cut(strings.TrimSuffix(option, "!"), "/")
		if cmd.Flags().Changed(long) {
			given = append(given, "--"+long)
		}
	}
	if len(given) > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "trainyard: note: %s means nothing here\n", strings.Join(given, ", "))
	}
}

// list splits lists of a flag that may be given several times.
func list(values []string) (all []string) {
	for _, value := range values {
		all = append(all, strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })...)
	}
	return all
}
