package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// checkpoint is the state of a training between two steps. A file holds it as one line of JSON, the weights as
// little-endian float64, and the SHA-256 of all that.
type checkpoint struct {
	Format  string    `json:"format"`
	Step    int       `json:"step"`
	Samples int       `json:"samples"` // seen so far: where the next batch starts
	Seed    uint64    `json:"seed"`
	Width   int       `json:"width"` // of the run that saved it; any width may load it
	Batch   int       `json:"batch"` // of the run that saved it
	Layers  [3]int    `json:"layers"`
	Weights []float64 `json:"-"`
}

const format = "trainyard-trainer-1"

// kept is the number of checkpoints that stay: the newest, and the one to fall back on if it is damaged.
const kept = 2

var shape = [3]int{inputs, hidden, classes}

// errDamaged says that a file is not, or not wholly, what save wrote.
var errDamaged = errors.New("damaged checkpoint")

func (c checkpoint) encode() ([]byte, error) {
	c.Format, c.Layers = format, shape
	head, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	data := append(append(head, '\n'), encodeWeights(c.Weights)...)
	sum := sha256.Sum256(data)
	return append(data, sum[:]...), nil
}

// decode is the reverse of encode. Its errors wrap errDamaged, but for a whole file of another format or shape.
func decode(data []byte) (checkpoint, error) {
	var c checkpoint
	cut := len(data) - sha256.Size
	if cut < 0 {
		return c, fmt.Errorf("%w: %d bytes, no room for a checksum", errDamaged, len(data))
	}
	if sum := sha256.Sum256(data[:cut]); !bytes.Equal(sum[:], data[cut:]) {
		return c, fmt.Errorf("%w: wrong checksum", errDamaged)
	}
	head, weights, _ := bytes.Cut(data[:cut], []byte("\n"))
	if err := json.Unmarshal(head, &c); err != nil {
		return c, fmt.Errorf("%w: header: %w", errDamaged, err)
	}
	if c.Format != format || c.Layers != shape {
		return c, fmt.Errorf("checkpoint of format %q, layers %v, want %q, %v", c.Format, c.Layers, format, shape)
	}
	if len(weights) != 8*numWeights || c.Step < 0 || c.Samples < 0 {
		return c, fmt.Errorf("%w: step %d, %d samples, %d bytes of weights", errDamaged, c.Step, c.Samples,
			len(weights))
	}
	for ; len(weights) > 0; weights = weights[8:] {
		c.Weights = append(c.Weights, math.Float64frombits(binary.LittleEndian.Uint64(weights)))
	}
	return c, nil
}

// save writes the checkpoint to dir and drops those that are too old to keep. Once it returns, the checkpoint survives
// a crash of the machine; a crash before that leaves those saved earlier as they were.
func (c checkpoint) save(dir string) error {
	data, err := c.encode()
	if err != nil {
		return err
	}
	temp := filepath.Join(dir, "unfinished")
	err = writeFile(filepath.Join(dir, fileName(c.Step)), temp, data)
	if err != nil {
		return err
	}
	return prune(dir)
}

// prune drops all but the newest checkpoints of dir.
func prune(dir string) error {
	steps, err := savedSteps(dir)
	if err != nil {
		return err
	}
	for _, old := range steps[:max(0, len(steps)-kept)] {
		if err := os.Remove(filepath.Join(dir, fileName(old))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// load returns the newest checkpoint of dir that is whole, and false if there is none. It sets damaged ones aside,
// under another name, and says so on warn: left there they would count among those to keep.
func load(dir string, warn io.Writer) (checkpoint, bool, error) {
	steps, err := savedSteps(dir)
	if err != nil {
		return checkpoint{}, false, err
	}
	for _, step := range slices.Backward(steps) {
		path := filepath.Join(dir, fileName(step))
		data, err := os.ReadFile(path)
		if err != nil {
			return checkpoint{}, false, err
		}
		c, err := decode(data)
		if err == nil {
			return c, true, nil
		}
		if !errors.Is(err, errDamaged) {
			return checkpoint{}, false, fmt.Errorf("%s: %w", path, err)
		}
		fmt.Fprintf(warn, "trainer: %s: %v; falling back\n", path, err)
		if err := os.Rename(path, path+".damaged"); err != nil {
			return checkpoint{}, false, err
		}
	}
	return checkpoint{}, false, nil
}

const (
	namePrefix = "step-"
	nameSuffix = ".ckpt"
)

func fileName(step int) string { return fmt.Sprintf("%s%09d%s", namePrefix, step, nameSuffix) }

// savedSteps returns the steps of the checkpoints in dir, ascending.
func savedSteps(dir string) ([]int, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var steps []int
	for _, e := range entries {
		digits := strings.TrimSuffix(strings.TrimPrefix(e.Name(), namePrefix), nameSuffix)
		if step, err := strconv.Atoi(digits); err == nil && fileName(step) == e.Name() {
			steps = append(steps, step)
		}
	}
	slices.Sort(steps)
	return steps, nil
}

// writeFile replaces the file as a whole: a reader, or a restart after a crash, finds the old content or the new. temp
// is a name in the same folder.
//
//  1. The data goes to temp, and to the disk. A run that dies here leaves it there, and the next one overwrites it.
//  2. The rename puts it in place. It is not durable yet: the name is in memory only.
//  3. The sync of the folder makes the name durable.
func writeFile(path, temp string, data []byte) error {
	f, err := os.Create(temp)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // folders cannot be synced there
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
