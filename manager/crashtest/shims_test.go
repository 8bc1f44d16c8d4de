package crashtest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The size of the campaign against shims.
const (
	shimRounds = 2
	afterwards = 150 * time.Millisecond // that a manager has at most to see that shims died
)

// TestShimsKilled: wherever shims are killed, and then their manager, every job ends as it should, none runs twice at a
// time, and nothing of it is left.
func TestShimsKilled(t *testing.T) {
	all := &tally{tried: make(map[string]int), reached: make(map[string]int), rand: rand.New(rand.NewPCG(3, 4))}
	c := newCampaign(t, all, manyShort())
	c.lossy = true
	for range shimRounds {
		for _, point := range shimPoints {
			c.shoot(point)
		}
	}
	c.checkEnd(c.last())
	t.Logf("shims killed at %v; %d starts", all.reached, all.starts)
}

// manyShort are jobs of which one starts, and another ends, at any time.
func manyShort() (list []job) {
	for i := range 40 {
		at := fmt.Sprintf("%dms", 50*i)
		switch i % 8 {
		case 3:
			list = append(list, fails(fmt.Sprintf("fails-%d", i), 1, 3, at, train(12, "--fail-at", "8")...))
		case 7:
			list = append(list, fails(fmt.Sprintf("shell-%d", i), 1, 7, at, "sh", "-c", strings.Join(train(8), " ")+
				"; exit 7"))
		default:
			list = append(list, finishes(fmt.Sprintf("short-%d", i), 1+i%2, 10, at))
		}
	}
	return list
}

// shoot has a manager live whose shims die at a point, until some have and for a moment more.
func (c *campaign) shoot(point string) {
	c.t.Helper()
	before := c.shot(point)
	l := c.begin(death{point: point, pass: 1}.armed())
	for end := time.Now().Add(patience); c.shot(point) == before; {
		if l.within(5*time.Millisecond) || time.Now().After(end) {
			c.t.Fatalf("no shim was killed at %s:\n%s", point, &l.stderr)
		}
	}
	l.within(time.Duration(c.all.rand.Int64N(int64(afterwards))))
	l.kill()
	c.gaps = append(c.gaps, gap{from: time.Now()})
	c.all.reached[point] += c.shot(point) - before
}

// shot counts the shims that were killed at a point.
func (c *campaign) shot(point string) (n int) {
	logs, err := filepath.Glob(filepath.Join(string(c.state), "jobs", "*", "*", "shim.log"))
	if err != nil {
		c.t.Error(err)
	}
	for _, path := range logs {
		b, _ := os.ReadFile(path)
		n += strings.Count(string(b), "failpoint "+point+"\n")
	}
	return n
}
