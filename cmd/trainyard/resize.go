package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/manager/api"
	"github.com/trainyard/trainyard/manager/jobfile"
)

func newResize() *cobra.Command {
	var state, gpus string
	cmd := &cobra.Command{
		Use:   "resize JOB... --gpus N | MIN:MAX[:WANT]",
		Short: "Give jobs another width, or a range of widths",
		Long: `Changes how many GPUs or slots jobs ask for, by number or name. Those that
wait are looked at anew. One that holds GPUs and may no longer hold as many
gets SIGTERM, its grace, then SIGKILL, and goes on from its last checkpoint
with the new width when its turn comes; a system that resizes jobs chooses
within a range as it does anyway.`,
		Example: `  trainyard resize 3 --gpus 2
  trainyard resize bert --gpus 1:4`,
		Args:              jobs,
		ValidArgsFunction: jobNames(&state),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := parseWidths(gpus)
			if err != nil {
				return err
			}
			return asking(&state, func(cmd *cobra.Command, c *api.Client, args []string) error {
				return each(cmd, args, func(job string) error {
					doc, err := c.Resize(cmd.Context(), job, r)
					if err == nil {
						fmt.Fprintf(cmd.ErrOrStderr(), "%s asks for %s now\n", jobTitle(&doc), widthsText(&doc))
					}
					return err
				})
			})(cmd, args)
		},
	}
	cmd.Flags().SortFlags = false
	addState(cmd, &state)
	cmd.Flags().StringVar(&gpus, "gpus", "", "`N` GPUs or slots, or MIN:MAX, or MIN:MAX:WANT (WANT: as many as a system gives that does not resize; default MAX)")
	return cmd
}

// parseWidths reads N, MIN:MAX or MIN:MAX:WANT.
func parseWidths(text string) (r api.Resize, err error) {
	parts := strings.Split(text, ":")
	bad := func() error {
		return usagef("resize: --gpus %q, want N, MIN:MAX or MIN:MAX:WANT, from 1 to %d, MIN <= WANT <= MAX", text, jobfile.MaxGPUs)
	}
	n := make([]int, len(parts))
	for i := range parts {
		if n[i], err = strconv.Atoi(parts[i]); err != nil || n[i] < 1 || n[i] > jobfile.MaxGPUs {
			return r, bad()
		}
	}
	switch len(n) {
	case 1:
		r = api.Resize{Min: n[0], Want: n[0], Max: n[0]}
	case 2:
		r = api.Resize{Min: n[0], Want: n[1], Max: n[1]}
	case 3:
		r = api.Resize{Min: n[0], Want: n[2], Max: n[1]}
	}
	if r.Max == 0 || r.Min > r.Want || r.Want > r.Max {
		return r, bad()
	}
	return r, nil
}

// widthsText says what a job asks for.
func widthsText(j *api.Job) string {
	if j.Min == j.Max {
		return strconv.Itoa(j.Want)
	}
	return fmt.Sprintf("%d to %d, %d by default", j.Min, j.Max, j.Want)
}
