package jobs

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
)

func newNodes() *cobra.Command {
	var to client.Target
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "nodes",
		Aliases: []string{"gpus"}, SuggestFor: []string{"sinfo", "slots", "devices"},
		Short: "List the GPUs of this machine, and who is on them",
		Long: `Lists the GPUs or slots of the machine: which jobs hold them, their use, memory
and power, and why one is given to no job: foreign processes, memory that did
not become free, a drain. GPUs that are plugged in while serve runs are used at
once; those that are gone are missing until they are back, or are forgotten.`,
		Args: term.Exactly(),
		RunE: to.Asking(func(cmd *cobra.Command, c *api.Client, _ []string) error {
			doc, err := c.Nodes(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return term.WriteJSON(cmd.OutOrStdout(), doc)
			}
			text := nodesText(&doc, term.WidthOf(cmd.OutOrStdout()))
			if price, failed := api.FiguresOf(c).Price(cmd.Context()); failed == nil { // few systems have one
				text += priceText(&price, doc.Unit)
			}
			return term.WriteText(cmd.OutOrStdout(), text)
		}),
	}
	to.AddFlags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON document instead of the table")
	cmd.AddCommand(newForget())
	return cmd
}

func newForget() *cobra.Command {
	var to client.Target
	cmd := &cobra.Command{
		Use:   "forget GPU...",
		Short: "Count GPUs that are missing no more",
		Long: `Retires GPUs or slots that are missing, by name or number: they are no longer
listed, and no job is taken that needs them. One that is there, or that a job
holds, is refused. One that is found again is used again. For admins.`,
		Example:           "  trainyard gpus forget GPU-8f3a\n  trainyard gpus forget slot-2 slot-3",
		Args:              gpus,
		ValidArgsFunction: gpuArgs(&to),
		RunE: to.Changing(func(cmd *cobra.Command, c *api.Client, args []string) error {
			return each(cmd, args, func(gpu string) error {
				_, err := c.ForgetGPU(cmd.Context(), gpu)
				if err == nil {
					fmt.Fprintf(cmd.ErrOrStderr(), "%s is forgotten; if it is found again it is used again\n", gpu)
				}
				return err
			})
		}),
	}
	to.AddFlags(cmd)
	return cmd
}

func nodesText(doc *api.Nodes, width int) string {
	t := term.Table{Left: 2, Prose: true}
	t.Add(doc.Unit, "state", "jobs", "use", "memory", "power", "remarks")
	for i := range doc.GPUs {
		g := &doc.GPUs[i]
		if g.State == "forgotten" {
			continue
		}
		t.Add(gpuNames([]string{g.Name}), gpuState(g), numbers(g.Jobs), useText(g), memoryText(g), wattsText(g),
			client.Remarks(g))
	}
	t.Cut(6, width)
	text := t.Text(width)
	if doc.Drained {
		text += fmt.Sprintf("\n%s is drained: nothing new starts; `trainyard undrain` lifts that.\n", doc.Node)
	}
	return text
}

// priceText says what GPUs, or slots, are worth.
func priceText(doc *api.Price, unit string) (text string) {
	for i := range doc.Prices {
		p, of := &doc.Prices[i], ""
		if p.Type != "" && len(doc.Prices) > 1 {
			of = " of type " + api.Printable(p.Type)
		}
		worth := worthText(p.Price) + " now: seconds that jobs wait, saved by each second of one"
		if p.Price == 0 {
			worth = "nothing now: no job lacks one"
		}
		text += fmt.Sprintf("\nA %s%s is worth %s.\n", unit, of, worth)
	}
	return text
}

// gpus wants at least one GPU.
func gpus(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return term.Usagef("%s: no GPU, want GPU... by name or number; see `%s --help`", term.OwnName(cmd),
			cmd.CommandPath())
	}
	return nil
}

// gpuState is the state of a GPU in a word: idle and busy where it may be used.
func gpuState(g *api.GPU) string {
	switch {
	case g.State != "in-use":
		return g.State
	case len(g.Jobs) > 0:
		return "busy"
	}
	return "idle"
}

func numbers(jobs []int) string {
	if len(jobs) == 0 {
		return "-"
	}
	words := make([]string, len(jobs))
	for i, id := range jobs {
		words[i] = strconv.Itoa(id)
	}
	return strings.Join(words, ",")
}

func useText(g *api.GPU) string {
	if g.OfMB == 0 {
		return "-"
	}
	return term.Percent(g.Use)
}

func memoryText(g *api.GPU) string {
	if g.OfMB == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f of %.0f GiB", g.MemoryMB/1024, g.OfMB/1024)
}

func wattsText(g *api.GPU) string {
	if g.Watts == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f W", g.Watts)
}

func newDrain() *cobra.Command {
	return drainVerb("drain", true, "Have nothing new start, on this machine or on some of its GPUs",
		`Jobs that run go on; nothing new starts on the machine, or on the GPUs named,
until that is undrained. It survives restarts of the manager. The jobs that go
on are named, those that may not be stopped for others first. --wait returns
once none is left.`)
}

func newUndrain() *cobra.Command {
	return drainVerb("undrain", false, "Let jobs start again on a drained machine or GPU",
		`Takes back what drain did, for the machine or for the GPUs named.`)
}

func drainVerb(verb string, on bool, short, long string) *cobra.Command {
	var to client.Target
	wait := false
	cmd := &cobra.Command{
		Use:               verb + " [GPU...]",
		Short:             short,
		Long:              long,
		ValidArgsFunction: gpuArgs(&to),
		Example:           fmt.Sprintf("  trainyard %s\n  trainyard %s slot-0 slot-1", verb, verb),
		RunE: to.Changing(func(cmd *cobra.Command, c *api.Client, args []string) error {
			if err := drain(cmd, c, args, on); err != nil || !on {
				return err
			}
			return (&holdouts{c: c, gpus: args, w: cmd.ErrOrStderr()}).report(cmd.Context(), wait)
		}),
	}
	to.AddFlags(cmd)
	if on {
		cmd.Flags().BoolVar(&wait, "wait", false, "return once no job is left on what is drained")
	}
	return cmd
}

// drain drains the machine, or GPUs of it, or lifts that, and says what became of it.
func drain(cmd *cobra.Command, c *api.Client, gpus []string, on bool) error {
	if len(gpus) == 0 {
		doc, err := c.Drain(cmd.Context(), on)
		if err == nil {
			reported(cmd.ErrOrStderr(), doc.Node, on, drainedYet(&doc))
		}
		return err
	}
	return each(cmd, gpus, func(gpu string) error {
		doc, err := c.DrainGPU(cmd.Context(), gpu, on)
		switch {
		case err != nil:
		case doc.Drained && !on:
			fmt.Fprintf(cmd.ErrOrStderr(), "%s is not drained by itself any more, but %s is; `trainyard undrain` "+
				"lifts that\n",
				gpu, doc.Node)
		default:
			reported(cmd.ErrOrStderr(), gpu, on, nil)
		}
		return err
	})
}

// reported says what became of a machine or a GPU; yet are the GPUs of the machine that stay drained.
func reported(w io.Writer, what string, on bool, yet []string) {
	switch {
	case on:
		fmt.Fprintf(w, "%s is drained: jobs on it go on, nothing new starts\n", what)
	case len(yet) > 0:
		words := make([]string, len(yet))
		for i, name := range yet {
			words[i] = term.ShellWord(name)
		}
		fmt.Fprintf(w, "%s takes jobs again, but not on what was drained by name; `trainyard undrain %s` lifts that\n",
			what, strings.Join(words, " "))
	default:
		fmt.Fprintf(w, "%s takes jobs again\n", what)
	}
}

// drainedYet lists the GPUs that are drained.
func drainedYet(doc *api.Nodes) (names []string) {
	for i := range doc.GPUs {
		if doc.GPUs[i].State == "drained" {
			names = append(names, doc.GPUs[i].Name)
		}
	}
	return names
}

// gpuArgs offers the names of GPUs or slots, as far as a manager answers.
func gpuArgs(to *client.Target) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		c, err := to.Dial()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer c.Close()
		doc, _ := c.Nodes(cmd.Context())
		var names []string
		for i := range doc.GPUs {
			if name := doc.GPUs[i].Name; !slices.Contains(args, name) {
				names = append(names, name)
			}
		}
		return term.WithPrefix(names, typed), cobra.ShellCompDirectiveNoFileComp
	}
}
