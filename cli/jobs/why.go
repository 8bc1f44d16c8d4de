package jobs

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
)

// whyFlags are the flags of why as given.
type whyFlags struct {
	to    client.Target
	ahead time.Duration
	json  bool
}

// tryFor is how long remedies are tried.
const tryFor = time.Second

func newWhy() *cobra.Command {
	var f whyFlags
	cmd := &cobra.Command{
		Use: "why JOB", SuggestFor: []string{"show", "describe", "info", "inspect"},
		Short: "Say why a job stands as it does, and what would change that",
		Long: `Says what keeps a job, by number or name, from running: the one constraint
that binds, with its numbers; who is before it; when it is expected to start
and end (in 8 of 10 cases); what would start it now, each tried on a copy of
this moment, with the command that does it; the figures that the system goes
by; and, of one that lost its GPUs, to whom, and how much work.`,
		Example: `  trainyard why 3
  trainyard why bert --ahead 0 --json`,
		Args:              term.Exactly("JOB"),
		ValidArgsFunction: jobNames(&f.to),
		RunE: f.to.Asking(func(cmd *cobra.Command, c *api.Client, args []string) error {
			return f.why(cmd,
				c, args[0])
		}),
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	f.to.AddFlags(cmd)
	fs.DurationVar(&f.ahead, "ahead", api.AsSuits,
		"look into the future for so long at most, up to 5s; 0 = do not\n(default: 2s, and not where more than 2000 "+
			"jobs are not done)")
	fs.Lookup("ahead").DefValue = "0" // not shown: it is in words
	fs.BoolVar(&f.json, "json", false, "one JSON document instead of text")
	return cmd
}

func (f *whyFlags) why(cmd *cobra.Command, c *api.Client, job string) error {
	if (f.ahead < 0 && f.ahead != api.AsSuits) || f.ahead > 5*time.Second {
		return term.Usagef("--ahead %v, want 0 to 5s", f.ahead)
	}
	job, err := oneJob(cmd, c, job)
	if err != nil {
		return err
	}
	doc, err := c.Why(cmd.Context(), job, f.ahead, tryFor)
	if err != nil {
		return err
	}
	if f.json {
		return term.WriteJSON(cmd.OutOrStdout(), doc)
	}
	return term.WriteText(cmd.OutOrStdout(), whyText(&doc, term.WidthOf(cmd.OutOrStdout()), time.Now()))
}

// whyText says an answer for people.
func whyText(doc *api.Why, width int, now time.Time) string {
	var b strings.Builder
	b.WriteString(term.Wrap(client.JobTitle(&doc.Job)+" "+sentenceText(doc)+".", width, 2) + "\n")
	if doc.Job.State == "done" {
		b.WriteString(term.Entry("ended", endedText(&doc.Job, doc.Unit, now), width))
	}
	b.WriteString(failureText(doc, width))
	if doc.AheadAll > 0 {
		b.WriteString(term.Entry("ahead", aheadText(doc), width))
	}
	if doc.Bid != nil && doc.Bid.Text != "" {
		b.WriteString(term.Entry("price", doc.Bid.Text, width))
	}
	b.WriteString(futureText(doc, width, now))
	switch {
	case doc.Soon != "":
		b.WriteString(term.Entry("now", "the system starts it by itself at its next turn, "+client.When(doc.Soon, now),
			width))
	case len(doc.Remedies) == 0 && doc.Tried > 0:
		b.WriteString(term.Entry("now", "nothing that it could ask for would start it: "+term.Counted(doc.Tried,
			"change")+" tried", width))
	}
	for i := range doc.Remedies {
		b.WriteString(remedyText(&doc.Remedies[i], width))
	}
	if doc.Hurried {
		b.WriteString(term.Entry("", "there was no time to try all changes", width))
	}
	b.WriteString(stopsText(doc, width, now))
	if len(doc.Command) > 0 {
		b.WriteString(term.Entry("runs", commandText(doc.Command), width))
	}
	if doc.Job.Keys != nil && doc.Job.Keys.Snapshot != "" {
		b.WriteString(term.Entry("copy of", api.Printable(doc.Job.Keys.Snapshot), width))
	}
	if len(doc.Figures) > 0 {
		b.WriteString(term.Entry("figures", figuresText(doc.Figures, doc.Unit), width))
	}
	return b.String()
}

// commandText writes a command as a shell takes it, as far as it is not long.
func commandText(command []string) string {
	const most = 1000
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = term.ShellWord(word)
	}
	text := api.Printable(strings.Join(words, " "))
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

// sentenceText is the sentence, in which what others wrote of a failure is not long.
func sentenceText(doc *api.Why) string {
	said := doc.Sentence
	if f := doc.Job.Failure; f != nil && f.Text != "" {
		said = strings.ReplaceAll(said, f.Text, oneLine(f.Text))
	}
	return api.Printable(said)
}

// stopsText says whether a job may be stopped for others, and how it last was, and what is to be known of how it is
// watched.
func stopsText(doc *api.Why, width int, now time.Time) (text string) {
	if doc.Stops != "" {
		text = term.Entry("stops", "it "+doc.Stops, width)
	}
	if d := doc.Last; d != nil {
		text += term.Entry("lost", lostText(d, cmp.Or(doc.Unit, "GPU"), now), width)
	}
	for i := range doc.Job.Notices {
		text += term.Entry("notice", noticeText(&doc.Job.Notices[i], now), width)
	}
	if doc.Remark != "" {
		text += term.Entry("remark", api.Printable(doc.Remark), width)
	}
	return text
}

// futureText says when a job is expected to start and end, and what that rests on.
func futureText(doc *api.Why, width int, now time.Time) string {
	var b strings.Builder
	if doc.Start != nil {
		b.WriteString(term.Entry("starts", within(doc.Start, now), width))
	}
	if doc.End != nil {
		b.WriteString(term.Entry("ends", within(doc.End, now), width))
	}
	if doc.Rests != "" && (known(doc.Start) || known(doc.End)) {
		b.WriteString(term.Entry("rests on", doc.Rests, width))
	}
	return b.String()
}

// endedText says when a job that is done ended, how long it ran, on how many GPUs or slots, and in how many attempts.
func endedText(j *api.Job, unit string, now time.Time) string {
	text := client.When(j.Ended, now)
	if j.Started == "" {
		return text + "; it never ran"
	}
	on := term.Widths(j.Min, j.Max) + " " + unit + "s"
	switch {
	case j.Min == j.Max:
		on = term.Counted(j.Want, unit)
	case j.RunSec > 0:
		on = strconv.FormatFloat(math.Round(10*j.GPUSeconds/j.RunSec)/10, 'f', -1, 64) + " " + unit + "s on average"
	}
	return fmt.Sprintf("%s; it ran %s on %s, in %s", text, term.ShortTime(j.RunSec), on,
		term.Counted(j.Attempt, "attempt"))
}

// aheadText lists the first of those who are before a job.
func aheadText(doc *api.Why) string {
	const most = 5
	var words []string
	for i := range doc.Ahead[:min(len(doc.Ahead), most)] {
		a := &doc.Ahead[i]
		words = append(words, aheadName(a))
	}
	if n := doc.AheadAll - most; n > 0 {
		words = append(words, fmt.Sprintf("%d more", n))
	}
	width := term.Counted(doc.AheadMax, cmp.Or(doc.Unit, "GPU"))
	if doc.AheadMin != doc.AheadMax {
		width = term.Widths(doc.AheadMin, doc.AheadMax) + " " + cmp.Or(doc.Unit, "GPU") + "s"
	}
	return fmt.Sprintf("%s, for %s in all: %s", term.Counted(doc.AheadAll, "job"), width, strings.Join(words, ", "))
}

// aheadName names a job with its size.
func aheadName(a *api.Ahead) string {
	number := strconv.Itoa(a.ID)
	if a.Array != nil {
		number = fmt.Sprintf("%d_%d", a.Array.First, a.Array.Index)
	}
	return fmt.Sprintf("%s %s (%s)", number, a.Name, term.Widths(a.Min, a.Max))
}

// failureText says how the last attempt failed, as far as the sentence does not, and shows the last of what it wrote;
// or what its end cost, if it was stopped.
func failureText(doc *api.Why, width int) string {
	f := doc.Job.Failure
	if f == nil && doc.Job.Text != "" && doc.Job.Outcome != "finished" {
		return term.Entry("stopped", api.Printable(doc.Job.Text), width)
	}
	if f == nil {
		return ""
	}
	var b strings.Builder
	if doc.Job.State != "done" && f.Attempt > 0 {
		text := fmt.Sprintf("attempt %d: %s; %s left", f.Attempt, oneLine(f.Text), retriesText(f.Left))
		b.WriteString(term.Entry("failed", text, width))
	}
	what := "output"
	for _, line := range f.Tail {
		fmt.Fprintf(&b, "%-8s  %s\n", what, cutTo(api.Printable(line), max(width-10, shortestLine)))
		what = ""
	}
	return b.String()
}

// Lengths of what others wrote, in characters: a reason is broken at blanks, what a job wrote is cut to the width.
const (
	longestReason = 160
	shortestLine  = 20
)

// oneLine is a text that a job or device may have written, as one line that is not long.
func oneLine(text string) string {
	return cutTo(term.OneLine(api.Printable(cutTo(text, 10*longestReason))), longestReason)
}

// cutTo cuts a text to so many characters; what it colours ends there.
func cutTo(text string, most int) string {
	n := 0
	for i := range text {
		if n++; n > most {
			return api.Printable(text[:i]) + "..."
		}
	}
	return text
}

func retriesText(n int) string {
	if n == 1 {
		return "1 retry"
	}
	return fmt.Sprintf("%d retries", n)
}

// remedyText says what would start a job, the command first where there is one.
func remedyText(r *api.Remedy, width int) string {
	text := r.Text
	if r.Command != "" {
		text = "`" + r.Command + "`: " + r.Text
	}
	return term.Entry("now", "would start "+text+", on "+gpuNames(r.GPUs), width)
}

// lostText says how a job lost its GPUs or slots.
func lostText(d *api.Displaced, unit string, now time.Time) string {
	text := fmt.Sprintf("its %ss at %s %s; %s of work lost", unit, client.When(d.At, now), d.Text,
		term.ShortTime(d.LostSec))
	if d.Back != "" {
		return text + "; back at " + client.When(d.Back, now)
	}
	return text + "; not back yet"
}

// asSlots says slot where a figure speaks of GPUs, but for keys of job files.
var asSlots = strings.NewReplacer("gpu_memory_gb", "gpu_memory_gb", "gpu_use", "gpu_use",
	"GPUs", "slots", "GPU", "slot", "gpus", "slots", "gpu", "slot")

// unitOf is the unit of a figure, of one thing without its plural.
func unitOf(f *api.Figure) string {
	if f.Value == 1 && (f.Unit == "GPUs" || f.Unit == "nodes" || f.Unit == "samples") {
		return strings.TrimSuffix(f.Unit, "s")
	}
	return f.Unit
}

// figuresText lists figures, in words of what jobs hold here.
func figuresText(list []api.Figure, unit string) string {
	words := make([]string, len(list))
	for i := range list {
		f := &list[i]
		value := f.Text
		switch {
		case value != "":
		case math.Abs(f.Value) >= 1e308: // JSON has no infinity
			value = "no end"
		default:
			value = strings.TrimSpace(strconv.FormatFloat(f.Value, 'g', 4, 64) + " " + unitOf(f))
		}
		words[i] = strings.ReplaceAll(f.Name, "-", " ") + " " + value
	}
	if unit == "slot" {
		return asSlots.Replace(strings.Join(words, "; "))
	}
	return strings.Join(words, "; ")
}

// noticeText says what was sent last in one way.
func noticeText(n *api.NoticeState, now time.Time) string {
	text := "by " + n.Way
	switch {
	case n.Sent == nil && n.Failed == nil:
		return text + ": none was sent so far"
	case n.Sent != nil:
		text += fmt.Sprintf(": %s, sent %s", n.Sent.Outcome, client.When(n.Sent.At, now))
	}
	if f := n.Failed; f != nil {
		if text += ":"; n.Sent != nil {
			text = text[:len(text)-1] + ";"
		}
		text += fmt.Sprintf(" %s could not be sent %s", f.Outcome, client.When(f.At, now))
		if f.Why != "" {
			text += ": " + api.Printable(f.Why)
		}
	}
	return text
}
