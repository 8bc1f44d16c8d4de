package trace

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

const (
	minimal = "job_id,submit_s,num_gpus,duration_s\n"
	spaced  = "job_id, submit_s , num_gpus,\tduration_s, user, model \n" +
		" a, 0, 1 , 2, al ,\n\tb,\t 1,2\t,  3.5, , \"m, n\" \n"
	palHead = "job_id,num_gpus,submit_time,duration,model\n"
)

// packed is text in gzip, cut off after a share of its bytes.
func packed(text string, share float64) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text)
	z.Close()
	return b.String()[:int(share*float64(b.Len()))]
}

func TestBadInput(t *testing.T) {
	long := strings.Repeat("x", MaxLine+1)
	many := minimal
	for i := range 5000 {
		many += strconv.Itoa(i) + ",0,1,1\n"
	}
	badTime := func(column, value string) string {
		return column + ` "` + value + `", want a time from 0 to 100 years, such as 90 or 0.5`
	}
	for _, c := range []struct{ name, text, want string }{
		{"empty file", "", `line 1: empty file, want a header line and jobs`},
		{"only a byte order mark", "\ufeff", `line 1: empty file, want a header line and jobs`},
		{"header only", minimal, `line 2: no jobs, want at least one row below the header`},
		{"header without line end", strings.TrimSpace(minimal),
			`line 2: no jobs, want at least one row below the header`},
		{"only empty lines", minimal + "\n\r\n", `line 4: no jobs, want at least one row below the header`},
		{"binary", "\x7fELF\x02\x01\x00",
			`line 1: header "\x7fELF\x02\x01\x00", want that of a known format; nearest is trainyard: missing ` +
				`job_id, submit_s, num_gpus, duration_s; unknown "\x7fELF\x02\x01\x00"`},
		{"misspelt", "job_id,submit_s,num_gpu,duration_s\n",
			`line 1: header "job_id,submit_s,num_gpu,duration_s", want that of a known format; nearest is trainyard: ` +
				`missing num_gpus; unknown "num_gpu" (did you mean "num_gpus"?)`},
		{"unknown column", "job_id,submit_s,num_gpus,duration_s,colour\n",
			`line 1: header "job_id,submit_s,num_gpus,duration_s,colour", want that of a known format; nearest is ` +
				`trainyard: unknown "colour"`},
		{"many unknown", "a,b,c,d,e,f\n",
			`line 1: header "a,b,c,d,e,f", want that of a known format; nearest is trainyard: missing job_id, ` +
				`submit_s, num_gpus, duration_s; unknown "a"; unknown "b"; unknown "c"; unknown "d"; and 2 ` +
				`unknown more`},
		{"nearly philly", "job_id,submit_time,submit_s,num_gpus,duration_s,vc\n",
			`line 1: header "job_id,submit_time,submit_s,num_gpus,duration_s,vc", want that of a known format; ` +
				`nearest is philly: missing vc_source`},
		{"of a planner's own", "id,submit,gpus,duration\n",
			`line 1: header "id,submit,gpus,duration", want that of a known format; nearest is pal: missing job_id, ` +
				`num_gpus, submit_time, model; unknown "id"; unknown "submit" (did you mean "submit_time"?); ` +
				`unknown "gpus"; a table of your own has the columns job_id,submit_s,num_gpus,duration_s, times in ` +
				`seconds`},
		{"column twice", "job_id,submit_s,num_gpus,duration_s,user,user\n",
			`line 1: column "user" twice, want it once`},
		{"zip", "PK\x03\x04\x14\x00",
			`line 1: no list of jobs: a zip archive or a spreadsheet: want the table in it, as text or gzip`},
		{"zstd", "\x28\xb5\x2f\xfd\x04", `line 1: no list of jobs: compressed with zstd, want plain text or gzip`},
		{"tar", "a.csv" + strings.Repeat("\x00", 252) + "ustar\x0000" + strings.Repeat("\x00", 247) + minimal,
			`line 1: no list of jobs: a tar archive, want the file in it`},
		{"UTF-16", "\xff\xfej\x00o\x00b\x00", `line 1: no list of jobs: UTF-16, want UTF-8`},
		{"semicolons", strings.ReplaceAll(minimal, ",", ";"),
			`line 1: header "job_id;submit_s;num_gpus;duration_s", want commas between columns, not semicolons`},
		{"tabs", strings.ReplaceAll(minimal, ",", "\t"),
			`line 1: header "job_id\tsubmit_s\tnum_gpus\tduration_s", want commas between columns, not tabs`},
		{"last bar", "JobID|Submit|Start|End|State|AllocTRES|\n",
			`line 1: header "JobID|Submit|Start|End|State|AllocTRES|", want no bar at the end: sacct --parsable2, ` +
				`not --parsable`},
		{"open quotation in header", "\"job_id,submit_s\n",
			`line 1: header "\"job_id,submit_s", want quotation marks in pairs around whole column names`},
		{"open quotation", minimal + "\"a,0,1,1\n",
			`line 2: row "\"a,0,1,1", want quotation marks in pairs around whole fields`},
		{"text after quotation", minimal + "\"a\"b,0,1,1\n",
			`line 2: row "\"a\"b,0,1,1", want quotation marks in pairs around whole fields`},
		{"few fields", minimal + "a,0,1,1\nb,0,1\n", `line 3: 3 fields, want 4: job_id,submit_s,num_gpus,duration_s`},
		{"many fields", minimal + "a,0,1,1,\n", `line 2: 5 fields, want 4: job_id,submit_s,num_gpus,duration_s`},
		{"long line", minimal + long, `line 2: 1048577 bytes, want at most 1048576 in a line`},
		{"long header", long, `line 1: 1048577 bytes, want at most 1048576 in a line`},
		{"no name", minimal + ",0,1,1\n",
			`line 2: job_id "", want a name: 1 to 4096 bytes of UTF-8 text without control characters`},
		{"bad UTF-8", minimal + "a\xff,0,1,1\n",
			`line 2: job_id "a\xff", want a name: 1 to 4096 bytes of UTF-8 text without control characters`},
		{"control character", minimal + "a\x00,0,1,1\n",
			`line 2: job_id "a\x00", want a name: 1 to 4096 bytes of UTF-8 text without control characters`},
		{"long name", minimal + long[:5000] + ",0,1,1\n", `line 2: job_id "` + long[:60] +
			`...", want a name: 1 to 4096 bytes of UTF-8 text without control characters`},
		{"bad group", "job_id,submit_s,num_gpus,duration_s,group\na,0,1,1,\xff\n",
			`line 2: group "\xff", want at most 4096 bytes of UTF-8 text without control characters`},
		{"same name", minimal + "a,0,1,1\n\nb,0,1,1\na,5,1,1\n",
			`line 5: job_id "a", want a name of its own: line 2 has it too`},
		{"same name in a long file", many + "17,0,1,1\n",
			`line 5002: job_id "17", want a name of its own: line 19 has it too`},
		{"negative time", minimal + "a,-1,1,1\n", "line 2: " + badTime("submit_s", "-1")},
		{"NaN", minimal + "a,NaN,1,1\n", "line 2: " + badTime("submit_s", "NaN")},
		{"infinity", minimal + "a,0,1,+Inf\n", "line 2: " + badTime("duration_s", "+Inf")},
		{"overflow", minimal + "a,0,1,1e400\n", "line 2: " + badTime("duration_s", "1e400")},
		{"overflow of 64 bits", minimal + "a,0,1,18446744073709551616\n",
			"line 2: " + badTime("duration_s", "18446744073709551616")},
		{"over 100 years", minimal + "a,0,1,3155760000.000000001\n",
			"line 2: " + badTime("duration_s", "3155760000.000000001")},
		{"empty time", minimal + "a,,1,1\n", "line 2: " + badTime("submit_s", "")},
		{"a point", minimal + "a,.,1,1\n", "line 2: " + badTime("submit_s", ".")},
		{"two points", minimal + "a,1.2.3,1,1\n", "line 2: " + badTime("submit_s", "1.2.3")},
		{"space", minimal + "a, 1 0 ,1,1\n", "line 2: " + badTime("submit_s", "1 0")},
		{"quoted space behind", minimal + "a,\"1 \",1,1\n", "line 2: " + badTime("submit_s", "1 ")},
		{"quoted space", minimal + "a,\" 1\",1,1\n", "line 2: " + badTime("submit_s", " 1")},
		{"hexadecimal", minimal + "a,0x1p4,1,1\n", "line 2: " + badTime("submit_s", "0x1p4")},
		{"a clock", minimal + "a,10:30,1,1\n", "line 2: " + badTime("submit_s", "10:30")},
		{"no GPU", minimal + "a,0,0,1\n",
			`line 2: num_gpus "0", want a whole number from 1 to 1000000, or one with up to three decimals`},
		{"negative GPUs", minimal + "a,0,-4,1\n",
			`line 2: num_gpus "-4", want a whole number from 1 to 1000000, or one with up to three decimals`},
		{"too many GPUs", minimal + "a,0,1000001,1\n",
			`line 2: num_gpus "1000001", want a whole number from 1 to 1000000, or one with up to three decimals`},
		{"overflowing GPUs", minimal + "a,0,99999999999999999999,1\n",
			`line 2: num_gpus "99999999999999999999", want a whole number from 1 to 1000000, or one with up to three ` +
				`decimals`},
		{"too small a part of a GPU", minimal + "a,0,0.0005,1\n",
			`line 2: num_gpus "0.0005", want a whole number from 1 to 1000000, or one with up to three decimals`},
		{"priority", "priority," + minimal + "2147483648,a,0,1,1\n",
			`line 2: priority "2147483648", want a whole number from -2147483648 to 2147483647`},
		{"batch", "batch," + minimal + "0,a,0,1,1\n", `line 2: batch "0", want a whole number from 1 to 2147483647`},
		{"deadline", "deadline_s," + minimal + "soon,a,0,1,1\n", "line 2: " + badTime("deadline_s", "soon")},
		{"wall time", "wall_time_s," + minimal + "-1,a,0,1,1\n", "line 2: " + badTime("wall_time_s", "-1")},
		{"flag", "job_id,log_row,submit_time,submit_s,num_gpus,duration_s,clamped_48h\n1,,,0,1,1,yes\n",
			`line 2: clamped_48h "yes", want 0 or 1`},
		{"unknown model", palHead + "1,1,0,5,resnet50\n2,1,0,5,vgg16\n",
			`line 3: model "vgg16" (did you mean "vgg19"?), want one of BERT, DCGAN, GPT2, PointNet, resnet50, ` +
				`vgg19: duration counts iterations, and of these alone it is known how long one takes`},
		{"no model", palHead + "1,1,0,5,\n",
			`line 2: model "", want one of BERT, DCGAN, GPT2, PointNet, resnet50, vgg19: duration counts iterations, ` +
				`and of these alone it is known how long one takes`},
		{"negative iterations", palHead + "1,1,0,-5,BERT\n",
			`line 2: duration "-5", want iterations: a number from 0 to 1e12`},
		{"NaN iterations", palHead + "1,1,0,NaN,BERT\n",
			`line 2: duration "NaN", want iterations: a number from 0 to 1e12`},
		{"too many iterations", palHead + "1,1,0,1e13,BERT\n",
			`line 2: duration "1e13", want iterations: a number from 0 to 1e12`},
		{"no iterations", palHead + "1,1,0,,BERT\n", `line 2: duration "", want iterations: a number from 0 to 1e12`},
		{"iterations of 100 years", palHead + "1,1,0,1e12,GPT2\n",
			`line 2: duration of 1e+12 iterations of 3.5714 s, want at most 100 years in all`},
		{"batch of iterations", "batch_size," + palHead + "none,1,1,0,5,BERT\n",
			`line 2: batch_size "none", want a whole number from 1 to 2147483647`},
		{"nearly pal", "job_id,num_gpus,submit_time,duration\n",
			`line 1: header "job_id,num_gpus,submit_time,duration", want that of a known format; nearest is pal: ` +
				`missing model`},
		{"truncated gzip", packed(minimal+"a,0,1,1\n", .99), `line 3: gzip stream ends early, want the whole file`},
		{"gzip magic alone", "\x1f\x8b", `line 1: gzip stream ends early, want the whole file`},
		{"bad gzip header", "\x1f\x8b" + strings.Repeat("\xff", 30),
			`line 1: gzip stream is damaged (gzip: invalid header), want an intact file`},
		{"bad gzip body", packed(many, 1)[:10] + strings.Repeat("\xff", 30),
			`line 1: gzip stream is damaged (flate: corrupt input before offset 1), want an intact file`},
		{"gzip of nothing", packed("", 1), `line 1: empty file, want a header line and jobs`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Parse(strings.NewReader(c.text), "f.csv", Options{})
			if err == nil {
				t.Fatalf("read %d jobs, want an error", len(got.Jobs))
			}
			if want := "trace: f.csv: " + c.want; err.Error() != want {
				t.Errorf("error\n%s, want\n%s", err, want)
			}
			var malformed *ParseError
			if !errors.As(err, &malformed) || malformed.File != "f.csv" || malformed.Line < 1 {
				t.Errorf("error %#v, want a *ParseError with file and line", err)
			}
		})
	}
}

func TestBadOptions(t *testing.T) {
	for _, c := range []struct {
		options Options
		want    string
	}{
		{Options{Format: "tireseas"},
			`trace: format "tireseas" (did you mean "tiresias"?), want one of trainyard, tiresias, philly, venus, ` +
				`pai, pal, muri, elasticflow, gavel, shockwave, gavel-philly, shockwave-table, synergy, blox, ` +
				`philly-log, philly-pollux, helios, acme, kalos, pai-task, openb, sacct, swf, pollux`},
		{Options{Unit: -time.Second}, `trace: unit -1s, want > 0`},
		{Options{Unit: time.Millisecond},
			`trace: f.csv: line 1: format trainyard with unit 1ms, want none: its times are seconds`},
		{Options{Format: "pai"},
			`trace: f.csv: line 1: header "job_id,submit_s,num_gpus,duration_s", want that of format pai: missing ` +
				`arrival_s, service_sec, gpu_count; unknown "submit_s"; unknown "num_gpus"; unknown "duration_s"`},
	} {
		if _, err := Parse(strings.NewReader(minimal+"a,0,1,1\n"), "f.csv", c.options); err == nil ||
			err.Error() != c.want {
			t.Errorf("error\n%v, want\n%s", err, c.want)
		}
	}
}

func TestReadErrorsAreNotTheFilesFault(t *testing.T) {
	broken := errors.New("disk on fire")
	for _, r := range []io.Reader{
		iotest.ErrReader(broken),
		io.MultiReader(strings.NewReader(minimal), iotest.ErrReader(broken)),
		io.MultiReader(strings.NewReader(packed(minimal, .7)), iotest.ErrReader(broken)),
	} {
		_, err := Parse(r, "f.csv", Options{})
		if !errors.Is(err, broken) || err.Error() != "trace: f.csv: disk on fire" {
			t.Errorf("error %v, want trace: f.csv: %v", err, broken)
		}
	}
}

// Ensure that a gzip stream from which far more comes than it holds is refused, early and with one clear error,
// whatever the format; and that what is like it but honest is read.
func TestSwollen(t *testing.T) {
	pack := func(head, row string, n int) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write([]byte(head))
		many := []byte(strings.Repeat(row, 1000))
		for range n / 1000 {
			_, _ = z.Write(many)
		}
		_ = z.Close()
		return b.Bytes()
	}
	const head = "job_id,submit_s,num_gpus,duration_s\n"
	for name, packed := range map[string][]byte{
		"rows":        pack("; swf\n", "1 0 0 10 1 0 0 1 10 0 1 1 1 1 1 1 -1 -1\n", 1_000_000),
		"empty lines": pack(head, "\n", 40_000_000),
		"JSON":        pack("[", `{"a":1},`, 5_000_000),
		"one line":    pack(head, "x", 40_000_000),
	} {
		_, err := Parse(bytes.NewReader(packed), name, Options{})
		bad := (*ParseError)(nil)
		if !errors.As(err, &bad) || !strings.Contains(bad.Text, "more than 32 times its size") {
			t.Errorf("%s, %d bytes packed: %v", name, len(packed), err)
		}
	}
	if _, err := Parse(bytes.NewReader(pack(head+"1,0,1,1\n", "\n", 3_000_000)), "x", Options{}); err != nil {
		t.Errorf("3 MB: %v", err)
	}
}
