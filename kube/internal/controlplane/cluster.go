package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Options of a control plane; the zero value is an ordinary one.
type Options struct {
	// Audit has the API server note every request of a client from outside the control plane, for Requests.
	Audit bool

	// NodeGrace is how long a node may be silent before the control plane takes it for not ready; 0 means Kubernetes'
	// default, 50 s. Nodes must speak several times in it.
	NodeGrace time.Duration

	// Data is a folder that Save made: all that was stored then is there again. "" = nothing is.
	Data string
}

// Cluster is a control plane that runs. Its methods may be called from any goroutine.
type Cluster struct {
	dir     string // data, certificates, logs
	bins    string
	options Options
	config  *rest.Config // of the administrator
	tokens  map[string]string
	port    port

	mu      sync.Mutex
	api     *process   // nil while stopped by StopAPIServer
	servers []*process // the others, in the order of their start
}

// startLimit is how long a control plane may take to start: 3 s on an idle machine with two cores, many times that on a
// loaded one.
const startLimit = 5 * time.Minute

// Start starts a control plane for t alone, and stops it when t ends. It skips t where the binaries are missing (see
// Binaries). When t fails the tails of the logs are shown, and the directory is kept.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	bins := Binaries(t)
	c, err := launch(bins, o)
	if err != nil {
		t.Fatalf("controlplane: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s", c.tails())
		}
		c.stop(t.Failed())
	})
	return c
}

// launch starts a control plane with the binaries in bins. On an error nothing of it is left running.
func launch(bins string, o Options) (*Cluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	// Not below t.TempDir, whose names can be too long for the path of a socket.
	dir, err := os.MkdirTemp("", "kube")
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir, bins: bins, options: o}
	if o.Data != "" {
		err = os.CopyFS(c.data(), os.DirFS(o.Data))
	}
	if err == nil {
		err = c.start(ctx)
	}
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, c.tails())
		c.stop(false)
		return nil, err
	}
	return c, nil
}

// start brings up the servers in the order of their needs.
func (c *Cluster) start(ctx context.Context) error {
	if err := c.writeSecrets(); err != nil {
		return err
	}
	if err := c.startEtcd(ctx); err != nil {
		return err
	}
	if err := c.firstAPIServer(ctx); err != nil {
		return err
	}
	for _, user := range []string{admin, manager, scheduler} {
		if err := c.writeKubeconfig(user); err != nil {
			return err
		}
	}
	if err := c.run(manager, c.managerArgs()); err != nil {
		return err
	}
	if err := c.run(scheduler, c.schedulerArgs()); err != nil {
		return err
	}
	return c.await(ctx, nil, "namespace default", func() error {
		_, err := c.Client().CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// firstAPIServer starts the API server on a port that is free. Where someone else is quicker, it tries another.
func (c *Cluster) firstAPIServer(ctx context.Context) error {
	for {
		var err error
		if c.port, err = reserve(); err != nil {
			return err
		}
		err = c.StartAPIServer(ctx)
		if err == nil || !c.logged(apiServer, "address already in use") {
			return err
		}
		c.port.release()
		if err := os.Remove(c.log(apiServer)); err != nil {
			return err
		}
	}
}

// StartAPIServer starts the API server, on the same port as ever, and returns once it is ready.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.api != nil {
		return errors.New("kube-apiserver runs already")
	}
	p, err := c.spawn(apiServer, c.apiServerArgs())
	if err != nil {
		return err
	}
	err = c.await(ctx, p, "kube-apiserver", func() error { return c.ready(ctx) })
	if err != nil {
		p.kill()
		return err
	}
	c.api = p
	return nil
}

// StopAPIServer kills the API server: connections break, and requests under way may have been followed or not. All else
// goes on, and so does what is stored.
func (c *Cluster) StopAPIServer() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.api != nil {
		c.api.kill()
		c.api = nil
	}
}

// Save ends all servers, and has a new folder keep what is stored.
func (c *Cluster) Save(t testing.TB, folder string) {
	t.Helper()
	c.StopAPIServer()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.servers {
		p.kill()
	}
	part := folder + ".part" // of one who did not come to the end
	err := errors.Join(os.RemoveAll(part), os.CopyFS(part, os.DirFS(c.data())), os.Rename(part, folder))
	if err != nil {
		t.Fatalf("controlplane: %v", err)
	}
}

// Config returns the config of a client of the administrator, not throttled. It is the caller's to change.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Client returns a client of the administrator.
func (c *Cluster) Client() kubernetes.Interface { return kubernetes.NewForConfigOrDie(c.Config()) }

// Kubeconfig returns the path of a kubeconfig file of the administrator, for other processes.
func (c *Cluster) Kubeconfig() string { return c.path(admin + ".kubeconfig") }

// Kubectl returns the path of kubectl. It skips or fails t where that is missing, as Binaries does.
func (c *Cluster) Kubectl(t testing.TB) string {
	t.Helper()
	return filepath.Join(Binaries(t, "kubectl"), "kubectl")
}

// stop ends all servers, the last started first, and removes the directory unless keep.
func (c *Cluster) stop(keep bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.api != nil {
		c.servers = append(c.servers, c.api)
	}
	for i := len(c.servers) - 1; i >= 0; i-- {
		c.servers[i].kill()
	}
	c.port.release()
	if !keep {
		os.RemoveAll(c.dir)
	}
}

// run starts a server that is never waited for: what depends on it is.
func (c *Cluster) run(name string, args []string) error {
	p, err := c.spawn(name, args)
	if err == nil {
		c.servers = append(c.servers, p)
	}
	return err
}

func (c *Cluster) spawn(name string, args []string) (*process, error) {
	return spawn(filepath.Join(c.bins, name), c.log(name), args...)
}

// await asks until try succeeds, and gives up when p (which may be nil) has ended or ctx is done.
func (c *Cluster) await(ctx context.Context, p *process, what string, try func() error) error {
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	var ended chan struct{}
	if p != nil {
		ended = p.done
	}
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ended:
			return fmt.Errorf("%s ended while starting: %w", what, p.err)
		case <-ctx.Done():
			return fmt.Errorf("%s did not get ready: %w", what, err)
		}
	}
}

// path is a file in the cluster's directory.
func (c *Cluster) path(name string) string { return filepath.Join(c.dir, name) }

// data is the folder of what is stored.
func (c *Cluster) data() string { return c.path("etcd") }

func (c *Cluster) log(server string) string { return c.path(server + ".log") }
