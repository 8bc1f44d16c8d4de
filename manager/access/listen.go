package access

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/trainyard/trainyard/api"
)

// Listen serves on the socket of the state folder and, if that is asked for, on the network, until stop is called. The
// manager must have the folder.
func (d *Door) Listen(answers http.Handler) (stop func(), err error) {
	l, done, err := d.listenSocket()
	if err != nil {
		return nil, fmt.Errorf("api: control socket: %w", err)
	}
	room := d.o.Room
	// a quarter is kept for others than the one who has the most
	listeners := []net.Listener{newGate(l, room.Socket, room.Socket-room.Socket/4, userOf)}
	if d.o.Network != "" {
		n, err := d.ListenNetwork()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("api: %s: %w", d.o.Network, err), l.Close(), done())
		}
		listeners = append(listeners, n)
	}
	ctx, cancel := context.WithCancel(context.Background())
	server := &http.Server{Handler: answers, ConnContext: WithPeer, ConnState: noteState,
		ReadHeaderTimeout: api.Patience, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: api.MaxHeaders, DisableGeneralOptionsHandler: true,
		BaseContext: func(net.Listener) context.Context { return ctx },
		Protocols:   new(http.Protocols), ErrorLog: log.New(discard{}, "", 0)}
	server.Protocols.SetHTTP1(true)
	var serving sync.WaitGroup
	for _, l := range listeners {
		serving.Go(func() {
			if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				d.o.Log.Error("no one is answered any more", "address", l.Addr(), "error", err)
			}
		})
	}
	return func() {
		cancel() // streams
		end, late := context.WithTimeout(context.Background(), time.Second)
		defer late()
		_ = server.Shutdown(end)
		_ = server.Close()
		serving.Wait()
		_ = done()
	}, nil
}

// discard takes what the server says of connections that break: those who made them know.
type discard struct{}

// Write takes b as written.
func (discard) Write(b []byte) (int, error) { return len(b), nil }

// Modes of the socket and the folder it is in.
const (
	alone      = 0o600
	withGroup  = 0o660
	folderMode = 0o710 // whoever may pass sees nothing
)

// listenSocket listens on the socket of the folder. What it returns removes that again, unless it is another manager's
// by then.
func (d *Door) listenSocket() (net.Listener, func() error, error) {
	dir := d.o.Dir
	folder, address, err := api.Socket(dir)
	if err != nil {
		return nil, nil, err
	}
	if err = removeOld(address, dir); err != nil {
		return nil, nil, errors.Join(err, folder.Close())
	}
	mode := os.FileMode(alone)
	l, err := net.Listen("unix", address) // in a folder that is closed to others so far
	if err == nil && d.o.Group != nil {
		mode = withGroup
		err = errors.Join(os.Chown(address, -1, *d.o.Group), os.Chown(dir, -1, *d.o.Group), os.Chmod(dir, folderMode))
	}
	if err == nil {
		err = os.Chmod(address, mode)
	}
	if err != nil {
		return nil, nil, errors.Join(err, folder.Close())
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	made, err := os.Lstat(address)
	return l, func() error {
		if now, gone := os.Lstat(address); gone == nil && err == nil && os.SameFile(now, made) &&
			now.ModTime().Equal(made.ModTime()) { // another file may have the number of one that is gone
			_ = os.Remove(address)
		}
		return folder.Close()
	}, nil
}

// removeOld removes the socket of a manager that died, at an address that is in the folder dir: that is ours.
func removeOld(address, dir string) error {
	err := os.Remove(address)
	if err == nil || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if at := (*os.PathError)(nil); errors.As(err, &at) {
		err = at.Err
	}
	return fmt.Errorf("%s: the one of an earlier manager cannot be removed: %w; want a folder that we may write in",
		filepath.Join(dir, filepath.Base(address)), err)
}

// ListenNetwork listens on the network, where no one is answered without an identity, also on this machine.
func (d *Door) ListenNetwork() (net.Listener, error) {
	list, err := d.tokens.List()
	switch {
	case err != nil:
		return nil, err
	case d.o.Cert == "" || d.o.Key == "":
		return nil, fmt.Errorf("%w without a certificate and its key", api.ErrRefused)
	case len(list) == 0:
		return nil, fmt.Errorf("%w: no one could ask: make a token first, by `trainyard token create NAME --user "+
			"USER`", api.ErrRefused)
	}
	pair, err := tls.LoadX509KeyPair(d.o.Cert, d.o.Key)
	if err != nil {
		return nil, err
	}
	d.cert = pair.Leaf
	l, err := net.Listen("tcp", d.o.Network)
	if err != nil {
		return nil, err
	}
	d.at = l.Addr()
	most := d.o.Room.Network
	return tls.NewListener(newGate(l, most, min(EachAddress, most), addressOf), &tls.Config{
		Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13,
		ClientAuth: tls.RequestClientCert, NextProtos: []string{"http/1.1"}}), nil
}
