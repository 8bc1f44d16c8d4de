package server

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/manager"
	"github.com/trainyard/trainyard/manager/access"
)

// TestMain makes this binary a shim where the driver starts it as one, and a client where a test does.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "shim" {
		os.Exit(shim.Main(shim.RunDir(os.Args[2])))
	}
	if len(os.Args) > 1 && os.Args[1] == "whatif" {
		simulate(os.Args[2:])
		return
	}
	if dir := os.Getenv(clientEnv); dir != "" {
		otherUser(dir)
		return
	}
	os.Exit(m.Run())
}

// waitLong is how long a test waits for what must come, on however busy a machine.
const waitLong = time.Minute

// rig is a manager that runs, its server, and ways to it.
type rig struct {
	testing.TB
	dir    string
	m      *manager.Manager
	o      access.Options
	door   *access.Door
	server *Server
	client *api.Client // over the unix socket
	pool   *x509.CertPool
	url    string // over the network

	ways map[bool]*http.Client // see overSocket
}

// newRig starts a manager of slots without jobs and serves it, over the network as well if tokens are made by setup.
func newRig(t testing.TB, slots int, setup func(r *rig)) *rig {
	t.Helper()
	return newRigOf(t, "fifo-skip", slots, setup)
}

// newRigOf is newRig under a system, with settings of it.
func newRigOf(t testing.TB, system string, slots int, setup func(r *rig), settings ...map[string]string) *rig {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{TB: t, dir: filepath.Join(t.TempDir(), "state")}
	meter := NewMeter()
	m, err := manager.Open(context.Background(), manager.Options{Dir: r.dir, Devices: device.Slots(slots),
		Place: "slots", Unit: "slot", System: system, Settings: append(settings, nil)[0],
		Shim: []string{exe, "shim"}, Sinks: []eventlog.Sink{meter}, Decided: meter.Decided})
	if err != nil {
		t.Fatal(err)
	}
	r.m, r.o = m, access.Options{Dir: r.dir}
	if setup != nil {
		setup(r)
	}
	if r.door, err = access.New(r.o); err != nil {
		t.Fatal(err)
	}
	world := manager.NewSite(m, r.door)
	world.SimulateBy([]string{exe, "whatif"})
	t.Cleanup(world.Close)
	r.server, err = New(Options{Host: m, Site: world, Meter: meter, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	stop, err := r.door.Listen(r.server)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- m.Run(ctx) }()
	if r.client, err = api.Dial(r.dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.endJobs()
		cancel()
		if err := <-over; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		stop()
		_ = r.client.Close()
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// endJobs cancels what is not done and waits for its processes.
func (r *rig) endJobs() {
	ctx, cancel := context.WithTimeout(context.Background(), waitLong)
	defer cancel()
	if _, err := r.client.Drain(ctx, true); err != nil { // nothing starts in the place of what ends
		r.Error(err)
	}
	doc, err := r.client.Jobs(ctx, api.Filter{States: []string{"starting", "running", "stopping"}})
	if err != nil {
		r.Error(err)
	}
	for _, j := range doc.Jobs {
		_, _ = r.client.Cancel(ctx, j.Name)
		if _, err := r.client.Wait(ctx, j.Name); err != nil {
			r.Error(err)
		}
	}
}

// network has the rig serve on the network too.
func network(t testing.TB) func(r *rig) {
	t.Helper()
	return func(r *rig) {
		cert, key, leaf := newCert(t, "server")
		folder := t.TempDir()
		r.o.Cert, r.o.Key = filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
		write(t, r.o.Cert, cert)
		write(t, r.o.Key, key)
		r.pool = x509.NewCertPool()
		r.pool.AddCert(leaf)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		r.o.Network = l.Addr().String()
		_ = l.Close()
		r.url = "https://" + r.o.Network
	}
}

func write(t testing.TB, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// newCert makes a certificate that signs itself, for this machine.
func newCert(t testing.TB, name string) (cert, key []byte, leaf *x509.Certificate) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour),
		NotAfter:  time.Now().Add(time.Hour), DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0,
			1)}}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	if leaf, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), leaf
}

// overSocket returns a way to ask over the socket as is, kept open between requests or not.
func (r *rig) overSocket(kept bool) *http.Client {
	r.Helper()
	if r.ways[kept] == nil {
		folder, address, err := api.Socket(r.dir)
		if err != nil {
			r.Fatal(err)
		}
		r.Cleanup(func() { _ = folder.Close() })
		c := &http.Client{Timeout: waitLong, Transport: &http.Transport{DisableKeepAlives: !kept,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return api.DialSocket(ctx, folder, address)
			}}}
		r.Cleanup(c.CloseIdleConnections)
		if r.ways == nil {
			r.ways = make(map[bool]*http.Client)
		}
		r.ways[kept] = c
	}
	return r.ways[kept]
}

// token makes a token for a role.
func (r *rig) token(name, user string, role api.Role) string {
	r.Helper()
	secret, err := access.OpenTokens(r.dir).Add(access.Token{Name: name, User: user, Role: role.String()})
	if err != nil {
		r.Fatal(err)
	}
	return secret
}

// dial returns a client over the network.
func (r *rig) dial(token string) *api.Client {
	return api.DialNetwork(r.o.Network, token, &tls.Config{RootCAs: r.pool, MinVersion: tls.VersionTLS13})
}

// submit hands jobs in by the socket and returns them.
func (r *rig) submit(file string) []api.Estimate {
	r.Helper()
	doc, err := r.client.Submit(r.Context(), api.Submission{File: file, Dir: filepath.Dir(r.dir)})
	if err != nil {
		r.Fatal(err)
	}
	return doc.Jobs
}

// later are jobs of two users that are held for long.
const later = `
defaults: {command: [sleep, 1h], submit: 1h}
jobs: [{name: of-ann, user: ann}, {name: of-bob, user: bob}]
`

// ask sends a request over the network as it is, and returns the answer.
func (r *rig) ask(method, path, token, body string, change func(*http.Request)) (status int, text string) {
	r.Helper()
	req, err := http.NewRequestWithContext(r.Context(), method, r.url+"/", strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	if req.URL.Opaque = path; strings.HasPrefix(path, "//") { // neither escaped nor cleaned
		req.URL.Opaque, req.URL.Path = "", path
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if change != nil {
		change(req)
	}
	c := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: r.pool,
		MinVersion: tls.VersionTLS13}, DisableKeepAlives: true,
		ExpectContinueTimeout: waitLong},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, Timeout: waitLong}
	resp, err := c.Do(req)
	if err != nil {
		r.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return resp.StatusCode, ""
	}
	var b bytes.Buffer
	if _, err := io.Copy(&b, resp.Body); err != nil {
		r.Fatalf("%s %s: %v", method, path, err)
	}
	return resp.StatusCode, b.String()
}

// decided runs a job and returns the number of the event by which it was given its GPUs.
func (r *rig) decided() (seq uint64) {
	r.Helper()
	job := r.submit("jobs: [{name: quick, command: ['true']}]")[0].ID
	if _, err := r.client.Wait(r.Context(), strconv.Itoa(job)); err != nil {
		r.Fatal(err)
	}
	var log bytes.Buffer
	if err := r.client.WriteLog(r.Context(), &log); err != nil {
		r.Fatal(err)
	}
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, `"event":"decided"`) && strings.Contains(line, fmt.Sprintf(`"job":%d,`, job)) {
			if _, err := fmt.Sscanf(line, `{"seq":%d,`, &seq); err == nil {
				return seq
			}
		}
	}
	r.Fatalf("job %d was given nothing\n%s", job, log.String())
	return 0
}
