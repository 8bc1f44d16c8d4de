package store

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// crashVariable makes this test binary a process that writes to the folder it names, see TestMain.
const crashVariable = "TRAINYARD_STORE_TEST"

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashVariable); dir != "" {
		if err := writeUntilKilled(dir); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// writeUntilKilled goes on with the log of dir for ever, and says the number of each batch once EndBatch has returned.
// Said so by its second word, it dies by its own hand before a commit.
func writeUntilKilled(dir string) error {
	s, err := Open(dir)
	if err != nil {
		return err
	}
	epoch, err := s.NextEpoch(0)
	if err != nil {
		return err
	}
	fmt.Println("epoch", epoch)
	log, err := text(s)
	if err != nil {
		return err
	}
	last, err := wholeBatches(log)
	if err != nil {
		return err
	}
	seq := uint64(0)
	for n := uint64(1); n <= last; n++ {
		seq += uint64(batchEvents(n))
	}
	w := s.Writer(last)
	if len(os.Args) > 1 && os.Args[1] == "inside" {
		return dieInside(w, last, seq)
	}
	for {
		last++
		if err := write(w, &seq, last, last); err != nil {
			return err
		}
		fmt.Println(last)
	}
}

// dieInside kills the process when all of a batch but its commit is written.
func dieInside(w *Writer, last, seq uint64) error {
	w.BeginBatch()
	if last+1 != w.batch {
		return fmt.Errorf("batch %d, want %d", w.batch, last+1)
	}
	tx, err := w.s.db.Begin()
	if err != nil {
		return err
	}
	// Enough of it that pages go to the file before the commit.
	for range 200 {
		seq++
		if _, err := tx.Exec("insert into log values (?, ?, ?, null)", int64(seq), int64(w.batch),
			make([]byte, 64<<10)); err != nil {
			return err
		}
	}
	return syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

// child is a process that writes.
type child struct {
	*exec.Cmd
	out   *bufio.Scanner
	epoch int
}

func startWriting(t *testing.T, dir string, args ...string) *child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{Cmd: exec.CommandContext(t.Context(), exe, args...)}
	c.Env = append(os.Environ(), crashVariable+"="+dir)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewScanner(out)
	if !c.out.Scan() {
		t.Fatal("the writer says nothing")
	}
	if _, err := fmt.Sscanf(c.out.Text(), "epoch %d", &c.epoch); err != nil {
		t.Fatalf("the writer says %q", c.out.Text())
	}
	return c
}

// acknowledged reads until n batches more are acknowledged, or to the end, and returns the last number.
func (c *child) acknowledged(t *testing.T, n int, last uint64) uint64 {
	t.Helper()
	for ; n != 0 && c.out.Scan(); n-- {
		number, err := strconv.ParseUint(c.out.Text(), 10, 64)
		if err != nil {
			t.Fatalf("the writer says %q", c.out.Text())
		}
		last = number
	}
	return last
}

// Ensure that every batch whose EndBatch returned is there after a SIGKILL at any moment, that what else there is are
// whole batches, that the folder is free at once, and that the epoch has risen for good.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	closed(t, begin(t, dir))
	r := rand.New(rand.NewPCG(1, 2))
	acknowledged := uint64(0)
	for round := range 25 {
		c := startWriting(t, dir)
		acknowledged = c.acknowledged(t, 1+r.IntN(12), acknowledged)
		time.Sleep(time.Duration(r.IntN(2000)) * time.Microsecond) // the moment of the kill: any
		_ = c.Process.Kill()
		acknowledged = c.acknowledged(t, -1, acknowledged)
		_ = c.Wait()
		s := open(t, dir)
		if got := batches(t, s); got < acknowledged || got > acknowledged+1 {
			t.Fatalf("round %d: %d batches, %d acknowledged", round, got, acknowledged)
		}
		if epoch, err := s.NextEpoch(0); err != nil || epoch != int64(c.epoch)+1 {
			t.Fatalf("round %d: epoch %d after %d, %v", round, epoch, c.epoch, err)
		}
		closed(t, s)
	}
}

// Ensure that nothing is left of a batch whose writer died inside the commit.
func TestKilledInside(t *testing.T) {
	dir := t.TempDir()
	s := begin(t, dir)
	seq := uint64(0)
	if err := write(s.Writer(0), &seq, 1, 5); err != nil {
		t.Fatal(err)
	}
	closed(t, s)
	c := startWriting(t, dir, "inside")
	said := ""
	for c.out.Scan() {
		said += c.out.Text()
	}
	err := c.Wait()
	if status, ok := c.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() {
		t.Fatalf("the writer ended by itself: %v %s", err, said)
	}
	s = open(t, dir)
	if got := batches(t, s); got != 5 {
		t.Errorf("%d batches, want 5", got)
	}
	if err := write(s.Writer(5), &seq, 6, 9); err != nil {
		t.Error(err)
	}
	if got := batches(t, s); got != 9 {
		t.Errorf("%d batches, want 9", got)
	}
}
