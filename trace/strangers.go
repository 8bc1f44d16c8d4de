package trace

// strangers are files that are found beside traces and are no lists of jobs, by the columns their header begins with; a single
// column is all of it.
var strangers = []struct {
	columns []string
	what    string
}{
	{[]string{"duration"}, "a sample of job sizes alone, which the setting distribution reads"},
	{[]string{"num_switch", "num_node_p_switch", "num_gpu_p_node", "num_cpu_p_node", "mem_p_node"},
		"a cluster of the Tiresias simulator: switches, nodes and GPUs"},
	{[]string{"vc", "node num"}, "the number of nodes of each virtual cluster"},
	{[]string{"sn", "cpu_milli", "memory_mib", "gpu", "model"}, "the nodes of a cluster; its jobs are in the list of pods"},
	{[]string{"gpu_model", "gpu_capacity_num", "cpu_num", "node_name"},
		"the nodes of a cluster; the jobs of this data set were published without usable times of submission"},
	{[]string{"source", "metric", "x", "cum_percent"}, "points of published distribution functions, without jobs"},
	{[]string{"trace", "cluster", "policy", "metric", "value", "source", "note"}, "published results, without jobs"},
	{[]string{"id", "job_num", "cpu_job_num", "gpu_job_num"}, "a summary of clusters: means and shares, without jobs"},
}
