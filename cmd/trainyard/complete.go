package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/experiment"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/trace"
)

// completeFlag offers values of a flag of cmd.
func completeFlag(cmd *cobra.Command, name string, values cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(name, values); err != nil {
		panic(err) // the flag is not there, or is registered twice
	}
}

// oneOf offers the values that begin with what is typed.
func oneOf(values func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return withPrefix(values(), typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// firstArg offers values for the first argument and none for others.
func firstArg(values func() []string) cobra.CompletionFunc {
	offer := oneOf(values)
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return offer(cmd, args, typed)
	}
}

// listOf offers values for the last name of a list separated by commas, less those that are in it.
func listOf(values func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		cut := strings.LastIndexByte(typed, ',') + 1
		there := strings.Split(typed[:cut], ",")
		left := slices.DeleteFunc(values(), func(v string) bool { return slices.Contains(there, v) })
		for i := range left {
			left[i] = typed[:cut] + left[i]
		}
		return withPrefix(left, typed), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

func withPrefix(values []string, typed string) []string {
	return slices.DeleteFunc(values, func(v string) bool { return !strings.HasPrefix(v, typed) })
}

func systemNames() []string {
	var names []string
	for _, info := range system.Table() {
		names = append(names, info.Name)
	}
	return names
}

func presetNames() []string {
	var names []string
	for i := range experiment.Presets {
		names = append(names, experiment.Presets[i].Name)
	}
	return names
}

func experimentNames() []string {
	var names []string
	for i := range experiment.Experiments {
		names = append(names, experiment.Experiments[i].Name)
	}
	return names
}

func formatNames() []string {
	var names []string
	for _, f := range trace.Formats() {
		names = append(names, f.Name)
	}
	return names
}
