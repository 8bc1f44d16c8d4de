package ports

import (
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// inRange returns a range of a few blocks in which no one else takes leases: each test has its own.
func inRange(n int) Range { return Range{18000 + 100*n, 18099 + 100*n} }

// Ensure that a range is read as it is written, and that what holds no lease is refused with what is wanted.
func TestParse(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"20000-29399", "1024-1027", "65532-65535", "20001-20009"} {
		if r, err := Parse(s); err != nil || r.String() != s {
			t.Errorf("%s: %v, %v", s, r, err)
		}
	}
	for _, s := range []string{"", "20000", "20000-", "-20000", "20001-20006", "29399-20000", "1000-2000",
		"65000-70000", "20000-29399-1", " 20000-29399", "20000-2939x", "0x5000-0x6000"} {
		if r, err := Parse(s); err == nil || !strings.Contains(err.Error(), "want FIRST-LAST") {
			t.Errorf("%q: %v, %v", s, r, err)
		}
	}
}

// Ensure that blocks are aligned, that those of the kernel are left out, and that a range of nothing else is used all
// the same.
func TestBlocks(t *testing.T) {
	t.Parallel()
	r := Range{20002, 20021}
	if got := r.blocks(); !slices.Equal(got, []int{20004, 20008, 20012, 20016}) {
		t.Errorf("%v", got)
	}
	if got := without(r.blocks(), Range{20011, 20012}); !slices.Equal(got, []int{20004, 20016}) {
		t.Errorf("%v", got)
	}
	if clients := Free(Range{1024, 65535}); slices.Contains(clients, 40000) && clients[len(clients)-1] == 65532 {
		t.Log("this kernel gives clients other ports than most")
	}
}

// Ensure that a lease is had once, by whichever pool, is new each time, and is free once it is closed.
func TestTake(t *testing.T) {
	t.Parallel()
	r := inRange(0)
	one, two := NewPool(r, 3), NewPool(r, 3)
	first := take(t, one)
	if again := take(t, two); again.First == first.First {
		t.Errorf("port %d is leased twice", again.First)
	}
	first.Close()
	if next := take(t, one); next.First == first.First {
		t.Errorf("port %d is leased at once again", next.First)
	}
	var all []*Lease
	for len(all) < 30 {
		l, err := one.Take()
		if err != nil {
			if !strings.Contains(err.Error(), "want others by --ports") {
				t.Error(err)
			}
			break
		}
		all = append(all, l)
	}
	if len(all) != 23 { // 25 blocks, less the two that are held
		t.Errorf("%d leases, want the 23 that are left", len(all))
	}
	for _, l := range all {
		l.Close()
	}
	// A program that another test starts holds what was open here until it is up.
	l, err := one.Take()
	for end := time.Now().Add(time.Minute); err != nil && time.Now().Before(end); l, err = one.Take() {
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil || l.String() != strconv.Itoa(l.First)+"-"+strconv.Itoa(l.First+3) {
		t.Fatal(l, err)
	}
	l.Close()
}

func take(t *testing.T, p *Pool) *Lease {
	t.Helper()
	l, err := p.Take()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// Ensure that ports at which another program listens are not leased, on either kind of address and any of the four.
func TestTaken(t *testing.T) {
	t.Parallel()
	r := inRange(1)
	blocks := r.blocks()
	for i, first := range blocks[1:] {
		network, address := "tcp4", "127.0.0.1:"
		if i%2 == 1 {
			network, address = "tcp6", "[::1]:"
		}
		l, err := net.Listen(network, address+strconv.Itoa(first+i%Count))
		if err != nil && network == "tcp6" {
			network, address = "tcp4", "127.0.0.1:"
			l, err = net.Listen(network, address+strconv.Itoa(first+i%Count))
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
	}
	p := NewPool(r, 5)
	if l := take(t, p); l.First != blocks[0] {
		t.Errorf("lease of %d, want %d, as all others are in use", l.First, blocks[0])
	}
	if l, err := p.Take(); err == nil {
		t.Errorf("lease %v of ports that are in use", l)
	}
}

// Ensure that who was given the lock has the lease, once the one who took it has let go.
func TestLock(t *testing.T) {
	t.Parallel()
	p := NewPool(Range{inRange(2).First, inRange(2).First + 3}, 0)
	l := take(t, p)
	cmd := exec.Command("cat")
	cmd.ExtraFiles = []*os.File{l.Lock()}
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if again, failed := p.Take(); failed == nil {
		t.Errorf("%v is leased again while another process has it", again)
	}
	_ = in.Close()
	_ = cmd.Wait()
	take(t, p)
}
