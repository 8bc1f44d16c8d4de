package speedup

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/trainyard/trainyard/internal/shareddata"
	"github.com/trainyard/trainyard/sched"
)

func t4Profiles(t testing.TB) map[string]*Profile {
	t.Helper()
	list, err := ReadProfiles(os.DirFS(filepath.Join(shareddata.DataDir(t), "pollux/osdi21/traces")), "")
	if err != nil {
		t.Fatal(err)
	}
	m := make(map[string]*Profile)
	for _, p := range list {
		m[p.Name] = p
	}
	return m
}

func TestGoodputs(t *testing.T) {
	profiles := t4Profiles(t)
	f, err := os.Open(filepath.Join(shareddata.DataDir(t), "pollux/derived/goodput_t4.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	bad := 0
	worst := map[string]float64{}
	batches := map[string]int{}
	count := map[string]int{}
	for _, row := range rows[1:] {
		p := profiles[row[0]]
		epoch, _ := strconv.Atoi(row[1])
		size, _ := strconv.ParseFloat(row[2], 64)
		k, _ := strconv.Atoi(row[3])
		want, _ := strconv.ParseFloat(row[4], 64)
		batch, _ := strconv.Atoi(row[5])
		if math.Abs(p.Sizes()[epoch]-size) > 1e-6 {
			t.Errorf("%v: size %v", row, p.Sizes()[epoch])
		}
		w, got := p.Best(epoch, k, (k+3)/4, sched.BatchRange{})
		e := math.Abs(got/want - 1)
		key := row[0] + " " + row[3]
		worst[key] = max(worst[key], e)
		count[key]++
		if w.Batch != batch {
			batches[key]++
		}
		if bad < 60 && e > 1e-7 {
			bad++
			t.Logf("%v: got %v %+v", row, got, w)
		}
	}
	for _, a := range []string{"bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3"} {
		for _, k := range []int{1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64} {
			key := a + " " + strconv.Itoa(k)
			t.Logf("%s: worst %g, %d batches of %d differ", key, worst[key], batches[key], count[key])
		}
	}
}
