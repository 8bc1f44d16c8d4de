package ports

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Count is how many ports a lease has: one for the launcher, the rest for what a job opens besides.
const Count = 4

// Range is the ports of which leases are taken, both ends included.
type Range struct{ First, Last int }

// Default lies below 29400 and 29500, which launchers take by themselves, and below the ports that Linux gives to
// clients.
var Default = Range{20000, 29399}

// least is the first port that needs no rights.
const least = 1024

// Parse reads a range, as 20000-29399. It has at least one whole block, else the error says what is wanted.
func Parse(s string) (Range, error) {
	first, last, _ := strings.Cut(s, "-")
	a, bad := strconv.Atoi(first)
	b, worse := strconv.Atoi(last)
	r := Range{a, b}
	if bad != nil || worse != nil || a < least || b > 65535 || len(r.blocks()) == 0 {
		return Range{}, fmt.Errorf("%q, want FIRST-LAST from %d to 65535 with %d ports in a row from a multiple of "+
			"%d, as in %v", s, least, Count, Count, Default)
	}
	return r, nil
}

// String returns the range as Parse reads it.
func (r Range) String() string { return fmt.Sprintf("%d-%d", r.First, r.Last) }

// blocks returns the first ports of the blocks in the range, in order.
func (r Range) blocks() (list []int) {
	for first := (r.First + Count - 1) / Count * Count; first+Count-1 <= r.Last; first += Count {
		list = append(list, first)
	}
	return list
}

// Lease is the ports of one attempt.
type Lease struct {
	First int
	lock  *os.File
}

// String returns the ports as a job reads them, as in 20480-20483.
func (l *Lease) String() string { return Range{l.First, l.First + Count - 1}.String() }

// Lock returns the file whose holders have the lease: a process that is given it has the lease as well.
func (l *Lease) Lock() *os.File { return l.lock }

// Close lets go of the lease. Others who were given its lock have it still.
func (l *Lease) Close() { _ = l.lock.Close() }

// Pool hands out leases of a range, each time other ports than before as long as there are some. It is used by one
// goroutine at a time.
type Pool struct {
	all    Range
	blocks []int
	next   int
}

// NewPool returns the leases of a range, less the ports that the kernel gives to clients. If nothing is left, the
// range is used all the same: each port is tried before it is given out. The first lease is the n-th, modulo their
// number.
func NewPool(r Range, n int) *Pool {
	p := &Pool{all: r, blocks: Free(r)}
	if len(p.blocks) == 0 {
		p.blocks = r.blocks()
	}
	p.next = n % len(p.blocks)
	return p
}

// Free returns the first ports of the blocks of a range in which the kernel gives no port to clients.
func Free(r Range) []int {
	var clients Range
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err == nil {
		_, err = fmt.Sscan(string(text), &clients.First, &clients.Last)
	}
	if err != nil {
		return r.blocks() // it has no such ports, or does not say
	}
	return without(r.blocks(), clients)
}

// without returns the blocks that have no port of a range.
func without(blocks []int, taken Range) (list []int) {
	for _, first := range blocks {
		if first+Count-1 < taken.First || first > taken.Last {
			list = append(list, first)
		}
	}
	return list
}

// errTaken says that another process has the lock of a block.
var errTaken = errors.New("taken")

// Take returns a lease of ports that no other lease has and no one listens at, on IPv4 and IPv6. The error says that
// there are none, or why no lock can be had.
func (p *Pool) Take() (*Lease, error) {
	for range p.blocks {
		first := p.blocks[p.next]
		p.next = (p.next + 1) % len(p.blocks)
		lock, err := lockBlock(first)
		if errors.Is(err, errTaken) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("lock of port %d: %w", first, err)
		}
		if l := (&Lease{first, lock}); l.free() {
			return l, nil
		}
		_ = lock.Close()
	}
	return nil, fmt.Errorf("no %d ports in a row are free in %v: all are leased or in use, want others by --ports",
		Count, p.all)
}

// free reports whether all ports of the lease can be listened at.
func (l *Lease) free() bool {
	for port := l.First; port < l.First+Count; port++ {
		if !listens("tcp4", port) || !listens("tcp6", port) {
			return false
		}
	}
	return true
}

// listens reports whether one can listen at a port of all addresses, or the machine has no such addresses.
func listens(network string, port int) bool {
	l, err := net.Listen(network, ":"+strconv.Itoa(port))
	if err != nil {
		return errors.Is(err, syscall.EAFNOSUPPORT) || errors.Is(err, syscall.EADDRNOTAVAIL) ||
			errors.Is(err, syscall.EPROTONOSUPPORT)
	}
	_ = l.Close()
	return true
}
