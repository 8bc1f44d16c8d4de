package term

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// CompleteFlag offers values of a flag of cmd.
func CompleteFlag(cmd *cobra.Command, name string, values cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(name, values); err != nil {
		panic(err) // the flag is not there, or is registered twice
	}
}

// OneOf offers the values that start with what is typed.
func OneOf(values func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return WithPrefix(values(), typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// StartOf offers values that start with what is typed, and may be typed on.
func StartOf(values func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return WithPrefix(values(), typed), cobra.ShellCompDirectiveNoSpace
	}
}

// FirstArg offers values for the first argument and none for others.
func FirstArg(values func() []string) cobra.CompletionFunc {
	offer := OneOf(values)
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return offer(cmd, args, typed)
	}
}

// ListOf offers values for the last name of a list separated by commas, less those that are in it.
func ListOf(values func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		cut := strings.LastIndexByte(typed, ',') + 1
		there := strings.Split(typed[:cut], ",")
		left := slices.DeleteFunc(values(), func(v string) bool { return slices.Contains(there, v) })
		for i := range left {
			left[i] = typed[:cut] + left[i]
		}
		return WithPrefix(left, typed), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// WithPrefix returns the values that start with what is typed. It changes the list.
func WithPrefix(values []string, typed string) []string {
	return slices.DeleteFunc(values, func(v string) bool { return !strings.HasPrefix(v, typed) })
}
