package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/trainyard/trainyard/driver/local/shim"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "shim" {
		os.Exit(shim.Main(shim.RunDir(os.Args[2])))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "boa:", err)
		os.Exit(1)
	}
}

// run is the program.
func run(ctx context.Context, args []string, w io.Writer) error {
	var c comparison
	fs := flag.NewFlagSet("boa", flag.ContinueOnError)
	fs.IntVar(&c.jobs, "jobs", 20, "jobs to train")
	fs.Float64Var(&c.size, "size", 12, "seconds that a wide job takes on one slot; a narrow one takes half as long")
	fs.Float64Var(&c.Budget, "budget", 4, "slots rented on average")
	fs.Float64Var(&c.Load, "load", 0.5, "slots' work that arrives, over the budget")
	fs.IntVar(&c.Slots, "slots", 12, "slots that there are to rent")
	fs.Uint64Var(&c.Seed, "seed", 1, "of arrivals and kinds")
	seeds := fs.Int("seeds", 1, "comparisons, each with the seed after that before")
	fs.DurationVar(&c.step, "step-time", 250*time.Millisecond, "of a training step on one slot")
	fs.StringVar(&c.trainer, "trainer", "", "the Go trainer (default: it is built)")
	asJSON := fs.Bool("json", false, "one JSON document instead of the table")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *seeds < 1 || *seeds > 100 {
		return fmt.Errorf("--seeds %d, want 1 to 100", *seeds)
	}
	if err := c.check(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "boa")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if c.trainer == "" {
		if c.trainer, err = build(ctx, dir); err != nil {
			return err
		}
	}
	list := make([]comparison, *seeds)
	for i := range list {
		one := &list[i]
		*one = c
		one.Seed, one.dir = c.Seed+uint64(i), filepath.Join(dir, fmt.Sprint("seed-", i))
		if err := os.Mkdir(one.dir, 0o700); err != nil {
			return err
		}
		if err := one.compare(ctx); err != nil {
			return err
		}
		if !*asJSON {
			if err := one.print(w); err != nil {
				return err
			}
		}
	}
	if *asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(report{list, sum(list)})
	}
	return printSums(w, sum(list))
}

// check returns what is wrong with the flags.
func (c *comparison) check() error {
	switch {
	case c.jobs < 1 || c.Slots < 1:
		return fmt.Errorf("--jobs %d and --slots %d, want > 0", c.jobs, c.Slots)
	case !(c.size > 0) || !(c.Budget > 0) || !(c.Load > 0 && c.Load < 1) || math.IsInf(c.size+c.Budget, 1):
		return fmt.Errorf("--size %v, --budget %v and --load %v, want > 0, and a load below 1", c.size, c.Budget,
			c.Load)
	case c.step < time.Millisecond:
		return fmt.Errorf("--step-time %v, want at least 1ms", c.step)
	}
	return nil
}

// build builds the trainer into dir.
func build(ctx context.Context, dir string) (string, error) {
	path := filepath.Join(dir, "trainer")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", path,
		"github.com/trainyard/trainyard/examples/trainer").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
}

// print writes the table.
func (c *comparison) print(w io.Writer) error {
	fmt.Fprintf(w, "%d trainings, budget %v of %d slots, load %v, seed %d\n\n", len(c.arrivals), c.Budget, c.Slots,
		c.Load, c.Seed)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tslots\tJCT s\tslot-s\tstart+end s\tJCT s simulated\tslot-s\terror of JCT\tof slot-s\t")
	for _, r := range c.Rows {
		fmt.Fprintf(t, "%s\t%.2f\t%.2f\t%.0f\t%.2f\t%.2f\t%.0f\t%+.1f %%\t%+.1f %%\t\n", r.Name, r.Real.Slots,
			r.Real.JCT, r.Real.SlotSeconds,
			r.Overhead, r.Simulated.JCT, r.Simulated.SlotSeconds, 100*r.JCTError, 100*r.SlotError)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}
