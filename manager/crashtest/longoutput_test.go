package crashtest

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainyard/trainyard/api"
)

// logOf is all that `logs` has of a job.
func (d *daemons) logOf(job string) string {
	d.t.Helper()
	var b strings.Builder
	_, err := d.dial().Logs(d.t.Context(), job, api.LogOptions{Tail: -1}, func(o api.Output) error {
		b.WriteString(o.Text)
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return b.String()
}

// free is how many bytes of the disk of the folder are free.
func (d *daemons) free() int64 {
	var s unix.Statfs_t
	if err := unix.Statfs(string(d.state), &s); err != nil {
		d.t.Fatal(err)
	}
	return int64(s.Bavail) * s.Bsize
}

// Promise 10, long outputs: jobs that write more than the disk has end well, one within the limit of its file, the
// other without one; the disk has room all the time, and start and end of what they wrote are there, with how much is
// not.
func TestPromise10LongOutput(t *testing.T) {
	const first, lines, width, limit = 10_000_000, 26_000_000, 9, 64 << 20 // 234 MB each
	d := newDaemons(t, 2)
	mount(t, "none", string(d.state), "tmpfs", 0, "mode=0700,size=300M")
	l := d.up()
	var least atomic.Int64
	least.Store(1 << 60)
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				least.Store(min(least.Load(), d.free()))
			}
		}
	}()
	command := fmt.Sprintf("command: [seq, '%d', '%d']", first, first+lines-1)
	d.submit("jobs: [{name: capped, output: {max: 64MiB}, " + command + "}, {name: open, " + command + "}]")
	for _, name := range []string{"capped", "open"} {
		if j := d.until(name, "done"); j.Outcome != "finished" || j.Attempt != 1 {
			t.Errorf("%+v, want it to end well", j)
		}
	}
	close(stop)
	if least.Load() < 32<<20 || d.free() < 64<<20 {
		t.Errorf("free: at least %d bytes, %d at the end; want room all the time", least.Load(), d.free())
	}
	for name, most := range map[string]int{"capped": limit, "open": 300 << 20} {
		text := d.logOf(name)
		head, rest, found := strings.Cut(text, "\n[trainyard: ")
		number, tail, _ := strings.Cut(rest, " bytes (")
		missing, err := strconv.Atoi(number)
		_, tail, _ = strings.Cut(tail, " of the output are not kept]\n")
		if !found || err != nil || len(head)+missing+len(tail) != lines*width || len(head)+len(tail) > most {
			t.Fatalf("%s: %d bytes at the start, %s not kept, %d at the end; want %d in all, at most %d kept", name,
				len(head), number, len(tail), lines*width, most)
		}
		if !strings.HasPrefix(head, fmt.Sprintln(first)) || !strings.HasSuffix(tail, fmt.Sprintln(first+lines-1)) ||
			strings.ContainsRune(text, 0) {
			t.Errorf("%s: from %.40q to %q, want the start and the end, and no zeros", name, head, tail[len(tail)-40:])
		}
	}
	d.end(l)
	t.Logf("two outputs of %d MB on a disk of 300 MiB; at least %.1f MiB were free", lines*width/1_000_000,
		float64(least.Load())/(1<<20))
}
