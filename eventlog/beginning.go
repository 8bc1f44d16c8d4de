package eventlog

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/trainyard/trainyard/memory"
	"github.com/trainyard/trainyard/sched"
)

// Beginning is what a log goes on from that does not start with an empty cluster: the state of a moment between two
// batches, and what the Decider remembers by then.
type Beginning struct {
	View   sched.View     // as Restore takes it
	Memory *memory.Memory // nil = the Decider starts again
}

// Pack returns b as bytes for Header.State: JSON, compressed, as a job takes a kilobyte of it. The checksum of the
// compression has what was damaged refused.
func (b *Beginning) Pack() ([]byte, error) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if err := json.NewEncoder(z).Encode(b); err != nil {
		return nil, fmt.Errorf("log: state: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("log: state: %w", err)
	}
	return packed.Bytes(), nil
}

// Bounds of what a state is unpacked to, in bytes: some hundred thousand jobs and GPUs, and no more than what we pack
// could be unpacked to.
const (
	maxState   = 512 << 20
	freeGrowth = 16 << 20
	mostGrowth = 200 // times; of ours it is about 20
)

// Beginning returns what the log goes on from; nil if it starts with an empty cluster.
func (h *Header) Beginning() (*Beginning, error) {
	if len(h.State) == 0 {
		return nil, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(h.State))
	if err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	b := new(Beginning)
	unpacked := io.LimitReader(z, min(maxState, int64(freeGrowth+mostGrowth*len(h.State))))
	d := json.NewDecoder(unpacked)
	d.DisallowUnknownFields()
	if err := d.Decode(b); err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	if _, err := io.Copy(io.Discard, unpacked); err != nil { // to the checksum
		return nil, fmt.Errorf("state: %w", err)
	}
	if n, err := z.Read(make([]byte, 1)); n > 0 || err != io.EOF { //nolint:errorlint // the end is io.EOF itself
		return nil, errors.New("state: it goes on behind its end, or unpacks to more than ours do")
	}
	return b, nil
}
