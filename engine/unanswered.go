package engine

import "github.com/trainyard/trainyard/sched"

// unanswered returns the orders that the log shows as given but not as answered: the starts of attempts that are not
// up, the stops of attempts that have not ended, the power caps that hold, the epochs to be watched, the states of
// nodes and the numbers of nodes to be rented. A driver that is new to them, because the last one died, is given them
// once more; to one that has carried them out they say nothing new.
func unanswered(v *sched.View) (orders []sched.Action) {
	for i := range v.Jobs {
		id, j := sched.JobID(i), &v.Jobs[i]
		switch j.Attempt {
		case sched.Stopping:
			orders = append(orders, sched.Action{Kind: sched.Stop, Job: id, Attempt: j.Attempts, Why: stopReason(j)})
		case sched.Starting:
			orders = append(orders, startOf(id, j.Attempts, j.GPUs, j.Live))
		case sched.Running:
			if j.Live.Cap != 0 {
				orders = append(orders, adjustOf(id, j, j.Live.Cap))
			}
		}
		if j.Watched && j.State != sched.Done {
			orders = append(orders, sched.Action{Kind: sched.WatchEpochs, Job: id, Attempt: j.Attempts, On: true})
		}
	}
	for i := range v.Nodes {
		if n := &v.Nodes[i]; n.Awaited {
			orders = append(orders, setNodeOf(sched.NodeID(i), n.Ordered))
		}
	}
	for i := range v.Pools {
		if p := &v.Pools[i]; p.Ordered != p.Nodes {
			orders = append(orders, rentOf(sched.PoolID(i), p.Ordered))
		}
	}
	return orders
}

func setNodeOf(id sched.NodeID, state sched.NodeState) sched.Action {
	return sched.Action{Kind: sched.SetNode, Job: sched.None, Node: id, State: state}
}

func rentOf(id sched.PoolID, count int32) sched.Action {
	return sched.Action{Kind: sched.Rent, Job: sched.None, Pool: id, Count: count}
}

// startOf is the order to start an attempt of job id on gpus.
func startOf(id sched.JobID, attempt int32, gpus []sched.GPUID, c sched.Config) sched.Action {
	return sched.Action{Kind: sched.Start, Job: id, Attempt: attempt, GPUs: gpus, Config: c}
}

func adjustOf(id sched.JobID, j *sched.Job, limit sched.Watts) sched.Action {
	return sched.Action{Kind: sched.Adjust, Job: id, Attempt: j.Attempts, Config: sched.Config{Cap: limit}}
}

// stopReason says why the attempt of j is stopped.
func stopReason(j *sched.Job) sched.Outcome {
	if j.Cancel {
		return sched.Cancelled
	}
	return sched.Preempted
}
