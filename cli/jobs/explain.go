package jobs

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
)

func newExplain() *cobra.Command {
	var to client.Target
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "explain SEQ",
		Short: "Decide a decision of the log again, and say what went in",
		Long: `Replays the log up to event SEQ (` + "`trainyard events`" + ` shows the numbers), which
must be a decision, has the system decide again, and says who waited in which
order, which GPUs were free, what was chosen and why, what was refused, and
the system's figures.`,
		Example: `  trainyard explain 117`,
		Args:    term.Exactly("SEQ"),
		RunE: func(cmd *cobra.Command, args []string) error {
			seq, err := strconv.ParseUint(args[0], 10, 63)
			if err != nil || seq == 0 {
				return term.Usagef("explain: %q, want the number of an event, from 1 on", args[0])
			}
			return to.Asking(func(cmd *cobra.Command, c *api.Client, _ []string) error {
				doc, err := c.Explain(cmd.Context(), seq)
				if err != nil {
					return err
				}
				if asJSON {
					return term.WriteJSON(cmd.OutOrStdout(), doc)
				}
				return term.WriteText(cmd.OutOrStdout(),
					decisionText(&doc, term.WidthOf(cmd.OutOrStdout()), time.Now()))
			})(cmd, args)
		},
	}
	cmd.Flags().SortFlags = false
	to.AddFlags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON document instead of text")
	return cmd
}

// decisionText says a decision for people.
func decisionText(doc *api.Decision, width int, now time.Time) string {
	var b strings.Builder
	b.WriteString(term.Wrap(fmt.Sprintf("event %d, %s, %s: %s.", doc.Seq, client.When(doc.At, now), doc.System,
		doc.Sentence), width, 2) + "\n")
	waited := make([]string, 0, len(doc.Waited))
	for i := range doc.Waited {
		waited = append(waited, aheadName(&doc.Waited[i]))
	}
	order := "waited"
	if doc.Ordered {
		order = "order"
	}
	b.WriteString(term.Entry(order, orDash(strings.Join(waited, ", ")), width))
	b.WriteString(term.Entry("free", gpuNames(doc.Free), width))
	for i := range doc.Chosen {
		b.WriteString(term.Entry("chosen", chosenText(&doc.Chosen[i]), width))
	}
	for i := range doc.Refused {
		r := &doc.Refused[i]
		b.WriteString(term.Entry("refused", strings.TrimSuffix(chosenText(r)+", "+r.Text, ", "), width))
	}
	if len(doc.Figures) > 0 {
		b.WriteString(term.Entry("figures", figuresText(doc.Figures, doc.Unit), width))
	}
	return b.String()
}

// chosenText says what a job was to hold.
func chosenText(c *api.Chosen) string {
	text := fmt.Sprintf("%d %s: on %s", c.Job, c.Name, gpuNames(c.GPUs))
	if len(c.GPUs) == 0 {
		text = fmt.Sprintf("%d %s: nothing", c.Job, c.Name)
	}
	if c.Reason.Text != "" {
		text += "; " + c.Reason.Text
	}
	return text
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
