package inputs

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
)

// Ensure that a checkpoint is read from its file, of which only the header is read.
func TestCheckpointIsRead(t *testing.T) {
	header := `{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},` +
		`"b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}}`
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := os.WriteFile(path, append(file, make([]byte, 16)...), 0o600); err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{"profiles": "net=" + path}
	k, err := KnowledgeOf("tiresias-las", settings, nil)
	if err != nil {
		t.Fatal(err)
	}
	of := system.Profiles.Get(key.NewSettings(settings).Bind(system.Common, false, k.Files))
	if x, known := of("net"); x != 0.75 || !known {
		t.Errorf("skew %v, known %v, want 0.75", x, known)
	}
}
