package jobs

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
)

func newResize() *cobra.Command {
	var to client.Target
	var gpus string
	var which selection
	cmd := &cobra.Command{
		Use:   "resize JOB... --gpus N | MIN-MAX[:WANT]",
		Short: "Give jobs another width, or a range of widths",
		Long: `Changes how many GPUs or slots jobs ask for, by number or name. Those that
wait are looked at again. One that holds GPUs and may no longer hold as many
gets SIGTERM, its grace, then SIGKILL, and goes on from its last checkpoint
with the new width when its turn comes; a system that resizes jobs chooses
within a range as it does anyway.
` + selectHelp,
		Example: `  trainyard resize 3 --gpus 2
  trainyard resize bert --gpus 1-4`,
		Args:              which.check,
		ValidArgsFunction: jobNames(&to),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := newWidths(cmd, gpus, args)
			if err != nil {
				return err
			}
			return to.Changing(func(cmd *cobra.Command, c *api.Client, args []string) error {
				return which.each(cmd, c, args, func(ctx context.Context, job string) error {
					was, err := c.Job(ctx, job)
					if err != nil {
						return err
					}
					doc, err := c.Resize(ctx, job, r)
					if err == nil {
						fmt.Fprintf(cmd.ErrOrStderr(), "%s asks for %s now%s\n", client.JobTitle(&doc),
							widthsText(&doc), offWidth(&was, &doc))
					}
					return err
				})
			})(cmd, args)
		},
	}
	cmd.Flags().SortFlags = false
	to.AddFlags(cmd)
	which.define(cmd)
	cmd.Flags().StringVar(&gpus, "gpus", "", "`N` GPUs or slots, or MIN-MAX, or MIN-MAX:WANT (WANT: as many as a "+
		"system gives that does not resize; default MAX)")
	return cmd
}

// offWidth says that a job is stopped which ran on as many as it does not take any more, and what of its work was not
// seen saved; "" = it is not.
func offWidth(was, now *api.Job) string {
	held := len(was.GPUs)
	if held == 0 || held >= now.Min && held <= now.Max {
		return ""
	}
	text := fmt.Sprintf("; it is stopped, as it runs on %d", held)
	if open := unseen(was); open != "" {
		text += "; " + open
	}
	return text
}

// newWidths reads the flag. Whoever forgot it reads what to type.
func newWidths(cmd *cobra.Command, gpus string, args []string) (r api.Resize, err error) {
	if !cmd.Flags().Changed("gpus") {
		example := "trainyard resize " + strings.Join(args[:min(len(args), 1)], "") + " --gpus 2"
		if last := strings.Join(args[max(len(args)-1, 0):], ""); len(args) > 1 {
			if _, bad := parseWidths("resize: --gpus", last); bad == nil {
				example = "trainyard resize " + strings.Join(args[:len(args)-1], " ") + " --gpus " + last
			}
		}
		return r, term.Usagef("resize: no --gpus, want %s, as in `%s`", widthsWanted, example)
	}
	w, err := parseWidths("resize: --gpus", gpus)
	return api.Resize{Min: int(w.Min), Want: int(w.Want), Max: int(w.Max)}, err
}

// widthsText says what a job asks for.
func widthsText(j *api.Job) string {
	text := term.Widths(j.Min, j.Max)
	if j.Want != j.Max {
		text += fmt.Sprintf(", %d where the system does not resize", j.Want)
	}
	return text
}
