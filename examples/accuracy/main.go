// Accuracy says what elastic resizing does to the test accuracy of the Go trainer: runs that go on, four times, with
// another number of workers and another batch size, from the checkpoint of the last, against runs left alone, of the
// same seeds. All train on as many samples.
//
//	go run ./examples/accuracy [--seeds 5]
//
// It prints one JSON document: the accuracies by seed, the mean of the differences (resized - left alone), and the
// half-width of its 95 % interval by Student's t. What runs go through is that of examples/pytorch/accuracy.py.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
)

// phase is a part of a run.
type phase struct {
	workers, batch int
	scale          float64 // on the learning rate
	until          float64 // share of the samples after which it ends
}

// Batches are up to four times the 64 that the rate is meant for, with the square root as factor.
var (
	alone   = []phase{{2, 64, 1, 1}}
	resized = []phase{{2, 64, 1, .2}, {3, 128, math.Sqrt2, .4}, {1, 32, math.Sqrt(.5), .6}, {4, 256, 2, .8},
		{2, 64, 1, 1}}
)

// samples are those of 16 epochs of 128 steps of 64.
const samples = 16 * 128 * 64

// student has the 97.5 % points of Student's t by degrees of freedom.
var student = []float64{0, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262}

// pair is a seed's two runs.
type pair struct {
	Seed    int     `json:"seed"`
	Alone   float64 `json:"alone"`
	Resized float64 `json:"resized"`
}

func main() {
	seeds := flag.Int("seeds", 5, "seeds, 2 to 10")
	trainer := flag.String("trainer", "", "the Go trainer (default: it is built)")
	flag.Parse()
	if *seeds < 2 || *seeds > len(student) || flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "accuracy: --seeds %d and arguments %q, want 2 to %d and none\n", *seeds, flag.Args(),
			len(student))
		os.Exit(2)
	}
	if err := run(os.Stdout, *trainer, *seeds); err != nil {
		fmt.Fprintln(os.Stderr, "accuracy:", err)
		os.Exit(1)
	}
}

// run trains all and prints the document.
func run(w io.Writer, trainer string, seeds int) error {
	dir, err := os.MkdirTemp("", "accuracy")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if trainer == "" {
		trainer = filepath.Join(dir, "trainer")
		out, failed := exec.Command("go", "build", "-o", trainer,
			"github.com/trainyard/trainyard/examples/trainer").CombinedOutput()
		if failed != nil {
			return fmt.Errorf("go build: %w\n%s", failed, out)
		}
	}
	var pairs []pair
	for seed := 1; seed <= seeds; seed++ {
		p := pair{Seed: seed}
		if p.Alone, err = trained(trainer, filepath.Join(dir, fmt.Sprint("alone", seed)), seed, alone); err == nil {
			p.Resized, err = trained(trainer, filepath.Join(dir, fmt.Sprint("resized", seed)), seed, resized)
		}
		if err != nil {
			return err
		}
		pairs = append(pairs, p)
	}
	mean, half := difference(pairs)
	return json.NewEncoder(w).Encode(struct {
		Schema     string  `json:"schema"`
		Seeds      []pair  `json:"seeds"`
		Difference float64 `json:"difference"`
		HalfWidth  float64 `json:"half_width"`
	}{"trainyard.accuracy/v1", pairs, mean, half})
}

// difference returns the mean of the differences and the half-width of its interval.
func difference(pairs []pair) (mean, half float64) {
	n := float64(len(pairs))
	for _, p := range pairs {
		mean += (p.Resized - p.Alone) / n
	}
	squares := 0.
	for _, p := range pairs {
		off := p.Resized - p.Alone - mean
		squares += off * off
	}
	return mean, student[len(pairs)-1] * math.Sqrt(squares/(n-1)/n)
}

// trained trains a run through its phases, each going on from the checkpoint of the last, and returns its accuracy.
func trained(trainer, folder string, seed int, phases []phase) (float64, error) {
	var result struct {
		Accuracy float64 `json:"accuracy"`
		Samples  int     `json:"samples"`
	}
	for _, p := range phases {
		out := filepath.Join(folder, "result.json")
		until := int(p.until * samples)
		cmd := exec.Command(trainer, "--batch", "64", "--epoch-steps", "128", "--samples", fmt.Sprint(until), "--seed",
			fmt.Sprint(seed),
			"--checkpoint-every", "0", "--report-every", "1000", "--out", out)
		cmd.Env = []string{"TRAINYARD_CHECKPOINT_DIR=" + folder, fmt.Sprint("TRAINYARD_NUM_GPUS=", p.workers),
			fmt.Sprint("TRAINYARD_BATCH_GLOBAL=", p.batch),
			fmt.Sprint("TRAINYARD_LR_SCALE=", p.scale)}
		if said, err := cmd.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("trainer: %w\n%s", err, said)
		}
		b, err := os.ReadFile(out)
		if err == nil {
			err = json.Unmarshal(b, &result)
		}
		if err == nil && result.Samples < until {
			err = fmt.Errorf("%s: %d samples, want %d", out, result.Samples, until)
		}
		if err != nil {
			return 0, err
		}
	}
	return result.Accuracy, nil
}
