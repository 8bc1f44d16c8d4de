// Command trust shows on real processes what README promises: a manager of its own on four slots, in a folder that it
// removes, and against it plain scripts, a PyTorch job, a batch, a hostile job, kills and a full disk. It prints a
// table and exits with 1 if anything in it is wrong.
//
//	trust [-bin FOLDER] [-log FILE]
//
// It needs no root and no GPU. It takes about a minute and at most three minutes of processor time.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

func main() {
	bin := flag.String("bin", "bin", "`folder` of trainyard and trainer")
	keep := flag.String("log", "", "`file` for the log of all events")
	disk := flag.String("disk", "", "`folder` to mount a small disk on, in a name space of its own; used by itself")
	flag.Parse()
	var err error
	if *disk != "" {
		err = fillDisk(*bin, *disk)
	} else {
		err = run(*bin, *keep)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "trust:", err)
		os.Exit(1)
	}
}

// run plays all scenes.
func run(bin, keep string) error {
	dir, err := os.MkdirTemp("", "trust")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bin, err = filepath.Abs(bin)
	if err != nil {
		return err
	}
	s := &stage{dir: dir, bin: bin, state: filepath.Join(dir, "state"), start: time.Now()}
	defer s.end()
	if err := s.serve(); err != nil {
		return err
	}
	t := &tally{}
	for _, scene := range []struct {
		name string
		play func(*stage, *tally) error
	}{
		{"a plain script next to a stream of short jobs", plainScene},
		{"a training job that is preempted twice", torchScene},
		{"a batch of thirteen jobs, and what was foreseen", batchScene},
		{"a hostile job", hostileScene},
		{"twenty kills under submits", killScene},
		{"a disk that fills and is freed", diskScene},
	} {
		fmt.Printf("== %s (%.0f s)\n", scene.name, time.Since(s.start).Seconds())
		if err := scene.play(s, t); err != nil {
			return fmt.Errorf("%s: %w", scene.name, err)
		}
	}
	return s.close(t, keep)
}
