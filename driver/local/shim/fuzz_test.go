package shim

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"testing"
	"time"
)

// FuzzRecords: whatever bytes stand where a record is, it is read as what a shim can have written, or refused as torn.
func FuzzRecords(f *testing.F) {
	for _, seed := range []string{`{"code":0,"ended":"2026-01-02T03:04:05Z"}`, `{"code":1099511627776}`, `{"pid":-1}`,
		`{"failed":"x","suspects":["a"]}`, `null`, `[]`, "\x00", `{"code":1e400}`,
		`{"ended":"99999-01-01T00:00:00Z"}`} {
		f.Add([]byte(seed))
	}
	dir := State(f.TempDir()).RunDir(0, 1)
	if err := os.MkdirAll(string(dir), 0o700); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, name := range []string{"over.json", "alive.json", "starting.json", "order.json"} {
			if err := os.WriteFile(dir.file(name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		over, err := dir.Over()
		if err == nil && (over.Code < 0 || over.Code > maxCode) {
			t.Errorf("code %d", over.Code)
		}
		alive, err2 := dir.Alive()
		if err2 == nil && alive.Lives() && alive.PID != os.Getpid() {
			t.Logf("%d lives", alive.PID)
		}
		_, err3 := dir.Starting()
		_, err4 := dir.Order()
		for _, err := range []error{err, err2, err3, err4} {
			if err != nil && (!errors.Is(err, ErrTorn) || errors.Is(err, fs.ErrNotExist)) {
				t.Errorf("%v, want ErrTorn", err)
			}
		}
	})
}

// FuzzControl: whatever is written to its socket, a shim neither fails nor forgets which manager gives orders, and it
// stops only for one of its number or a later one.
func FuzzControl(f *testing.F) {
	for _, seed := range []string{`{"epoch":9223372036854775807}`, `{"epoch":2,"stop":true}`, `{"epoch":1,"stop":true}`,
		`{"epoch":2,"of":"1/1","stop":true}`, `{"epoch":2}{"epoch":-1}`, `{"stop":true`,
		`{"epoch":2,"times":{"limit":-1,"grace":1},"stop":true}`, `{"epoch":2,"times":{"limit":1,"grace":1}}`,
		"[[[[", "\x00"} {
		f.Add([]byte(seed))
	}
	state := State(f.TempDir())
	if err := state.SetEpoch(2); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := &shim{order: sh(state, ""), epoch: 2, changed: make(chan struct{}), stop: make(chan struct{})}
		ours, theirs := net.Pipe()
		heard := make(chan struct{})
		go func() {
			s.hear(&client{Conn: ours}, func() {})
			_ = ours.Close()
			close(heard)
		}()
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		_ = theirs.SetWriteDeadline(time.Now().Add(patience))
		_, _ = theirs.Write(b) // hung up on, where it says what no manager does
		_ = theirs.Close()
		<-heard
		if s.epoch != 2 {
			t.Errorf("epoch %d, want 2", s.epoch)
		}
		var first say
		if err := json.Unmarshal(b, &first); err == nil && first.Stop && first.Of == "" {
			select {
			case <-s.stop:
				if first.Epoch < 2 {
					t.Errorf("it obeys %s", b)
				}
			default:
				if first.Epoch >= 2 {
					t.Errorf("it does not obey %s", b)
				}
			}
		}
	})
}
