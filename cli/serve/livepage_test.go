package serve

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/web"
)

// Ensure that over the network the files of the page need no token and all else is asked of the API; that of a browser
// a client certificate does not count; and that an address with many wrong tokens waits, its right ones too.
func TestLivePage(t *testing.T) {
	answers := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") == "Bearer good", r.TLS == nil, len(r.TLS.PeerCertificates) > 0:
			_, _ = io.WriteString(w, "answered")
		default:
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	page := newLivePage(answers, func(_ *http.Request, name string) bool { return name == "lab.example" })
	now := time.Unix(1000, 0)
	page.now = func() time.Time { return now }
	ask := func(path, from string, change func(*http.Request)) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "https://lab.example"+path, http.NoBody)
		r.TLS, r.RemoteAddr = &tls.ConnectionState{}, from+":999"
		if change != nil {
			change(r)
		}
		w := httptest.NewRecorder()
		page.ServeHTTP(w, r)
		return w
	}
	token := func(value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+value) }
	}
	certificate := func(r *http.Request) { r.TLS.PeerCertificates = []*x509.Certificate{{}} }
	want := func(what string, w *httptest.ResponseRecorder, status int) {
		t.Helper()
		if w.Code != status {
			t.Errorf("%s: %d, want %d", what, w.Code, status)
		}
	}
	for _, path := range []string{"/", "/page.js", "/page.css"} {
		w := ask(path, "1.1.1.1", nil)
		want(path, w, http.StatusOK)
		if w.Header().Get("Content-Security-Policy") != web.LivePolicy {
			t.Errorf("%s: policy %q", path, w.Header().Get("Content-Security-Policy"))
		}
		want(path+" by another name", ask(path, "1.1.1.1", func(r *http.Request) { r.Host = "evil.example" }),
			http.StatusUnauthorized)
	}
	if text := ask("/", "1.1.1.1", nil).Body.String(); !strings.Contains(text, `data-live="token"`) {
		t.Error("the page does not ask for a token")
	}
	want("no token", ask("/v1/info", "1.1.1.1", nil), http.StatusUnauthorized)
	want("a token", ask("/v1/info", "1.1.1.1", token("good")), http.StatusOK)
	want("a certificate of a program", ask("/v1/info", "1.1.1.1", certificate), http.StatusOK)
	for _, mark := range []string{"Sec-Fetch-Site", "Sec-Fetch-Mode", "Origin", "Referer"} {
		want("a certificate of a browser, "+mark, ask("/v1/info", "1.1.1.1", func(r *http.Request) {
			certificate(r)
			r.Header.Set(mark, "same-origin")
		}), http.StatusUnauthorized)
	}
	for range wrongTokens {
		want("a wrong token", ask("/v1/info", "2.2.2.2", token("bad")), http.StatusUnauthorized)
	}
	want("one more", ask("/v1/info", "2.2.2.2", token("bad")), http.StatusTooManyRequests)
	want("a right one then", ask("/v1/info", "2.2.2.2", token("good")), http.StatusTooManyRequests)
	want("another address", ask("/v1/info", "3.3.3.3", token("good")), http.StatusOK)
	now = now.Add(wrongWithin + time.Second)
	want("a minute later", ask("/v1/info", "2.2.2.2", token("good")), http.StatusOK)
	want("by the socket", ask("/v1/info", "4.4.4.4", func(r *http.Request) { r.TLS = nil }), http.StatusOK)
}

// Ensure that who is known to send wrong tokens waits, though there is no room for more addresses.
func TestLivePageFull(t *testing.T) {
	t.Parallel()
	page := newLivePage(nil, nil)
	page.mistaken("2.2.2.2")
	for i := range mostStrange {
		page.wrong[fmt.Sprint(i)] = []time.Time{page.now()}
	}
	for range wrongTokens {
		page.mistaken("2.2.2.2")
		page.mistaken("3.3.3.3")
	}
	if !page.tooMany("2.2.2.2") || page.tooMany("3.3.3.3") || len(page.wrong) > mostStrange+1 {
		t.Errorf("2.2.2.2 sent %d wrong tokens, of %d addresses", len(page.recent("2.2.2.2")), len(page.wrong))
	}
}
