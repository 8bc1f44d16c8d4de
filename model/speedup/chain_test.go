package speedup

import (
	"testing"

	"encoding/csv"
	"github.com/trainyard/trainyard/internal/shareddata"
	"github.com/trainyard/trainyard/sched"
	"os"
	"path/filepath"
	"time"
)

func TestAllMeters(t *testing.T) {
	apps := map[string]App{}
	for n, p := range t4Profiles(t) {
		apps[n] = p
	}
	o := NewOracle(apps, 4, 64)
	files, _ := filepath.Glob(filepath.Join(shareddata.DataDir(t), "pollux/*/workloads*/*.csv"))
	bad := map[string]int{}
	for _, name := range files {
		f, _ := os.Open(name)
		rows, err := csv.NewReader(f).ReadAll()
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows[1:] {
			k, b := atoi(t, r[3]), atoi(t, r[4])
			spec := &sched.JobSpec{Name: r[0], Model: r[2], GPUs: sched.Range{Min: 1, Want: int32(k), Max: 64}, Batch: sched.BatchRange{Min: int32(b), Max: int32(b)}}
			m, err := o.Meter(spec)
			if err != nil {
				bad[filepath.Base(filepath.Dir(name))+" "+r[2]+" "+r[3]+" "+r[4]]++
				continue
			}
			if m.Nominal.GPUs != k {
				bad["wider "+filepath.Base(filepath.Dir(name))+" "+r[2]+" "+r[3]+" "+r[4]]++
			}
		}
	}
	for k, n := range bad {
		t.Log(k, n)
	}
	for n, a := range apps {
		start := time.Now()
		c := ChainOf(a, 4, 64, sched.BatchRange{})
		s, _ := c.Seconds(1)
		t.Log(n, time.Since(start), s/3600)
	}
}
