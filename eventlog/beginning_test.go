package eventlog

import (
	"bytes"
	"encoding/base64"
	"reflect"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/memory"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that a header gives back the state it was given, and that a log behind it goes on from there.
func TestBeginning(t *testing.T) {
	want := &Beginning{View: sched.View{Now: 5e9, Version: 7}, Memory: &memory.Memory{Rest: []byte(`{"a":1}`)}}
	packed, err := want.Pack()
	if err != nil {
		t.Fatal(err)
	}
	log := AppendHeader(nil, Header{Schema: Schema, System: "fifo", State: packed})
	r, err := NewReader(bytes.NewReader(append(log, '\n')), "x")
	if err != nil {
		t.Fatal(err)
	}
	h := r.Header()
	got, err := h.Beginning()
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v, %v, want %+v", got, err, want)
	}
	h.State = nil
	if b, err := h.Beginning(); b != nil || err != nil {
		t.Errorf("%v, %v of a header without a state", b, err)
	}
}

// Ensure that a state that is damaged anywhere, or is none, is refused where the log is opened.
func TestBeginningDamaged(t *testing.T) {
	want := &Beginning{View: sched.View{Now: 5e9, Version: 7}}
	packed, err := want.Pack()
	if err != nil {
		t.Fatal(err)
	}
	open := func(state string) error {
		head := AppendHeader(nil, Header{Schema: Schema, System: "fifo"})
		_, err := NewReader(strings.NewReader(strings.TrimSuffix(string(head), "}")+`,"state":"`+state+`"}`+"\n"), "x")
		return err
	}
	if err := open(base64.StdEncoding.EncodeToString(packed)); err != nil {
		t.Fatal(err)
	}
	for _, state := range []string{"!", "AAAA", base64.StdEncoding.EncodeToString(packed[:len(packed)-9])} {
		if err := open(state); err == nil || !strings.HasPrefix(err.Error(), "log: x: line 1: ") {
			t.Errorf("%q: %v", state, err)
		}
	}
	for i := range packed { // some bits mean nothing
		h := Header{State: bytes.Clone(packed)}
		h.State[i] ^= 0x10
		if b, err := h.Beginning(); err == nil && !reflect.DeepEqual(b, want) {
			t.Errorf("byte %d of %d damaged: %+v, want %+v or an error", i, len(packed), b, want)
		}
	}
}
