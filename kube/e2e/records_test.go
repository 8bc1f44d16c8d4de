package e2e

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/controller"
	"github.com/trainyard/trainyard/kube/record"
)

// inscribe has the administrator write the record of a job by hand.
func (s *siege) inscribe(job, line string) {
	s.t.Helper()
	j := s.job(job, 1)
	must(s.t, s.api.Get(s.t.Context(), client.ObjectKeyFromObject(j), j))
	before := j.DeepCopy()
	j.Status.Record = line
	must(s.t, s.api.Status().Patch(s.t.Context(), j, client.MergeFrom(before)))
}

// spoiltRecord has records edited by hand while no one leads. Their jobs are left out and say so; their GPUs go to no
// other job, and others go on. Once a record is put right its job goes on as if nothing had been.
func (s *siege) spoiltRecord() {
	good := make(map[string]string)
	spoil := map[string]func(record string) string{
		"cut":     func(r string) string { return r[:len(r)/2] },
		"none":    func(string) string { return "none" },
		"far":     func(r string) string { return strings.Replace(r, `"ID":`, `"ID":214`, 1) },
		"unheard": func(r string) string { return strings.Replace(r, `{`, `{"Unheard":1,`, 1) },
		"twice":   nil, // the number of another
	}
	for name := range spoil {
		s.create(s.job(name, 1))
		s.first(name)
		good[name] = s.status(name).Record
	}
	s.create(s.job("whole", 1))
	s.first("whole")
	rec, err := record.Read(s.status("whole").Record)
	must(s.t, err)
	spoil["twice"] = func(r string) string {
		mine, bad := record.Read(r)
		must(s.t, bad)
		mine.ID = rec.ID
		return mine.String()
	}
	s.kill()
	for name, f := range spoil {
		s.inscribe(name, f(good[name]))
	}
	s.serve()
	s.create(s.job("next", 2)) // two GPUs are free
	s.first("next")
	s.waits("after", 1)
	left := 0
	for name := range spoil {
		st := s.status(name)
		c := meta.FindStatusCondition(st.Conditions, controller.IsUnreadable)
		if c == nil || c.Status != metav1.ConditionTrue {
			continue // of two jobs of one number one is left out
		}
		left++
		if !strings.Contains(st.Reason, "its record cannot be read: ") || c.Message != st.Reason {
			s.t.Errorf("%s: %+v", name, st)
		}
		s.untilReported(name, "Warning Unreadable")
	}
	if want := len(spoil); left < want-1 {
		s.t.Errorf("%d jobs say that they are left out, want %d", left, want)
	}
	s.kill()
	for name := range spoil {
		s.inscribe(name, good[name])
	}
	s.serve()
	eventually(s.t, "no job is left out", func() bool {
		for name := range spoil {
			if meta.IsStatusConditionTrue(s.status(name).Conditions, controller.IsUnreadable) {
				return false
			}
		}
		return true
	})
	for name := range spoil {
		if st := s.status(name); st.Attempt != 1 || st.Phase != v1alpha1.Running {
			s.t.Errorf("%s: %+v, want its first attempt to go on", name, st)
		}
		s.remove(name)
	}
	for _, name := range []string{"whole", "next", "after"} {
		s.remove(name)
	}
}

// spoiltCluster has what is kept of nodes edited by hand while no one leads. Where the head is spoilt no one decides,
// and the policy says so; what runs goes on, and is known again once that is put right. Where the head is deleted, or a
// shard is lost, jobs go on on the nodes that they hold.
func (s *siege) spoiltCluster() {
	s.create(s.job("runs", 1))
	s.first("runs")
	s.kill()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "trainyard", Name: controller.ClusterMap}}
	must(s.t, s.api.Get(s.t.Context(), client.ObjectKeyFromObject(m), m))
	good := m.BinaryData
	for _, bad := range []map[string][]byte{nil, {"blob": []byte("none")}, {"blob": good["blob"][:9]}} {
		m.BinaryData = bad
		must(s.t, s.api.Update(s.t.Context(), m))
		s.serve()
		eventually(s.t, "the policy says so", func() bool {
			return strings.HasPrefix(s.policy().Status.Message,
				"no one decides: ConfigMap trainyard-cluster cannot be read; put it right, or delete it")
		})
		s.kill()
	}
	m.BinaryData = good
	must(s.t, s.api.Update(s.t.Context(), m))
	s.serve()
	s.create(s.job("next", 1))
	s.first("next")
	s.first("runs")
	for _, lost := range []string{"trainyard-cluster-64-0", controller.ClusterMap} {
		s.kill()
		must(s.t, s.api.Delete(s.t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "trainyard", Name: lost}}))
		s.serve()
		after := "after-" + lost
		s.create(s.job(after, 1))
		s.first(after)
		for _, name := range []string{"runs", "next"} {
			if st := s.status(name); st.Attempt != 1 || st.Phase != v1alpha1.Running {
				s.t.Errorf("%s: %+v, want its first attempt to go on without %s", name, st, lost)
			}
		}
		s.remove(after)
	}
	s.remove("runs")
	s.remove("next")
}

// newerSchema has a newer version have written a record, and then the policy. This one writes nothing but its number as
// a leader, and in the second case not even that; it goes on once the version before has been put back.
func (s *siege) newerSchema() {
	s.create(s.job("newer", 1))
	s.first("newer")
	was := s.status("newer").Record
	s.kill()
	s.inscribe("newer", strings.Replace(was, `{"Schema":3,`, `{"Schema":4,"Unheard":1,`, 1))
	first := newSaid(s)
	eventually(s.t, "it says so", func() bool { return first.has("record: schema 4, want 1 to 3: a newer version") })
	s.create(s.job("waits", 1))
	time.Sleep(time.Second)
	if st := s.status("waits"); st.Phase != "" {
		s.t.Errorf("a job was written: %+v", st)
	}
	s.kill()
	s.inscribe("newer", was)
	p := s.policy()
	p.Status.Schema = record.JobSchema + 1
	must(s.t, s.api.Status().Update(s.t.Context(), p))
	p = s.policy()
	again := newSaid(s)
	eventually(s.t, "it says so", func() bool { return again.has("records of schema 4, want 1 to 3") })
	if now := s.policy(); now.ResourceVersion != p.ResourceVersion {
		s.t.Errorf("the policy was written: %+v", now.Status)
	}
	p.Status.Schema = record.JobSchema
	must(s.t, s.api.Status().Update(s.t.Context(), p))
	s.first("waits")
	s.first("newer")
	s.remove("newer")
	s.remove("waits")
	s.kill()
	s.serve()
}

// newSaid starts a controller and returns its log.
func newSaid(s *siege) *said {
	log := new(said)
	s.serve(func(o *controller.ServeOptions) { o.Log = slog.New(slog.NewTextHandler(log, nil)) })
	return log
}

// upAndDown has twenty jobs that run, and others that wait, live through a way back to each schema before and up again:
// none is started again, none loses its process, and none is lost. It leaves nodes behind.
func (s *siege) upAndDown() {
	const run = 20
	must(s.t, s.fleet.Add(s.t.Context(), "more-0", "more-1", "more-2"))
	s.fleet.WaitReady(s.t)
	names := make([]string, run+4)
	for i := range names {
		names[i] = fmt.Sprint("job-", i)
		s.create(s.job(names[i], 1))
	}
	eventually(s.t, "twenty run", func() bool {
		return s.running(names) == run && s.fleet.Running() == run && len(s.pods()) == run
	})
	uids := make(map[string]types.UID)
	for _, p := range s.pods() {
		uids[p.Name] = p.UID
	}
	for _, schema := range []int{2, 3, 1, 3} {
		s.kill()
		s.serve(func(o *controller.ServeOptions) { o.RecordSchema = schema })
		begins := fmt.Sprintf(`{"Schema":%d,`, schema)
		eventually(s.t, "all records are "+begins, func() bool {
			for _, name := range names {
				if !strings.HasPrefix(s.status(name).Record, begins) {
					return false
				}
			}
			return int(s.policy().Status.Schema) == schema
		})
		for _, name := range names {
			if r := s.status(name).Record; schema == 1 && (strings.Contains(r, `"Evidence"`) ||
				strings.Contains(r, `"Loss"`) || strings.Contains(r, `"Preempt":`)) {
				s.t.Errorf("a record that the version before does not know: %s", r)
			}
		}
		if n := s.running(names); n != run || s.fleet.Running() != run {
			s.t.Errorf("schema %d: %d jobs run, %d processes, want %d of each", schema, n, s.fleet.Running(), run)
		}
		for _, p := range s.pods() {
			if uids[p.Name] != p.UID {
				s.t.Errorf("schema %d: pod %s is another", schema, p.Name)
			}
		}
	}
	for _, name := range names {
		s.remove(name)
	}
}

// pods returns the pods of the namespace.
func (s *siege) pods() []corev1.Pod {
	s.t.Helper()
	var list corev1.PodList
	must(s.t, s.api.List(s.t.Context(), &list, client.InNamespace(s.space)))
	return list.Items
}

// running counts the jobs that run in their first attempt.
func (s *siege) running(names []string) (n int) {
	for _, name := range names {
		if st := s.status(name); st.Phase == v1alpha1.Running && st.Attempt == 1 {
			n++
		}
	}
	return n
}
