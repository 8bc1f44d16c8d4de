package crashtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/internal/testsize"
)

// submitKills is the size of the campaign against `trainyard submit`.
var submitKills = testsize.Flag("submit-kills", 20, 200, "times that a daemon is killed under submits")

// handed is one run of `trainyard submit`.
type handed struct {
	names []string
	ids   []int
}

// submitter runs `trainyard submit` again and again until stop is closed: of one job by a command, of three by a
// file. Each run must end well, and say the numbers of its jobs.
func (d *daemons) submitter(number int, stop <-chan struct{}) (list []handed) {
	for n := 0; ; n++ {
		select {
		case <-stop:
			return list
		default:
		}
		name := fmt.Sprintf("s%d-%d", number, n)
		h := handed{names: []string{name}}
		args := []string{"submit", "--state", "state", "--patience", "5m", "--name", name, "--", "true"}
		var in bytes.Buffer
		if n%3 == 2 {
			h.names = []string{name + "-1", name + "-2", name + "-3"}
			args = []string{"submit", "--state", "state", "--patience", "5m", "-"}
			fmt.Fprintf(&in, "jobs: [{name: %s, count: 3, command: ['true'], submit: 10h}]", name)
		}
		cmd := exec.Command(trainyard, args...)
		var said bytes.Buffer
		cmd.Dir, cmd.Stdin, cmd.Stderr = d.dir, &in, &said
		cmd.Env = os.Environ()
		out, err := cmd.Output()
		for _, word := range strings.Fields(string(out)) {
			id, bad := strconv.Atoi(word)
			if bad != nil {
				d.t.Errorf("submit of %s says %q", name, out)
			}
			h.ids = append(h.ids, id)
		}
		if err != nil || len(h.ids) != len(h.names) {
			d.t.Errorf("submit of %s: %v, numbers %v\n%s", name, err, h.ids, &said)
			return list
		}
		list = append(list, h)
	}
}

// Promise 1, once: whoever submits by the command line has his jobs, each of them once and under the number that it
// printed, however often the daemon is killed meanwhile, and wherever.
func TestPromise01SubmittedOnce(t *testing.T) {
	d := newDaemons(t, 2)
	l := d.up()
	stop := make(chan struct{})
	const submitters = 3
	var lists [submitters][]handed
	var load sync.WaitGroup
	for i := range submitters {
		load.Go(func() { lists[i] = d.submitter(i, stop) })
	}
	moments := slices.Concat(mailPoints, []string{"commit.before", "commit.inside", "commit.after"})
	shots := map[string]int{}
	for n := 0; n < submitKills.N() && !t.Failed(); n++ {
		l.kill()
		point := moments[n%len(moments)]
		l = d.serve(point + ":" + strconv.Itoa(2+n%4)) // the first batch is that of its start
		if l.within(patience) {
			shots[point]++
		}
	}
	l.kill()
	l = d.up()
	close(stop)
	load.Wait()
	doc, err := d.dial().Jobs(t.Context(), api.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	there := map[string][]int{}
	for i := range doc.Jobs {
		there[doc.Jobs[i].Name] = append(there[doc.Jobs[i].Name], doc.Jobs[i].ID)
	}
	submits := 0
	for _, h := range slices.Concat(lists[:]...) {
		submits++
		for i, name := range h.names {
			if ids := there[name]; len(ids) != 1 || ids[0] != h.ids[i] {
				t.Errorf("job %s is there as %v, want once, as %d", name, ids, h.ids[i])
			}
			delete(there, name)
		}
	}
	if len(there) > 0 {
		t.Errorf("jobs of which no one has the number: %v", there)
	}
	alive := api.Filter{States: []string{"waiting", "starting", "running", "stopping"}}
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		busy, err := d.dial().Jobs(t.Context(), alive)
		if err != nil || busy.Total == 0 || time.Now().After(end) {
			break // what is left ends with the test
		}
	}
	d.end(l)
	t.Logf("%d submits through %d kills at failpoints: %v", submits, submitKills.N(), shots)
}
