package serve

import (
	"net/http"

	"github.com/trainyard/trainyard/api/server"
	"github.com/trainyard/trainyard/manager"
	"github.com/trainyard/trainyard/manager/access"
)

// listen serves the API of a manager to those whom a names, and over the network the page of it if page, until stop is
// called. It returns the address on the network, "" if there is none.
func listen(m *manager.Manager, meter *server.Meter, o *manager.Options, a access.Options, page bool) (network string,
	stop func(), err error) {
	a.Dir, a.Log, a.Room = m.Dir(), o.Log, access.RoomNow()
	door, err := access.New(a)
	if err != nil {
		return "", nil, err
	}
	world := manager.NewSite(m, door)
	world.SimulateBy([]string{"/proc/self/exe", "whatif", "--state", m.Dir(), "--json", "--progress"})
	answers, err := server.New(server.Options{Host: m, Site: world, Meter: meter, Version: o.Version,
		Streams: a.Room.Streams, Log: o.Log})
	if err != nil {
		return "", nil, err
	}
	var handler http.Handler = answers
	if page {
		handler = newLivePage(answers, door.Known)
	}
	shut, err := door.Listen(handler)
	return door.Network(), func() { shut(); world.Close() }, err
}
