package observer

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Made are the UIDs of the objects that are known to be of Trainyard's making: their creates returned them, or they
// were found to be what an attempt is to have. Names, labels and owners prove nothing, as anyone may write them.
// NewMade makes one. Any goroutine may use it.
type Made struct {
	mu   sync.Mutex
	uids map[Key]types.UID
}

// NewMade returns a Made that knows of nothing.
func NewMade() *Made { return &Made{uids: make(map[Key]types.UID)} }

// Note notes that the object of a key is the one of this UID.
func (m *Made) Note(k Key, uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uids[k] = uid
}

// Has reports whether the object of a key with this UID was noted.
func (m *Made) Has(k Key, uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return uid != "" && m.uids[k] == uid
}

// Forget drops what was noted of a key: its object is gone.
func (m *Made) Forget(k Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.uids, k)
}
