package access

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/api/site"
	"github.com/trainyard/trainyard/sched"
)

// Options say where a Door is, and to whom it opens.
type Options struct {
	Dir string // state folder
	// Group may use the socket as well, each of its users as User; nil = the owner of the folder and root alone.
	Group *int
	// Network is where to listen on the network, as in ":7070"; "" = nowhere. It takes a certificate, and someone who
	// may ask: see Tokens.
	Network string
	Cert    string // file of the certificate, in PEM
	Key     string // file of its key
	Log     *slog.Logger
	Room    Room // how many connections there may be; zero = RoomNow
}

// Door is how a manager is reached: it knows who asks, and what he may do.
type Door struct {
	o      Options
	tokens *Tokens
	owner  uint32            // of the folder
	cert   *x509.Certificate // of the server, over the network
	at     net.Addr          // where it listens on the network; nil = nowhere
}

// Network returns the address on the network at which d listens, its port as it is; "" = none.
func (d *Door) Network() string {
	if d.at == nil {
		return ""
	}
	return d.at.String()
}

// New returns the door of a state folder. It is shut before Listen.
func New(o Options) (*Door, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Room == (Room{}) {
		o.Room = RoomNow()
	}
	info, err := os.Stat(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	return &Door{o: o, tokens: OpenTokens(o.Dir), owner: info.Sys().(*syscall.Stat_t).Uid}, nil
}

// local says who is at the other end of the unix socket, by the user that the kernel names.
func (d *Door) local(uid uint32) api.Who {
	switch {
	case uid == 0 || uid == d.owner:
		return api.Who{Name: UserName(uid), Role: api.Admin}
	case d.o.Group != nil: // who reaches the socket is of the group
		return api.Who{Name: UserName(uid), Role: api.User}
	}
	return api.Who{}
}

// Known reports whether the manager goes by a name: over the network it is one of its certificate.
func (d *Door) Known(r *http.Request, name string) bool {
	if _, local := PeerOf(r.Context()); local {
		return name == api.HostName || name == "localhost"
	}
	return d.cert != nil && r.TLS != nil && d.cert.VerifyHostname(name) == nil
}

// Identify says who asks, and how to ask again.
func (d *Door) Identify(r *http.Request) (api.Who, func() bool) {
	if p, local := PeerOf(r.Context()); local {
		if p.Err != nil {
			return api.Who{}, nil
		}
		return d.local(p.UID), func() bool { return true }
	}
	var ask func() (api.Who, bool)
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	switch {
	case r.TLS == nil:
		return api.Who{}, nil
	case strings.EqualFold(scheme, "Bearer"):
		ask = func() (api.Who, bool) { return d.tokens.Bearer(secret, time.Now()) }
	case len(r.TLS.PeerCertificates) > 0:
		cert := r.TLS.PeerCertificates[0]
		ask = func() (api.Who, bool) { return d.tokens.Certified(cert.Raw, time.Now()) }
	default:
		return api.Who{}, nil
	}
	who, _ := ask()
	return who, func() bool { again, ok := ask(); return ok && again == who }
}

// Hint says how to be identified.
func (d *Door) Hint(r *http.Request) string {
	if _, local := PeerOf(r.Context()); local {
		return "this manager answers its owner and root alone"
	}
	return "want a token that holds, or a certificate that is admitted"
}

// May goes by roles, and by the user whose job it is.
func (d *Door) May(ctx context.Context, who api.Who, right site.Right) error {
	if who.Role < right.Least {
		return api.Refusal(http.StatusForbidden, "%s is %v here, and this takes a role of %v", who.Name, who.Role,
			right.Least)
	}
	if right.Job == sched.None || !right.Own || who.Role >= api.Admin {
		return nil
	}
	owner, err := right.Owner(ctx)
	if err == nil && owner != who.Name {
		err = api.Refusal(http.StatusForbidden, "job %d is not one of %s", right.Job, who.Name)
	}
	return err
}
