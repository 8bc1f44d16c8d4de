package access

import (
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// Ensure that a door says at which port it listens where the system has chosen it, and nothing where it does not listen
// on the network.
func TestNetworkAddress(t *testing.T) {
	t.Parallel()
	pair := httptest.NewUnstartedServer(http.NotFoundHandler())
	pair.StartTLS()
	defer pair.Close()
	made := pair.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(made.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	files := t.TempDir()
	write := func(name, kind string, bytes []byte) string {
		path := filepath.Join(files, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cert, private := write("cert", "CERTIFICATE", made.Certificate[0]), write("key", "PRIVATE KEY", key)
	for _, network := range []string{"", "127.0.0.1:0"} {
		dir := t.TempDir()
		if _, err := OpenTokens(dir).Add(Token{Name: "a", User: "a", Role: "viewer"}); err != nil {
			t.Fatal(err)
		}
		d, err := New(Options{Dir: dir, Network: network, Cert: cert, Key: private})
		if err != nil {
			t.Fatal(err)
		}
		stop, err := d.Listen(http.NotFoundHandler())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
		if network == "" {
			if at := d.Network(); at != "" {
				t.Errorf("listens at %s, want nowhere", at)
			}
			continue
		}
		conn, err := net.Dial("tcp", d.Network())
		if err != nil {
			t.Fatalf("%s: %v", d.Network(), err)
		}
		conn.Close()
	}
}
