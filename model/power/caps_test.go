package power_test

import (
	"fmt"
	"math"
	"path"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/model/power"
	"github.com/trainyard/trainyard/sched"
)

// said says what the limit x does against the highest of c: limit, energy and time.
func reported(c power.Caps, x power.Cap) string {
	last := c[len(c)-1]
	energy := percent(float64(x.Energy() / last.Energy()))
	return strings.Join([]string{fmt.Sprint(float64(last.Limit), " to ", float64(x.Limit)), energy,
		percent(last.Speed / x.Speed)}, " ")
}

// Reference: Zeus, NSDI'23, data released with it. Ensure that the limit of least energy, and what it saves and costs,
// are those known of these jobs.
func TestZeusSummary(t *testing.T) {
	for _, c := range []struct {
		file, network, dataset, optimizer string
		batch                             int
		want                              string
	}{
		{"v100", "resnet50", "imagenet", "adadelta", 128, "250 to 150 -23 18"},
		{"v100", "shufflenetv2", "cifar100", "adadelta", 256, "250 to 100 -38 17"},
		{"v100", "bert_base_uncased", "squad", "adamw", 16, "250 to 150 -20 24"},
		{"v100", "bert_base_uncased", "sentiment140", "adamw", 32, "250 to 125 -27 38"},
		{"a40", "resnet50", "imagenet", "adadelta", 128, "300 to 200 -22 7"},
	} {
		list, err := power.ReadSummary(open(t, "energy/zeus/summary_power_"+c.file+".csv"), c.file)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, p := range list {
			if p.Network != c.network || p.Dataset != c.dataset || p.Optimizer != c.optimizer || p.Batch != c.batch {
				continue
			}
			found = true
			best, err := p.Caps.Best(math.Inf(1))
			if err != nil {
				t.Fatal(err)
			}
			if got := reported(p.Caps, best); got != c.want {
				t.Errorf("%s: %v: %s, want %s", c.file, p, got, c.want)
			}
		}
		if !found {
			t.Errorf("%s: no %s", c.file, c.network)
		}
	}
}

// Ensure that all tables are read whole.
func TestZeusFiles(t *testing.T) {
	for file, rows := range map[string]int{"v100": 476, "a40": 453, "p100": 270, "rtx6000": 410} {
		list, err := power.ReadSummary(open(t, "energy/zeus/summary_power_"+file+".csv"), file)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, p := range list {
			n += len(p.Caps)
		}
		if n != rows {
			t.Errorf("%s: %d rows, want %d", file, n, rows)
		}
	}
	for file, want := range map[string]string{"V100+resnet50+gpu0.csv": "250 to 150 -20 22",
		"V100+resnet50+gpu0,1.csv":   "250 to 125 -23 37",
		"V100+shufflenetv2+gpu0.csv": "250 to 100 -34 11", "A40+resnet50+gpu0,1,2,3.csv": "300 to 100 -21 1"} {
		c, err := power.ReadLimits(open(t, path.Join("energy/zeus/power_limit_profiles", file)), file)
		if err != nil {
			t.Fatal(err)
		}
		best, err := c.Best(math.Inf(1))
		if err != nil {
			t.Fatal(err)
		}
		if got := reported(c, best); got != want {
			t.Errorf("%s: %s, want %s", file, got, want)
		}
	}
}

var caps = power.Caps{{100, 100, .5}, {150, 140, .75}, {200, 190, .95}, {250, 220, 1}}

// Ensure that the best limit keeps within the slow-down asked for, and is the highest of equals.
func TestBest(t *testing.T) {
	for limit, want := range map[float64]sched.Watts{1: 250, 1.05: 250, 1.06: 200, 1.33: 200, 1.34: 150,
		math.Inf(1): 150} {
		if x, err := caps.Best(limit); err != nil || x.Limit != want {
			t.Errorf("slow-down %v: %v %v, want %v", limit, x, err, want)
		}
	}
	for _, bad := range []float64{.99, 0, -1, math.NaN()} {
		if _, err := caps.Best(bad); err == nil || !strings.HasSuffix(err.Error(), ", want >= 1") {
			t.Errorf("%v: %v", bad, err)
		}
	}
	same := power.Caps{{100, 100, 1}, {200, 100, 1}}
	if x, _ := same.Best(2); x.Limit != 200 {
		t.Errorf("%v of equals, want 200", x.Limit)
	}
}

// Ensure that what lies between two limits is between them, that no limit is the highest, and that one below all is
// refused.
func TestCapAt(t *testing.T) {
	for limit, want := range map[sched.Watts]power.Cap{0: caps[3], 250: caps[3], 400: caps[3], 100: caps[0],
		125: {125, 120, .625}, 200: caps[2]} {
		if x, err := caps.At(limit); err != nil || x != want {
			t.Errorf("%v W: %+v %v, want %+v", limit, x, err, want)
		}
	}
	for _, bad := range []sched.Watts{99, -1, sched.Watts(math.NaN())} {
		if _, err := caps.At(bad); err == nil || !strings.Contains(err.Error(), "want one from 100 to 250 W") {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if a, b, c := caps.Factor(0), caps.Factor(150), caps.Factor(1); a != 1 || b != 140.0/220 || c != 100.0/220 {
		t.Errorf("factors %v, %v, %v", a, b, c)
	}
}

const summaryHeader = "dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power\n"

const limitHeader = "start_time,window_name,elapsed_time,gpu0_energy\n"

// Ensure that what is wrong with a table is said with its line and what is wanted.
func TestCapErrors(t *testing.T) {
	summary := func(s string) error {
		_, err := power.ReadSummary(strings.NewReader(s), "f")
		return err
	}
	limits := func(s string) error {
		_, err := power.ReadLimits(strings.NewReader(s), "f")
		return err
	}
	for _, c := range []struct {
		read      func(string) error
		src, want string
	}{
		{summary, "", "line 1: empty, want a header line and rows"},
		{summary, summaryHeader, "line 1: no rows, want one for each job and power limit"},
		{summary, "dataset\n", `line 1: no column "network", want the columns dataset, network, batch_size, ` +
			`optimizer, power_limit, time_per_epoch, average_power`},
		{summary, "x," + summaryHeader,
			`line 1: unknown column "x", want the columns dataset, network, batch_size, optimizer, power_limit, ` +
				`time_per_epoch, average_power`},
		{summary, "a,a\n", `line 1: column "a" twice, want it once`},
		{summary, summaryHeader + "a,b,1,c,100\n", "line 2: 5 fields, want 7 as in the header"},
		{summary, summaryHeader + "a,b,1,c,100,1,NaN\n",
			`line 2: average_power "NaN", want a number from 0.001 to 1e+06`},
		{summary, summaryHeader + "a,b,1,c,-100,1,1\n", `line 2: power_limit "-100", want a number from 1 to 1e+06`},
		{summary, summaryHeader + "a,b,1.5,c,100,1,1\n", `line 2: batch_size 1.5, want a whole number`},
		{summary, summaryHeader + "a,,1,c,100,1,1\n",
			`line 2: network "", want a name of 1 to 256 bytes without control characters`},
		{summary, summaryHeader + "a,b,1,c,100,1,1\na,b,1,c,100,2,1\n",
			`line 3: power_limit 100 W of b on a, batch 1, c again, want each once`},
		{limits, "start_time,window_name,elapsed_time\n",
			`line 1: no column gpu0_energy, want the energy of at least one GPU`},
		{limits, limitHeader + "1,w,1,1\n",
			`line 2: window_name "w", want __GlobalPowerLimitOptimizer_ and a limit in W`},
		{limits, limitHeader + "1,__GlobalPowerLimitOptimizer_100,0,1\n",
			`line 2: elapsed_time "0", want a number from 1e-06 to 1e+09`},
		{limits, limitHeader + "1,__GlobalPowerLimitOptimizer_100,1,-1\n",
			`line 2: gpu0_energy "-1", want a number from 1e-06 to 1e+15`},
	} {
		if err := c.read(c.src); err == nil || err.Error() != "power: f: "+c.want {
			t.Errorf("%q:\n got %v\nwant power: f: %s", c.src, err, c.want)
		}
	}
	if err := limits(limitHeader); err == nil || err.Error() != "power: f: no power limits, want at least one" {
		t.Error(err)
	}
	if err := limits(limitHeader + "1,__GlobalPowerLimitOptimizer_9,1,1\n2,__GlobalPowerLimitOptimizer_9,1,1\n"); err ==
		nil || err.Error() != "power: f: limit 9 W after 9 W, want rising limits" {
		t.Error(err)
	}
}

func FuzzCaps(f *testing.F) {
	f.Add(summaryHeader + "a,b,1,c,100,1,1\n")
	f.Add(limitHeader + "1,__GlobalPowerLimitOptimizer_100,2,3\n")
	f.Fuzz(func(t *testing.T, src string) {
		check := func(c power.Caps) {
			if err := c.Validate(); err != nil {
				t.Fatal(err)
			}
			if x, err := c.Best(1.1); err != nil || x.Energy() > c[len(c)-1].Energy() {
				t.Fatal(x, err)
			}
		}
		list, err := power.ReadSummary(strings.NewReader(src), "f")
		for i := range list {
			check(list[i].Caps)
		}
		c, err2 := power.ReadLimits(strings.NewReader(src), "f")
		if err2 == nil {
			check(c)
		}
		for _, err := range []error{err, err2} {
			if err != nil && (!strings.HasPrefix(err.Error(), "power: f: ") ||
				!strings.Contains(err.Error(), "want ")) {
				t.Fatal(err)
			}
		}
	})
}
