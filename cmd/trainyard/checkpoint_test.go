package main

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Ensure that a checkpoint of a model says whether its gangs are consolidated: under placement by skew, a gang for
// which no node has room waits if one tensor holds most bytes, and spreads at once if none does. A checkpoint that is
// damaged is refused, with its name, by simulate and by serve.
func TestSkewFromCheckpoint(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	// Each of two nodes of 3 GPUs has one GPU left, until second 100, when the gang of 2 comes.
	trace := put("jobs.csv", []byte("job_id,submit_s,num_gpus,duration_s,model\n"+
		"left,0,2,100,other\nright,0,2,100,other\ngang,1,2,10,net\n"))
	simulate := []string{"simulate", "--trace", trace, "--cluster", "2x3", "--system", "fifo", "--json", "--set",
		"fifo.placement=skew"}
	finish := func(settings ...string) float64 {
		t.Helper()
		out, _ := trainyard(t, 0, append(simulate, settings...)...)
		var doc struct {
			Results []struct {
				Mean float64 `json:"avg_jct_s"`
			} `json:"results"`
		}
		if err := json.Unmarshal([]byte(out), &doc); err != nil || len(doc.Results) != 1 {
			t.Fatalf("%v: %s", err, out)
		}
		return 3*doc.Results[0].Mean - 200 // what is left for the gang
	}
	skewed := put("skewed.safetensors", safetensors(`{"fc":{"dtype":"F32","shape":[90],"data_offsets":[0,360]},`+
		`"conv":{"dtype":"F32","shape":[10],"data_offsets":[360,400]}}`, 400))
	even := put("even.safetensors", safetensors(`{"a":{"dtype":"F16","shape":[4],"data_offsets":[0,8]},`+
		`"b":{"dtype":"F16","shape":[4],"data_offsets":[8,16]},"c":{"dtype":"F16","shape":[4],"data_offsets":[16,24]},`+
		`"d":{"dtype":"F16","shape":[4],"data_offsets":[24,32]},`+
		`"steps":{"dtype":"I64","shape":[9],"data_offsets":[32,104]}}`, 104))
	torch := filepath.Join("..", "..", "model", "checkpoint", "testdata", "module.pt") // skew 0.46
	for _, c := range []struct {
		name string
		set  []string
		want float64
	}{
		{"unknown", nil, 10},
		{"skewed", []string{"--set", "*.profiles=net=" + skewed}, 109},
		{"even", []string{"--set", "*.profiles=net=" + even}, 12.5}, // spread, it takes 1 + skew times as long
		{"of torch.save", []string{"--set", "*.profiles=other=" + even + ",net=" + torch}, 109},
		{"of torch.save, with a higher limit", []string{"--set", "*.profiles=net=" + torch, "--set",
			"*.pack_limit=0.5"}, 10 * (1 + 96./208)},
	} {
		if got := finish(c.set...); got < c.want-1e-6 || got > c.want+1e-6 {
			t.Errorf("%s: the gang takes %v s, want %v", c.name, got, c.want)
		}
	}

	b, err := os.ReadFile(torch)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file string
		want string
	}{
		{put("short.safetensors", safetensors(`{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,16]}}`, 16)),
			`short.safetensors: header: byte 62: tensor "a": data 0..16 of F32 [3], want 12 bytes`},
		{put("cut.pt", b[:len(b)/2]), "cut.pt: "},
		{put("old.pt", []byte("\x80\x02\x8a\nl\xfc\x9cF\xf9")),
			"old.pt: a pickle without an archive, as old versions of torch.save wrote it, want safetensors, or what "},
		{put("net.bin", []byte("\x00\x01\x02\x03")), `net.bin: line 1: `},
	} {
		setting := "fifo.profiles=net=" + c.file
		for _, args := range [][]string{append(simulate, "--set", setting),
			{"serve", "--state", filepath.Join(dir, "state"), "--slots", "1", "--system", "fifo", "--set", setting}} {
			if _, said := trainyard(t, 9, args...); !strings.Contains(said, c.want) {
				t.Errorf("%s: %s\nwant %s", args[0], said, c.want)
			}
		}
	}
}

// safetensors is a file of a header and so many bytes of data.
func safetensors(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}
