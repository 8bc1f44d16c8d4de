package trace

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// job is a rigid job with the four values that every format has.
func job(name string, submitS float64, gpus int, durationS float64) Job {
	return Job{
		Spec:     sched.JobSpec{Name: name, Submit: sched.Time(sched.Seconds(submitS)), GPUs: sched.Rigid(gpus)},
		Duration: sched.Seconds(durationS),
	}
}

func with(j Job, change func(*Job)) Job {
	change(&j)
	return j
}

// sample is a hand-made file and what it says.
type sample struct {
	name, text string
	options    Options
	tables     tables
	format     string
	jobs       []Job
	warnings   []string
	origin     string // of the times
	leftOut    int    // rows
}

// read parses the text of c.
func (c *sample) read() (*Trace, error) {
	return Parse(strings.NewReader(c.text), "sample.csv", c.tables.with(c.options))
}

// tables are what Options.Jobs and Options.Instances read; nothing stands for nil.
type tables struct{ jobs, instances string }

func (t tables) with(o Options) Options {
	if t.jobs != "" {
		o.Jobs = strings.NewReader(t.jobs)
	}
	if t.instances != "" {
		o.Instances = strings.NewReader(t.instances)
	}
	return o
}

// samples are files of every format.
var samples = slices.Concat(tableSamples, logSamples)

// tableSamples are files of our own and of simulators.
var tableSamples = []sample{
	{name: "minimal", format: "trainyard",
		text: "job_id,submit_s,num_gpus,duration_s\na,0,1,10\nb,0.5,8,0\nc,7.000000001,2,1e3\n",
		jobs: []Job{job("a", 0, 1, 10), job("b", .5, 8, 0), job("c", 7.000000001, 2, 1000)}},
	{name: "any order, all columns", format: "trainyard",
		text: "gpu_type,state,num_gpus,user,group,model,class,priority,batch,deadline_s,wall_time_s,duration_s," +
			"submit_s,job_id\n" +
			"A100,failed,4,ann,vc1,resnet50,A,-3,256,3600,7200.5,60,30,x-1\n" +
			",,1,,,,,,,,,5,30,y\n",
		jobs: []Job{
			with(job("x-1", 30, 4, 60), func(j *Job) {
				s := &j.Spec
				s.User, s.Group, s.Model, s.Class, s.Priority = "ann", "vc1", "resnet50", "A", -3
				s.Batch = sched.BatchRange{Min: 256, Max: 256}
				s.Deadline, s.WallTime = sched.Time(time.Hour), 2*time.Hour+500*time.Millisecond
				j.State, j.GPUType = "failed", "A100"
			}),
			job("y", 30, 1, 5)}},
	{name: "byte order mark, CRLF, no last line end, empty lines, quotation marks", format: "trainyard",
		text: "\ufeffjob_id,\"submit_s\",num_gpus,duration_s\r\n\r\n\"a,\"\"1\"\"\",0,1,10\r\n\r\nb,\"1\",1,10",
		jobs: []Job{job(`a,"1"`, 0, 1, 10), job("b", 1, 1, 10)}},
	{name: "unsorted", format: "trainyard",
		text:     "job_id,submit_s,num_gpus,duration_s\nlate,9,1,1\nfirst,3,1,1\nsecond,3,1,1\n",
		jobs:     []Job{job("first", 3, 1, 1), job("second", 3, 1, 1), job("late", 9, 1, 1)},
		warnings: []string{"rows are not in order of submission: sorted, 3 of 3 moved"}},
	{name: "tiresias", format: "tiresias",
		text: "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\r\n" +
			"1,4,0,100,vgg19,200,30\r\n2,1,30,90,resnet50,61,0\r\n",
		jobs: []Job{
			with(job("1", 0, 4, 200), func(j *Job) { j.Spec.Model = "vgg19" }),
			with(job("2", 30, 1, 61), func(j *Job) { j.Spec.Model = "resnet50" })}},
	{name: "tiresias in milliseconds", format: "tiresias", options: Options{Unit: time.Millisecond},
		text: "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n1,4,1500,100,,61000.25,30\n",
		jobs: []Job{job("1", 1.5, 4, 61.00025)}},
	{name: "philly", format: "philly",
		text: "job_id,submit_time,submit_s,num_gpus,duration_s,vc,vc_source\n" +
			"0,2017-08-14T23:27:00,0,1,3613,abc123,hand\n1,2017-08-14T23:27:09,9,16,0,,\n",
		jobs: []Job{
			with(job("0", 0, 1, 3613), func(j *Job) { j.Spec.Group = "abc123" }),
			job("1", 9, 16, 0)}},
	{name: "venus", format: "venus",
		text: "job_id,log_row,submit_time,submit_s,num_gpus,duration_s,clamped_48h\n" +
			"7,0,2020-03-18T04:01:39,0,32,172800,1\n9,2,2020-03-18T04:02:39,60,8,12,0\n",
		jobs:     []Job{job("7", 0, 32, 172800), job("9", 60, 8, 12)},
		warnings: []string{"1 of 2 durations are clamped at 48 h"}},
	{name: "parts of a GPU, attempts, comments", format: "trainyard", origin: "2024-05-01T12:00:00",
		text: "# source: by hand\n# origin: 2024-05-01T12:00:00\njob_id,submit_s,num_gpus,duration_s,attempts\n" +
			"#a,0,0.5,1,3\nb,0,1.250,1,\nc,0,8.0,1,1\nd,0,1000000,1,\n",
		jobs: []Job{
			with(job("#a", 0, 1, 1), func(j *Job) { j.MilliGPU, j.Attempts = 500, 3 }),
			with(job("b", 0, 2, 1), func(j *Job) { j.MilliGPU = 1250 }),
			with(job("c", 0, 8, 1), func(j *Job) { j.Attempts = 1 }),
			job("d", 0, 1000000, 1)},
		warnings: []string{"2 of 4 jobs " + partsBooked}},
	{name: "muri", format: "muri",
		text: "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time," +
			"resource_time_0,resource_time_1,resource_time_2,priority\n" +
			"7,8,1500,900,vgg16,16,281000,28000,214,0.6,75,66,1\n",
		jobs: []Job{with(job("7", 1.5, 8, 281), func(j *Job) {
			j.Spec.Model, j.Spec.Batch = "vgg16", sched.BatchRange{Min: 16, Max: 16}
		})}},
	{name: "elasticflow", format: "elasticflow",
		text: "job_id,submit_time,iteration,model_name,ddl,batch_size,num_gpu,duration\n0,100,2011,ncf,400,,2,200\n",
		jobs: []Job{with(job("0", 100, 2, 200), func(j *Job) {
			j.Spec.Model, j.Spec.Deadline = "ncf", sched.Time(400*time.Second)
		})}},
	{name: "gavel with step times", format: "gavel", options: Options{Steps: EveryStep(time.Second / 4)},
		text: "LM (batch size 20)\tpython3 main.py -b 20\tlm\t--steps\t1\t1000\t2\t1\t-1.000000\t0\nA3C\tpython3 " +
			"main.py\trl\t--max-steps\t0\t8\t1\t1\t1.5\t7.5\n",
		jobs: []Job{
			with(job("0", 0, 2, 250), func(j *Job) {
				j.Spec.Model, j.Spec.Batch = "LM", sched.BatchRange{Min: 20, Max: 20}
			}),
			with(job("1", 7.5, 1, 2), func(j *Job) {
				j.Spec.Model, j.Spec.Deadline = "A3C", sched.Time(10500*time.Millisecond)
			})}},
	{name: "gavel described roughly", format: "gavel", options: Options{Roughly: true},
		text: "A3C\tpython3 main.py\trl\t--max-steps\t0\t8\t1\t1\t-1\t7.5\n",
		jobs: []Job{with(job("0", 7.5, 1, 0), func(j *Job) { j.Spec.Model = "A3C" })},
		warnings: []string{"1 of 1 jobs have no duration: the file counts iterations, and how long one takes is not " +
			"known"}},
	{name: "shockwave", format: "shockwave",
		text: "ResNet-18 (batch size 32)\tpython3 " +
			"main.py\tcifar\t--steps\t1\t1000\t4\taccordion\t1\t-1\t3338.5\t55.0\n",
		jobs: []Job{with(job("0", 55, 4, 3338.5), func(j *Job) {
			j.Spec.Model, j.Spec.Batch = "ResNet-18", sched.BatchRange{Min: 32, Max: 32}
		})}},
	{name: "table of shockwave", format: "shockwave-table",
		text: "job_id,job_type,total_steps,scale_factor,mode,priority,slo,duration_s,arrival_s\n" +
			"3,CycleGAN,9,1,gns,1.0,2.0,10.0,5.0\n",
		jobs: []Job{with(job("3", 5, 1, 10), func(j *Job) {
			j.Spec.Model, j.Spec.Deadline = "CycleGAN", sched.Time(25*time.Second)
		})}},
	{name: "table of gavel", format: "gavel-philly", options: Options{Steps: EveryStep(time.Second)},
		text: "vc,job_id,job_type,total_steps,arrival_s,scale_factor\nx,0,A3C,10,0.0,1\ny,0,A3C,20,0.0,4\n",
		jobs: []Job{
			with(job("x/0", 0, 1, 10), func(j *Job) { j.Spec.Group, j.Spec.Model = "x", "A3C" }),
			with(job("y/0", 0, 4, 20), func(j *Job) { j.Spec.Group, j.Spec.Model = "y", "A3C" })}},
	{name: "synergy", format: "synergy", options: Options{Steps: EveryStep(time.Millisecond)},
		text: "job_id,model,arrival_s,iterations,num_gpus\n0,gnmt,0.001,26435,1\n",
		jobs: []Job{with(job("0", .001, 1, 26.435), func(j *Job) { j.Spec.Model = "gnmt" })}},
	{name: "blox", format: "blox", options: Options{Steps: EveryStep(time.Millisecond)},
		text: "name,model_name,time,num_iters,num_replicas\n4,res18,266,1942,2\n",
		jobs: []Job{with(job("4", 266, 2, 1.942), func(j *Job) { j.Spec.Model = "res18" })}},
	{name: "pal with step times", format: "pal", options: Options{Steps: EveryStep(time.Second)},
		text: "job_id,num_gpus,submit_time,duration,model\n0,1,0,10,Bert-Base\n",
		jobs: []Job{with(job("0", 0, 1, 10), func(j *Job) { j.Spec.Model, j.Spec.Class = "Bert-Base", "A" })}},
	{name: "pai", format: "pai",
		text: "job_id,arrival_s,service_sec,gpu_count\r\nw#1,16670.0,167731.5,8\r\n",
		jobs: []Job{job("w#1", 16670, 8, 167731.5)}},
	{name: "pal", format: "pal",
		text: "job_id,num_gpus,submit_time,duration,model\n0,1,98,1481.0,vgg19\n1,12,115,4,BERT\n" +
			"2,4,116,0.5,PointNet\n",
		jobs: []Job{
			with(job("0", 98, 1, 445.203915021), func(j *Job) { j.Spec.Model, j.Spec.Class = "vgg19", "C" }),
			with(job("1", 115, 12, .716), func(j *Job) { j.Spec.Model, j.Spec.Class = "BERT", "B" }),
			with(job("2", 116, 4, .140625), func(j *Job) { j.Spec.Model, j.Spec.Class = "PointNet", "D" })}},
	{name: "pal with batch size", format: "pal",
		text: "job_id,num_gpus,submit_time,duration,model,batch_size\n0,6,53,1e4,resnet50,2048\n1,2,60,0,GPT2,\n",
		jobs: []Job{
			with(job("0", 53, 6, 1754.042936776), func(j *Job) {
				j.Spec.Model, j.Spec.Class, j.Spec.Batch = "resnet50", "A", sched.BatchRange{Min: 2048, Max: 2048}
			}),
			with(job("1", 60, 2, 0), func(j *Job) { j.Spec.Model, j.Spec.Class = "GPT2", "B" })}},
}

func TestSamples(t *testing.T) {
	for i := range samples {
		c := &samples[i]
		t.Run(c.name, func(t *testing.T) {
			got, err := c.read()
			if err != nil {
				t.Fatal(err)
			}
			out := 0
			for _, n := range got.LeftOut {
				out += n.Jobs
			}
			origin := ""
			if !got.Origin.IsZero() {
				origin = got.Origin.Format(originFormat)
			}
			if out != c.leftOut || c.origin != "" && origin != c.origin {
				t.Errorf("%d rows left out, origin %s, want %d and %s", out, origin, c.leftOut, c.origin)
			}
			if got.Format != c.format || got.Path != "sample.csv" || got.Zone == "" {
				t.Errorf("format %q, path %q, zone %q, want format %q and a zone", got.Format, got.Path, got.Zone,
					c.format)
			}
			if !reflect.DeepEqual(got.Jobs, c.jobs) {
				t.Errorf("jobs\n%+v, want\n%+v", got.Jobs, c.jobs)
			}
			if !reflect.DeepEqual(got.Warnings, c.warnings) {
				t.Errorf("warnings %q, want %q", got.Warnings, c.warnings)
			}
			roundTrip(t, got)
		})
	}
}

// roundTrip ensures that reading what was written gives the same jobs, and writing those the same bytes.
func roundTrip(t *testing.T, from *Trace) {
	t.Helper()
	var first, second bytes.Buffer
	if err := from.Write(&first, "trainyard", false); err != nil {
		t.Fatal(err)
	}
	again, err := Parse(bytes.NewReader(first.Bytes()), "again.csv", Options{Format: "trainyard"})
	if err != nil {
		t.Fatalf("%v in\n%.1000s", err, first.String())
	}
	if !reflect.DeepEqual(again.Jobs, from.Jobs) {
		t.Errorf("jobs changed in writing and reading:\n%.1000s", first.String())
	}
	if len(again.Warnings) > 1 || len(again.Warnings) == 1 && !strings.HasSuffix(again.Warnings[0], partsBooked) {
		t.Errorf("warnings %q about what was written", again.Warnings)
	}
	if err := again.Write(&second, "trainyard", false); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Errorf("written twice, the file differs (%v)", err)
	}
}

func TestReadTellsGzipByContent(t *testing.T) {
	text := samples[0].text
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(text))
	z.Close()
	for name, data := range map[string][]byte{"plain.csv.gz": []byte(text), "packed.csv": packed.Bytes()} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Read(path, Options{})
		if err != nil || len(got.Jobs) != 3 || got.Path != path {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestReadReportsMissingFiles(t *testing.T) {
	_, err := Read(filepath.Join(t.TempDir(), "none.csv"), Options{})
	var malformed *ParseError
	if !errors.Is(err, fs.ErrNotExist) || errors.As(err, &malformed) || !strings.HasPrefix(err.Error(), "trace: ") {
		t.Errorf("error %v, want that of package os behind trace:", err)
	}
	if _, err = Read(t.TempDir(), Options{}); err == nil {
		t.Error("a folder was read")
	}
}

func TestFormatsAreDistinct(t *testing.T) {
	for _, f := range Formats() {
		if f.Name == "" || f.Line == "" || len(f.Columns) < 4 {
			t.Errorf("format %+v, want a name, a line and columns", f)
		}
		own := layoutNamed(f.Name)
		if own.whole != nil {
			continue
		}
		separator := ","
		if own.separator != 0 {
			separator = string(own.separator)
		}
		least := append(slices.Clone(f.Columns), own.oneOf[:min(1, len(own.oneOf))]...)
		all := append(slices.Clone(f.Columns), f.Optional...)
		for _, header := range [][]string{least, all} {
			matches := 0
			for _, l := range layouts {
				if l.complain(header) == "" {
					matches++
				}
			}
			if got := detect(strings.Join(header, separator)); matches != 1 || got != own {
				t.Errorf("header %q matches %d formats, want %s alone", header, matches, f.Name)
			}
		}
	}
}

func TestWriteCSVRefusesWhatItWouldLose(t *testing.T) {
	good := job("a", 0, 1, 1)
	for _, c := range []struct {
		change func(*Job)
		want   string
	}{
		{func(j *Job) { j.Spec.Name = "" },
			`trace: write: job 0 "": name, want a name: 1 to 4096 bytes of UTF-8 text without control characters`},
		{func(j *Job) { j.Spec.User = "a\nb" },
			`trace: write: job 0 "a": "a\nb", want at most 4096 bytes of UTF-8 text without control characters`},
		{func(j *Job) { j.Spec.Submit = -1 },
			`trace: write: job 0 "a": submit -0.000000001s, want a time from 0 to 100 years, such as 90 or 0.5`},
		{func(j *Job) { j.Duration = MaxTime + 1 },
			`trace: write: job 0 "a": duration 876600h0m0.000000001s, want a time from 0 to 100 years, such as 90 ` +
				`or 0.5`},
		{func(j *Job) { j.Spec.GPUs.Max = 4 },
			`trace: write: job 0 "a": gpus 1..4 with default 1, want one number from 1 to 1000000`},
		{func(j *Job) { j.Spec.Batch.Max = 4 },
			`trace: write: job 0 "a": batch 0..4 with 0 per GPU, want one number, none per GPU`},
		{func(j *Job) { j.Spec.Types = 1 }, `trace: write: job 0 "a": types by number, want the name in GPUType`},
		{func(j *Job) { j.Spec.Retries = 1 },
			`trace: write: job 0 "a": cpus, memory, sharing, retries, not-before time or dependencies, for which ` +
				`there is no column`},
	} {
		var out bytes.Buffer
		err := (&Trace{Jobs: []Job{with(good, c.change)}}).Write(&out, "trainyard", false)
		if err == nil || err.Error() != c.want || out.Len() > 0 {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
	err := (&Trace{Jobs: []Job{good, good}}).Write(new(bytes.Buffer), "trainyard", false)
	if want := `trace: write: job 1 "a": an earlier job has that name, want a name of its own`; err == nil ||
		err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
