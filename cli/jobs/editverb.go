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
	"github.com/trainyard/trainyard/explain/text"
	"github.com/trainyard/trainyard/sched"
)

func newEdit() *cobra.Command {
	var to client.Target
	var which selection
	cmd := &cobra.Command{
		Use:   "edit JOB... [KEY=VALUE...]",
		Short: "Change keys of jobs that were submitted",
		Long: `Changes keys of jobs, of each all of them or none. Keys and values are those of
job files (docs/guide/jobs.md); [a, b] and {key: value} are read as there.
Without a key those of the one job are opened in $VISUAL or $EDITOR.

Of a job that waits all keys may be changed, but for its name, user, count,
array, after, submit, inherit_env and snapshot. Of one that runs priority, gpus,
retries, time_limit, grace, notify, wall_time, model, class and group hold at
once; the others hold from its next attempt on, and the answer says which. If
the job starts or ends meanwhile nothing of it is changed (exit code 4).
` + selectHelp,
		Example: `  trainyard edit 3 priority=-1 retries=2
  trainyard edit bert 'command=[python, train.py, --lr, "1e-4"]' gpus=1-4
  trainyard edit @sweep 12_[0-9] time_limit=4h`,
		Args: func(cmd *cobra.Command, args []string) error {
			names, keys := assignments(args)
			for _, arg := range keys {
				if key, _, ok := strings.Cut(arg, "="); !ok || key == "" {
					return term.Usagef("edit: %s, want KEY=VALUE, as in priority=-1", term.ShellWord(arg))
				}
			}
			if len(names) > 1 && len(keys) == 0 {
				return term.Usagef("edit: %d jobs and no key, want KEY=VALUE, as in priority=-1; the keys of one job "+
					"are opened in an editor", len(names))
			}
			return which.check(cmd, names)
		},
		ValidArgsFunction: jobNames(&to),
		RunE: to.Changing(func(cmd *cobra.Command, c *api.Client, args []string) error {
			names, given := assignments(args)
			keys, err := assigned(given)
			if err != nil {
				return err
			}
			picked, err := which.pick(cmd, c, names)
			if err != nil {
				return err
			}
			if len(picked) > 1 && keys == "" {
				return term.Usagef("edit: %d jobs and no key, want KEY=VALUE", len(picked))
			}
			return each(cmd, picked, func(job string) error { return editOne(cmd, c, job, keys, names, which.yes) })
		}),
	}
	cmd.Flags().SortFlags = false
	to.AddFlags(cmd)
	which.define(cmd)
	return cmd
}

// assignments splits arguments at the first that is no job: names have no =.
func assignments(args []string) (names, keys []string) {
	n := slices.IndexFunc(args, func(arg string) bool { return strings.Contains(arg, "=") })
	if n < 0 {
		n = len(args)
	}
	return args[:n], args[n:]
}

// editOne changes keys of a job, one of those that arguments named: a mapping in YAML; "" = those that its user changes
// in an editor. Keys and values that cannot be are a mistake in the command.
func editOne(cmd *cobra.Command, c *api.Client, job, keys string, named []string, yes bool) error {
	seen, err := api.EditsOf(c).See(cmd.Context(), job)
	if err == nil && keys == "" {
		keys, err = editor(cmd, &seen.Job)
	}
	if err == nil && keys != "" && !yes {
		err = confirmWidth(cmd, c, job, keys)
	}
	if err != nil || keys == "" {
		return err
	}
	doc, err := api.EditsOf(c).Edit(cmd.Context(), job, seen, api.Edit{Keys: keys})
	if err == nil {
		fmt.Fprint(cmd.ErrOrStderr(), editText(&doc, named))
	}
	return client.Mistake(err)
}

// confirmWidth has a person confirm that a job may not run on as many GPUs as it does any more, where it loses of its
// work by that.
func confirmWidth(cmd *cobra.Command, c *api.Client, job, keys string) error {
	if !strings.Contains(keys, "gpus") {
		return nil
	}
	doc, err := c.Why(cmd.Context(), job, 0, 0)
	if err != nil || doc.StakeSec < 1 || allows(keys, len(doc.Job.GPUs)) {
		return nil // what is wrong with the job the change itself says
	}
	title := client.JobTitle(&doc.Job)
	return confirmed(cmd, fmt.Sprintf("%s runs on %s: it is stopped, and loses %s of its run. Change it?", title,
		term.Counted(len(doc.Job.GPUs), doc.Unit), text.Work(sched.Seconds(doc.StakeSec))), title+" is not changed")
}

// allows reports whether a job to which keys are given may run on so many GPUs, as far as keys say.
func allows(keys string, gpus int) bool {
	var given struct{ GPUs any }
	if yaml.Unmarshal([]byte(keys), &given) != nil || given.GPUs == nil {
		return true // the answer says what is wrong
	}
	low, high := given.GPUs, given.GPUs
	if s, is := given.GPUs.(map[string]any); is {
		low, high = s["min"], s["max"]
	}
	least, is := low.(uint64)
	most, too := high.(uint64)
	return is && too && least <= uint64(gpus) && uint64(gpus) <= most
}

// editText says what holds from when on.
func editText(doc *api.Edited, named []string) string {
	var parts []string
	if len(doc.Now) > 0 {
		parts = append(parts, strings.Join(doc.Now, ", ")+" at once")
	}
	if len(doc.Next) > 0 {
		parts = append(parts, strings.Join(doc.Next, ", ")+" from its next attempt on")
	}
	text := client.JobTitle(&doc.Job) + " is changed: " + strings.Join(parts, ", ") + othersOf(&doc.Job, named) + "\n"
	for _, note := range doc.Notes {
		text += client.JobTitle(&doc.Job) + " " + note + "\n"
	}
	return text
}

// assigned returns KEY=VALUE as a mapping in YAML; "" = none. A value is that of the flag of the same name, where there
// is one.
func assigned(args []string) (string, error) {
	var b strings.Builder
	seen := make(map[string]bool)
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		if seen[key] {
			return "", term.Usagef("edit: %s twice, want it once", term.ShellWord(key))
		}
		seen[key] = true
		flow, err := flowOf(key, value)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%s: %s\n", quotedJSON(key), flow)
	}
	return b.String(), nil
}

// flowOf is a value in YAML.
func flowOf(key, value string) (string, error) {
	if strings.HasPrefix(value, "[") || strings.HasPrefix(value, "{") {
		return strings.ReplaceAll(value, "\n", " "), nil
	}
	for _, f := range keyFlags {
		if f.key == key && strings.ReplaceAll(f.flag, "-", "_") == key {
			return quotedJSON(f.value(value)), nil
		}
	}
	if key == "gpus" {
		w, err := parseWidths("edit: gpus", value)
		if err != nil || w.Min == w.Max {
			return quotedJSON(w.Max), err
		}
		return quotedJSON(map[string]int32{"min": w.Min, "max": w.Max, "default": w.Want}), nil
	}
	return quotedJSON(asNumber(value)), nil
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
		return "", term.Usagef("edit: no KEY=VALUE, want some where no one is at a terminal: $EDITOR needs one")
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
	keys, gone, err := differing(was, edited)
	if len(gone) > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: a deleted line changes nothing; give a key another value, as "+
			"time_limit: none\n", strings.Join(gone, ", "))
	}
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
	var more yaml.MapSlice
	text, err := json.Marshal(doc.Keys)
	if err != nil || doc.Keys == nil || yaml.Unmarshal(text, &more) != nil { // JSON is YAML
		return list
	}
	return append(list, more...)
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

// differing returns the keys of a text that are not, or otherwise, in a list, as a mapping; "" = none. gone are those
// that the text lacks.
func differing(was yaml.MapSlice, text string) (keys string, gone []string, _ error) {
	var old, now map[string]any
	first, err := yaml.Marshal(was)
	if failed := errors.Join(err, yaml.Unmarshal(first, &old)); failed != nil {
		return "", nil, failed
	}
	if err = yaml.Unmarshal([]byte(text), &now); err != nil {
		return "", nil, term.Malformed(fmt.Errorf("edit: %w; nothing is changed", err))
	}
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(now)) {
		if !reflect.DeepEqual(old[key], now[key]) {
			fmt.Fprintf(&b, "%s: %s\n", quotedJSON(key), quotedJSON(now[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(old)) {
		if _, kept := now[key]; !kept {
			gone = append(gone, key)
		}
	}
	return b.String(), gone, nil
}
