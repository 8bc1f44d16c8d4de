package trace

import "strings"

// strangers are files that are found next to traces and are no lists of jobs, by the columns their header starts with;
// a single column is all of it.
var strangers = []struct {
	columns []string
	what    string
}{
	{[]string{"duration"}, "a sample of job sizes alone, which the setting distribution reads"},
	{[]string{"num_switch", "num_node_p_switch", "num_gpu_p_node", "num_cpu_p_node", "mem_p_node"},
		"a cluster of the Tiresias simulator: switches, nodes and GPUs"},
	{[]string{"vc", "node num"}, "the number of nodes of each virtual cluster"},
	{[]string{"sn", "cpu_milli", "memory_mib", "gpu", "model"}, "the nodes of a cluster; its jobs are in the list " +
		"of pods"},
	{[]string{"gpu_model", "gpu_capacity_num", "cpu_num", "node_name"},
		"the nodes of a cluster; the jobs of this data set were published without usable times of submission"},
	{[]string{"source", "metric", "x", "cum_percent"}, "points of published distribution functions, without jobs"},
	{[]string{"trace", "cluster", "policy", "metric", "value", "source", "note"}, "published results, without jobs"},
	{[]string{"id", "job_num", "cpu_job_num", "gpu_job_num"}, "a summary of clusters: means and shares, without jobs"},
}

// packings are what files are packed in that are not unpacked here, by what they start with.
var packings = []struct{ magic, what string }{
	{"PK\x03\x04", "a zip archive or a spreadsheet: want the table in it, as text or gzip"},
	{"\x28\xb5\x2f\xfd", "compressed with zstd, want plain text or gzip"},
	{"\xfd7zXZ\x00", "compressed with xz, want plain text or gzip"},
	{"BZh", "compressed with bzip2, want plain text or gzip"},
	{"\xff\xfe", "UTF-16, want UTF-8"},
	{"\xfe\xff", "UTF-16, want UTF-8"},
}

// container says what the first line of a file that is no text shows it to be, or "". The head of a tar archive has no
// line end.
func container(line string) (what string) {
	for _, p := range packings {
		if strings.HasPrefix(line, p.magic) {
			return p.what
		}
	}
	if strings.Contains(line, "\x00ustar") {
		return "a tar archive, want the file in it"
	}
	return ""
}

// misread says what is wrong with a header line that would be known if it were written otherwise, or "".
func misread(header string) (wrong string) {
	switch one := !strings.Contains(header, ","); {
	case one && strings.HasPrefix(header, "JobID|") && strings.HasSuffix(header, "|"):
		return "want no bar at the end: sacct --parsable2, not --parsable"
	case one && strings.Count(header, ";") > 1:
		return "want commas between columns, not semicolons"
	case one && strings.Count(header, "\t") > 1:
		return "want commas between columns, not tabs"
	}
	return ""
}
