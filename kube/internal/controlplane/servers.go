package controlplane

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// The servers, which are also the names of their users, of their logs and of their binaries.
const (
	etcd      = "etcd"
	apiServer = "kube-apiserver"
	manager   = "kube-controller-manager"
	scheduler = "kube-scheduler"
)

// admin is the user that tests are.
const admin = "admin"

// startEtcd starts etcd on a socket in the cluster's directory and waits for it. The advertised address is one that
// no one can reach: etcd wants one with a port, and no one asks for it. Its data need not survive the machine.
func (c *Cluster) startEtcd(ctx context.Context) error {
	err := c.run(etcd, []string{
		"--data-dir=" + c.data(),
		"--listen-client-urls=unix://" + c.path("etcd.sock"),
		"--advertise-client-urls=http://127.0.0.111:0",
		"--listen-peer-urls=http://127.0.0.1:0",
		"--unsafe-no-fsync",
		"--log-level=warn",
		"--quota-backend-bytes=8589934592",
	})
	if err != nil {
		return err
	}
	socket := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", c.path("etcd.sock"))
	}
	client := &http.Client{Transport: &http.Transport{DialContext: socket, DisableKeepAlives: true}}
	return c.await(ctx, c.servers[0], etcd, func() error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://etcd/health", http.NoBody)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("etcd: %s", resp.Status)
		}
		return nil
	})
}

// apiServerArgs: self-signed certificates, users by token, RBAC. Fairness between clients is off, and the limits of
// requests in flight are far above what a test has: nothing but the work itself is to slow it.
func (c *Cluster) apiServerArgs() []string {
	args := []string{
		"--etcd-servers=unix://" + c.path("etcd.sock"),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		fmt.Sprintf("--secure-port=%d", c.port.number),
		"--cert-dir=" + c.path("certs"),
		"--token-auth-file=" + c.path("tokens.csv"),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.path("accounts.pem"),
		"--service-account-signing-key-file=" + c.path("accounts.pem"),
		"--service-cluster-ip-range=10.96.0.0/16",
		"--disable-admission-plugins=ServiceAccount",
		"--kubelet-client-certificate=" + c.KubeletClientCert(),
		"--kubelet-client-key=" + c.path(kubeletClient+".key"),
		"--enable-priority-and-fairness=false",
		"--max-requests-inflight=4000",
		"--max-mutating-requests-inflight=2000",
		"--allow-privileged",
	}
	if c.options.Audit {
		args = append(args, "--audit-policy-file="+c.path("audit-policy.yaml"), "--audit-log-path="+c.path("audit.log"),
			"--audit-log-mode=blocking", "--audit-log-maxsize=4000") // blocking: a request answered is in the file
	}
	return args
}

func (c *Cluster) managerArgs() []string {
	args := append(c.clientArgs(manager),
		"--controllers=*,-nodeipam",
		"--service-account-private-key-file="+c.path("accounts.pem"),
	)
	if grace := c.options.NodeGrace; grace > 0 {
		args = append(args, "--node-monitor-grace-period="+grace.String(), "--node-monitor-period="+(grace/8).String())
	}
	return args
}

func (c *Cluster) schedulerArgs() []string { return c.clientArgs(scheduler) }

// clientArgs are those of the clients of the API server: no one serves, no one stands for election, no one is
// throttled.
func (c *Cluster) clientArgs(user string) []string {
	return []string{
		"--kubeconfig=" + c.path(user+".kubeconfig"),
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=5000",
		"--kube-api-burst=10000",
	}
}

// auditPolicy notes who asked for what, once answered, less what the control plane asks of itself.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  users: [` + manager + `, ` + scheduler + `, "system:apiserver"]
- level: Metadata
`

// kubeletClient is whom kubelets take the API server for.
const kubeletClient = "kubelet-client"

// KubeletClientCert returns the path of the certificate by which the API server shows a kubelet who it is. No one
// signed it but itself: it is the CA of clients that a kubelet is to trust.
func (c *Cluster) KubeletClientCert() string { return c.path(kubeletClient + ".crt") }

// writeSecrets makes a token for each user, the key of service accounts, what the API server shows kubelets, and the
// policy of the audit.
func (c *Cluster) writeSecrets() error {
	var tokens strings.Builder
	c.tokens = map[string]string{}
	for _, user := range []string{admin, manager, scheduler} {
		c.tokens[user] = rand.Text()
		fmt.Fprintf(&tokens, "%s,%s,%s,\"system:masters\"\n", c.tokens[user], user, user)
	}
	_, accounts, err := newKey()
	if err != nil {
		return err
	}
	key, keyPEM, err := newKey()
	if err != nil {
		return err
	}
	cert, err := selfSigned(key, kubeletClient)
	if err != nil {
		return err
	}
	files := map[string][]byte{
		"tokens.csv":           []byte(tokens.String()),
		"accounts.pem":         accounts,
		kubeletClient + ".key": keyPEM,
		kubeletClient + ".crt": cert,
		"audit-policy.yaml":    []byte(auditPolicy),
	}
	for name, data := range files {
		if err := os.WriteFile(c.path(name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	return key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), err
}

// selfSigned returns the certificate of a client that vouches for itself.
func selfSigned(key *ecdsa.PrivateKey, name string) ([]byte, error) {
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		IsCA:        true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), err
}

// ready asks the API server whether it is. The first time, it makes the administrator's config, for which the server
// has to have written its certificate.
func (c *Cluster) ready(ctx context.Context) error {
	config := c.config
	if config == nil || config.Host != c.host() {
		ca, err := os.ReadFile(c.path("certs/apiserver.crt"))
		if err != nil {
			return err
		}
		config = c.configOf(admin, ca)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return err
	}
	c.config = config // not before: of a certificate that is being written nothing may be there yet
	return nil
}

func (c *Cluster) host() string { return fmt.Sprintf("https://127.0.0.1:%d", c.port.number) }

func (c *Cluster) configOf(user string, ca []byte) *rest.Config {
	return &rest.Config{
		Host:            c.host(),
		BearerToken:     c.tokens[user],
		TLSClientConfig: rest.TLSClientConfig{CAData: ca},
		QPS:             -1,
	}
}

func (c *Cluster) writeKubeconfig(user string) error {
	k := clientcmdapi.NewConfig()
	k.Clusters["test"] = &clientcmdapi.Cluster{Server: c.host(), CertificateAuthorityData: c.config.CAData}
	k.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: c.tokens[user]}
	k.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: user}
	k.CurrentContext = "test"
	return clientcmd.WriteToFile(*k, c.path(user+".kubeconfig"))
}

// logged says whether a server's log has text in it.
func (c *Cluster) logged(server, text string) bool {
	data, err := os.ReadFile(c.log(server))
	return err == nil && bytes.Contains(data, []byte(text))
}

// tails returns the last lines of every server's log.
func (c *Cluster) tails() string {
	const lines = 15
	var b strings.Builder
	fmt.Fprintf(&b, "control plane in %s:\n", c.dir)
	for _, server := range []string{etcd, apiServer, manager, scheduler} {
		data, err := os.ReadFile(c.log(server))
		if err != nil {
			continue
		}
		all := strings.Split(strings.TrimSpace(string(data)), "\n")
		fmt.Fprintf(&b, "-- %s\n%s\n", server, strings.Join(all[max(0, len(all)-lines):], "\n"))
	}
	return b.String()
}
