package crashtest

import (
	"syscall"
	"testing"
	"time"
)

// Ensure that what a job ran, and when it started and ended, is what its shim wrote down, although the daemon stood
// still meanwhile and heard of it much later.
func TestTimesAreThoseOfTheShim(t *testing.T) {
	d := newDaemons(t, 2)
	l := d.up()
	d.submit("jobs: [{name: short, command: [sh, -c, 'until [ -e go ]; do sleep 0.02; done']}]")
	d.until("short", "running")
	l.signal(syscall.SIGSTOP)
	d.let("go")
	for end := time.Now().Add(patience); !isOver(d.state.RunDir(0, 1)) && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	over, err := d.state.RunDir(0, 1).Over()
	if err != nil {
		t.Fatal(err)
	}
	ran := over.Ended.Sub(over.Started)
	stood := ran + 2*time.Second // longer than the job ran
	time.Sleep(stood)
	l.signal(syscall.SIGCONT)
	j := d.until("short", "done")
	ended, err := time.Parse(time.RFC3339Nano, j.Ended)
	if err != nil {
		t.Fatal(err)
	}
	if late := ended.Sub(over.Ended); late > stood/2 || late < -stood/2 {
		t.Errorf("ended %v after its record says, want at %v", late, over.Ended)
	}
	if got := time.Duration(j.RunSec * float64(time.Second)); got > ran+stood/2 {
		t.Errorf("it ran for %v, want the %v of its record", got, ran)
	}
	d.end(l)
}
