package jobs

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
)

// offerKeys offers values of flags about keys: words that are known, and what the host that takes the jobs has, as far
// as it answers.
func offerKeys(cmd *cobra.Command, target func() client.Target) {
	for flag, words := range map[string][]string{"launcher": task.Launchers, "gpu-ids": task.GPUIDs,
		"limits": task.LimitWords, "open-mode": task.OutputModes, "checkpoint-signal": task.Signals} {
		term.CompleteFlag(cmd, flag, term.OneOf(func() []string { return slices.Clone(words) }))
	}
	ofJobs := func(of func(*api.Job) string) cobra.CompletionFunc {
		return term.OneOf(func() []string { return jobWords(target(), of) })
	}
	term.CompleteFlag(cmd, "group", ofJobs(func(j *api.Job) string { return j.Group }))
	term.CompleteFlag(cmd, "model", ofJobs(func(j *api.Job) string { return j.Model }))
	term.CompleteFlag(cmd, "class", ofJobs(func(j *api.Job) string { return j.Class }))
	term.CompleteFlag(cmd, "gpu-type", term.ListOf(func() []string { return gpuTypes(target()) }))
}

// jobWords are the words that the jobs of a host have, in order.
func jobWords(to client.Target, of func(*api.Job) string) (words []string) {
	c, err := to.Dial()
	if err != nil {
		return nil
	}
	defer c.Close()
	doc, err := c.Jobs(context.Background(), api.Filter{Limit: 1000})
	if err != nil {
		return nil
	}
	for i := range doc.Jobs {
		if word := of(&doc.Jobs[i]); word != "" {
			words = append(words, word)
		}
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// gpuTypes are the types of the GPUs of a host, in order.
func gpuTypes(to client.Target) (types []string) {
	c, err := to.Dial()
	if err != nil {
		return nil
	}
	defer c.Close()
	doc, err := c.Nodes(context.Background())
	if err != nil {
		return nil
	}
	for i := range doc.GPUs {
		if t := doc.GPUs[i].Type; t != "" {
			types = append(types, t)
		}
	}
	slices.Sort(types)
	return slices.Compact(types)
}
