// Package past has the verbs about a recorded past: whatif and replay.
package past
