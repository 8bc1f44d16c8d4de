package ui

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"
)

// linkFor is how long a link may be opened.
const linkFor = 10 * time.Minute

// keys are the secrets of a page: links that hold once, and the keys that they were exchanged for. Only hashes are
// kept: how long it takes to find one says nothing of it.
type keys struct {
	mu    sync.Mutex
	now   func() time.Time
	links map[[sha256.Size]byte]time.Time // until when
	keys  map[[sha256.Size]byte]bool
}

func newKeys() *keys {
	return &keys{now: time.Now, links: make(map[[sha256.Size]byte]time.Time), keys: make(map[[sha256.Size]byte]bool)}
}

// secret returns 32 random bytes, as text.
func secret() string {
	const size = 32
	b := make([]byte, size)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// link returns the secret of a new link.
func (k *keys) link() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	for hash, until := range k.links {
		if k.now().After(until) {
			delete(k.links, hash)
		}
	}
	s := secret()
	k.links[sha256.Sum256([]byte(s))] = k.now().Add(linkFor)
	return s
}

// exchange returns a key for the secret of a link, which is spent by it; false if that is none, was spent or is late.
func (k *keys) exchange(link string) (key string, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	hash := sha256.Sum256([]byte(link))
	until, known := k.links[hash]
	delete(k.links, hash)
	if !known || k.now().After(until) {
		return "", false
	}
	key = secret()
	k.keys[sha256.Sum256([]byte(key))] = true
	return key, true
}

// holds reports whether a key was given out.
func (k *keys) holds(key string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.keys[sha256.Sum256([]byte(key))]
}
