package fakenode

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// journal is what a process writes.
type journal struct {
	mu   sync.Mutex
	text []string // whole lines, or, as the last, the start of one
	at   []time.Time
	over bool
	news chan struct{} // closed, and made again, when there is more
}

func newJournal() *journal { return &journal{news: make(chan struct{})} }

// write adds text that was written at a time, in pieces that end with their lines.
func (j *journal) write(at time.Time, text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for line := range strings.SplitAfterSeq(text, "\n") {
		if line != "" {
			j.text, j.at = append(j.text, line), append(j.at, at)
		}
	}
	j.report()
}

// end says that nothing more will come.
func (j *journal) end() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.over = true
	j.report()
}

func (j *journal) report() {
	close(j.news)
	j.news = make(chan struct{})
}

// from returns the lines behind the first n, and what is closed once there are more; nil if there never will be.
func (j *journal) from(n int) (text []string, at []time.Time, news <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.over {
		news = j.news
	}
	return j.text[n:], j.at[n:], news
}

// serveLogs has the API server find the logs of all nodes at one port of this machine, as it finds those of a kubelet.
func (f *Fleet) serveLogs() (stop func()) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", f.serveLog)
	server := httptest.NewUnstartedServer(mux)
	server.EnableHTTP2 = true // as kubelets do: many logs come by one connection
	server.StartTLS()
	f.logs = int32(server.Listener.Addr().(*net.TCPAddr).Port)
	return func() {
		server.CloseClientConnections()
		server.Close()
	}
}

// serveLog sends what the process of a pod wrote, and goes on sending where it is asked to follow, until the process
// has ended.
func (f *Fleet) serveLog(w http.ResponseWriter, r *http.Request) {
	p, cut := f.podOf(r.PathValue("namespace"), r.PathValue("pod"))
	if p == nil {
		http.Error(w, "no such pod, or its node does not answer", http.StatusServiceUnavailable)
		return
	}
	q := r.URL.Query()
	since, _ := time.Parse(time.RFC3339, q.Get("sinceTime"))
	for n := 0; ; {
		text, at, news := p.journal.from(n)
		n += len(text)
		for i := range text {
			switch {
			case at[i].Before(since):
				continue
			case q.Get("timestamps") == "true":
				fmt.Fprint(w, at[i].UTC().Format(time.RFC3339Nano), " ")
			}
			fmt.Fprint(w, text[i])
		}
		if news == nil || q.Get("follow") != "true" {
			return
		}
		w.(http.Flusher).Flush()
		select {
		case <-news:
		case <-cut:
			panic(http.ErrAbortHandler)
		case <-p.ctx.Done():
			panic(http.ErrAbortHandler)
		case <-r.Context().Done():
			return
		}
	}
}

// podOf returns a pod whose node can be asked, and what is closed when connections to that are cut.
func (f *Fleet) podOf(namespace, name string) (*pod, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.pods {
		if p.first.Name == name && p.first.Namespace == namespace && !p.node.silent && !p.node.lost {
			return p, p.node.cut
		}
	}
	return nil, nil
}

// CutLogs breaks the connections over which logs of a node are read.
func (f *Fleet) CutLogs(name string) {
	f.change(name, func(n *node) {
		close(n.cut)
		n.cut = make(chan struct{})
	})
}

// Print has the process write text, which should end with a line.
func (p *Process) Print(text string) { p.journal.write(time.Now(), text) }

// PrintAt is Print as if it had been at another time, which must not fall from call to call.
func (p *Process) PrintAt(at time.Time, text string) { p.journal.write(at, text) }

// reachable says where the logs of a node are.
func (f *Fleet) reachable(n *corev1.Node) {
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
	n.Status.DaemonEndpoints.KubeletEndpoint.Port = f.logs
}
