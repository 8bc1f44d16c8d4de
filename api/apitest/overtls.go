package apitest

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/trainyard/trainyard/api"
)

// Serve serves a handler over TLS on the loopback until the test ends, and returns what makes clients that bear a
// token.
func Serve(t *testing.T, answers http.Handler) func(token string) *api.Client {
	t.Helper()
	s := httptest.NewTLSServer(answers)
	t.Cleanup(s.Close)
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return func(token string) *api.Client {
		c := api.DialNetwork(s.Listener.Addr().String(), token,
			&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13})
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
}
