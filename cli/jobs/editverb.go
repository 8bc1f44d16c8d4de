package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
)

func newEdit() *cobra.Command {
	var to client.Target
	cmd := &cobra.Command{
		Use:   "edit JOB [KEY=VALUE...]",
		Short: "Change keys of a job that was submitted",
		Long: `Changes keys of a job, all of them or none. Keys and values are those of job
files (docs/guide/jobs.md); [a, b] and {key: value} are read as there. Without
a key the job's keys are opened in $VISUAL or $EDITOR.

Of a job that waits all keys may be changed, but for its name, user, count,
array, after, submit and inherit_env. Of one that runs priority, gpus, retries,
wall_time, model, class and group hold at once; the others hold from its next
attempt on, and the answer says which. If the job starts or ends meanwhile
nothing is changed (exit code 4).`,
		Example: `  trainyard edit 3 priority=-1 retries=2
  trainyard edit bert 'command=[python, train.py, --lr, "1e-4"]' gpus=1-4`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := jobs(cmd, args); err != nil {
				return err
			}
			for _, arg := range args[1:] {
				if key, _, ok := strings.Cut(arg, "="); !ok || key == "" {
					return term.Usagef("edit: %s, want KEY=VALUE, as in priority=-1", term.ShellWord(arg))
				}
			}
			return nil
		},
		ValidArgsFunction: jobNames(&to),
		RunE: to.Changing(func(cmd *cobra.Command, c *api.Client, args []string) error {
			seen, err := api.EditsOf(c).See(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			keys, err := editedKeys(cmd, &seen.Job, args[1:])
			if err != nil || keys == "" {
				return err
			}
			doc, err := api.EditsOf(c).Edit(cmd.Context(), args[0], seen, api.Edit{Keys: keys})
			if err != nil {
				return err
			}
			fmt.Fprint(cmd.ErrOrStderr(), editText(&doc))
			return nil
		}),
	}
	cmd.Flags().SortFlags = false
	to.AddFlags(cmd)
	return cmd
}

// editText says what holds from when on.
func editText(doc *api.Edited) string {
	var parts []string
	if len(doc.Now) > 0 {
		parts = append(parts, strings.Join(doc.Now, ", ")+" at once")
	}
	if len(doc.Next) > 0 {
		parts = append(parts, strings.Join(doc.Next, ", ")+" from its next attempt on")
	}
	text := client.JobTitle(&doc.Job) + " is changed: " + strings.Join(parts, ", ") + "\n"
	for _, note := range doc.Notes {
		text += client.JobTitle(&doc.Job) + " " + note + "\n"
	}
	return text
}

// editedKeys returns the keys of a job to be changed as a mapping in YAML; "" = none.
func editedKeys(cmd *cobra.Command, doc *api.Job, assignments []string) (string, error) {
	if len(assignments) > 0 {
		return assigned(assignments)
	}
	return editor(cmd, doc)
}

// assigned returns KEY=VALUE as a mapping. A value is that of the flag of the same name, where there is one.
func assigned(args []string) (string, error) {
	var b strings.Builder
	seen := make(map[string]bool)
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		if seen[key] {
			return "", term.Usagef("edit: %s twice, want it once", term.ShellWord(key))
		}
		seen[key] = true
		fmt.Fprintf(&b, "%s: %s\n", quotedJSON(key), flowOf(key, value))
	}
	return b.String(), nil
}

// flowOf is a value in YAML.
func flowOf(key, value string) string {
	if strings.HasPrefix(value, "[") || strings.HasPrefix(value, "{") {
		return strings.ReplaceAll(value, "\n", " ")
	}
	for _, f := range keyFlags {
		if f.key == key && strings.ReplaceAll(f.flag, "-", "_") == key {
			return quotedJSON(f.value(value))
		}
	}
	if low, high, ranged := strings.Cut(value, "-"); key == "gpus" && ranged {
		return quotedJSON(map[string]any{"min": asWhole(low), "max": asWhole(high)})
	}
	return quotedJSON(asNumber(value))
}

func quotedJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil { // the text is no number
		b, _ = json.Marshal(fmt.Sprint(v))
	}
	return string(b)
}

// editor opens the keys of a job in the editor of its user, and returns those that are otherwise then.
func editor(cmd *cobra.Command, doc *api.Job) (string, error) {
	if !term.Reads(cmd.InOrStdin()) {
		return "", term.Usagef("edit: no KEY=VALUE, want some where no one is at a terminal")
	}
	was := shownKeys(doc)
	text, err := yaml.Marshal(was)
	if err != nil {
		return "", err
	}
	head := fmt.Sprintf("# %s: change its keys, save and leave; others of job files may be added.\n"+
		"# Unchanged: nothing is done.\n", client.JobTitle(doc))
	edited, err := inEditor(cmd.Context(), head+string(text), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
	if err != nil {
		return "", err
	}
	keys, err := differing(was, edited)
	if err == nil && keys == "" {
		fmt.Fprintln(cmd.ErrOrStderr(), "nothing is changed")
	}
	return keys, err
}

// shownKeys are the keys of a job that everyone may see.
func shownKeys(doc *api.Job) yaml.MapSlice {
	list := yaml.MapSlice{{Key: "priority", Value: doc.Priority}}
	if doc.Min == doc.Max {
		list = append(list, yaml.MapItem{Key: "gpus", Value: doc.Min})
	} else {
		list = append(list, yaml.MapItem{Key: "gpus", Value: yaml.MapSlice{{Key: "min", Value: doc.Min},
			{Key: "max", Value: doc.Max}, {Key: "default", Value: doc.Want}}})
	}
	for _, x := range []struct{ key, value string }{{"model", doc.Model}, {"class", doc.Class}, {"group", doc.Group}} {
		if x.value != "" {
			list = append(list, yaml.MapItem{Key: x.key, Value: x.value})
		}
	}
	return list
}

// inEditor returns a text as its user leaves it.
func inEditor(ctx context.Context, text string, in io.Reader, out, errs io.Writer) (string, error) {
	program := os.Getenv("VISUAL")
	if program == "" {
		program = os.Getenv("EDITOR")
	}
	if program == "" {
		program = "vi"
	}
	file, err := os.CreateTemp("", "trainyard-*.yaml")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_, err = file.WriteString(text)
	if failed := errors.Join(err, file.Close()); failed != nil {
		return "", failed
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", program+` "$1"`, "sh", file.Name())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errs
	if err = cmd.Run(); err != nil {
		return "", fmt.Errorf("edit: %s: %w; nothing is changed", program, err)
	}
	b, err := os.ReadFile(file.Name())
	return string(b), err
}

// differing returns the keys of a text that are not, or otherwise, in a list, as a mapping; "" = none.
func differing(was yaml.MapSlice, text string) (string, error) {
	var old, now map[string]any
	first, err := yaml.Marshal(was)
	if failed := errors.Join(err, yaml.Unmarshal(first, &old)); failed != nil {
		return "", failed
	}
	if err = yaml.Unmarshal([]byte(text), &now); err != nil {
		return "", term.Malformed(fmt.Errorf("edit: %w; nothing is changed", err))
	}
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(now)) {
		if !reflect.DeepEqual(old[key], now[key]) {
			fmt.Fprintf(&b, "%s: %s\n", quotedJSON(key), quotedJSON(now[key]))
		}
	}
	return b.String(), nil
}
