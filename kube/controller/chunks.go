package controller

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
)

// chunksKey is what of the ConfigMap of the memory says where it is, if it is too large for that one.
const chunksKey = "chunks"

// chunks is where a memory is that one ConfigMap does not hold: in several, which are written before this is. Two
// memories that follow each other are in ConfigMaps of different names, so that one is whole whenever a leader dies.
type chunks struct {
	Schema int
	Side   int // 0 or 1: of the names
	Count  int
	Bytes  int
	Sum    []byte // SHA-256 of all
}

// chunksSchema is raised when chunks are written otherwise than before.
const chunksSchema = 1

// chunkMap is the name of the ConfigMap of a chunk.
func chunkMap(side, i int) string { return fmt.Sprintf("%s-%d-%d", MemoryMap, side, i) }

// remembered is what the API has of the memory of a system, in addition to jobs.
type remembered struct {
	written bool // by this leader
	rest    []byte
	side    int // of the chunks that are there, if there are any
}

// writeMemory writes what a system remembers in addition to jobs, if it changed.
func (s *store) writeMemory(rest []byte) error {
	if s.memory.written && bytes.Equal(s.memory.rest, rest) {
		return nil
	}
	next := remembered{true, bytes.Clone(rest), 1 - s.memory.side}
	var err error
	if len(rest) <= s.maxBlob {
		err = s.writeBlob(MemoryMap, rest)
	} else {
		err = s.writeChunks(&next)
	}
	if err == nil {
		s.memory = next
	}
	return err
}

// writeChunks writes a memory in parts, and then which these are.
func (s *store) writeChunks(r *remembered) error {
	sum := sha256.Sum256(r.rest)
	list := chunks{Schema: chunksSchema, Side: r.side, Bytes: len(r.rest), Sum: sum[:]}
	for part := range slices.Chunk(r.rest, s.maxBlob) {
		if err := s.writeBlob(chunkMap(r.side, list.Count), part); err != nil {
			return err
		}
		list.Count++
	}
	text, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("controller: memory: %w", err)
	}
	return s.writeEntry(MemoryMap, chunksKey, text)
}

// memory reads what a system remembered in addition to jobs; nil if nothing is there that is whole.
func (c *Controller) memory(ctx context.Context, l *loaded) ([]byte, error) {
	entries, err := c.entries(ctx, l, MemoryMap)
	if err != nil || entries[chunksKey] == nil {
		return entries[blobKey], err
	}
	var list chunks
	if bad := json.Unmarshal(entries[chunksKey], &list); bad != nil || list.Schema != chunksSchema {
		c.o.Log.Warn("what the system remembered cannot be read", "schema", list.Schema, "error", bad)
		return nil, nil
	}
	l.side = list.Side
	var all []byte
	for i := 0; i < list.Count && len(all) < list.Bytes; i++ {
		part, failed := c.blob(ctx, l, chunkMap(list.Side, i))
		if failed != nil {
			return nil, failed
		}
		if len(part) == 0 { // the others would not make it whole
			break
		}
		all = append(all, part...)
	}
	if sum := sha256.Sum256(all); len(all) != list.Bytes || !bytes.Equal(sum[:], list.Sum) {
		c.o.Log.Warn("what the system remembered is not whole", "bytes", len(all), "want", list.Bytes)
		return nil, nil
	}
	return all, nil
}
