// Mutants plants faults in the program, one at a time, and runs for each the test that must find it. The tree is not
// changed: the compiler gets the faulty file in place of the sound one (go build -overlay).
//
//	mutants [-budget 4m] [-day N] [-run REGEXP] [LIST]
//
// LIST, by default tools/mutants/list.txt, has the faults. As many run as start within the budget, from another one on
// each day, so that all have their turn. At the end stands a table. Exit code 1: a test did not find its fault, and the
// list does not say why; or an entry of the list does not fit the source.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"text/tabwriter"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := run(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
	}
	if err != nil || !ok {
		os.Exit(1) //nolint:gocritic // exitAfterDefer: nothing is left to be stopped
	}
}

// run runs the faults that the arguments choose, and reports whether all were found.
func run(ctx context.Context, args []string) (ok bool, err error) {
	fs := flag.NewFlagSet("mutants", flag.ContinueOnError)
	budget := fs.Duration("budget", time.Hour, "start no fault after this `TIME`")
	day := fs.Int("day", int(time.Now().Unix()/86400), "`NUMBER` of the day, by which the list is turned")
	only := fs.String("run", "", "only faults whose promise or name matches `REGEXP`")
	if bad := fs.Parse(args); bad != nil {
		return false, bad
	}
	file := "tools/mutants/list.txt"
	if fs.NArg() > 0 {
		file = fs.Arg(0)
	}
	match, err := regexp.Compile(*only)
	if err != nil {
		return false, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return false, err
	}
	list, err := parse(string(text))
	if err != nil {
		return false, fmt.Errorf("%s:%w", file, err)
	}
	chosen := list[:0:0]
	for _, m := range turned(list, *day) {
		if match.MatchString(m.promise + ": " + m.name) {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) == 0 {
		return false, fmt.Errorf("%s: no fault is chosen", file)
	}
	results, err := runAll(ctx, chosen, *budget)
	report(results, len(chosen))
	ok = len(results) > 0
	for _, r := range results {
		ok = ok && (r.state == killed || r.state == survived && r.survives != "")
	}
	return ok && err == nil, err
}

// turned starts the list at another place each day, three entries further than the day before.
func turned(list []mutant, day int) []mutant {
	if len(list) == 0 {
		return nil
	}
	at := 3 * day % len(list)
	return append(append([]mutant(nil), list[at:]...), list[:at]...)
}

// report prints the table.
func report(results []result, of int) {
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "promise\tfault\ttest\tresult\tseconds")
	found := 0
	for _, r := range results {
		if r.state == killed {
			found++
		}
		note := r.state.String()
		if r.state == survived && r.survives != "" {
			note = "not found (" + r.survives + ")"
		}
		if r.note != "" {
			note += " (" + r.note + ")"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.1f\n", r.promise, r.name, r.test, note, r.took.Seconds())
	}
	_ = w.Flush() // to stdout
	fmt.Printf("%d faults, %d found by their tests, %d of the list not run\n", len(results), found, of-len(results))
}
