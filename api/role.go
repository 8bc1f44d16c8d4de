package api

import "fmt"

// Role is what a user may do. Roles are ordered: each may do all that a lesser one may.
type Role uint8

// Roles.
const (
	NoRole Role = iota // may do nothing
	Viewer             // may see everything but secrets
	User               // may submit jobs as himself, and end, pause, resume, requeue and resize his own
	Admin              // may do everything, for everyone
)

var roleWords = [...]string{"nobody", "viewer", "user", "admin"}

// String returns the word of a known role.
func (r Role) String() string { return roleWords[r] }

// ParseRole returns the role of a word.
func ParseRole(word string) (Role, error) {
	for r := Viewer; r <= Admin; r++ {
		if roleWords[r] == word {
			return r, nil
		}
	}
	return NoRole, fmt.Errorf("role %q, want viewer, user or admin", word)
}

// Who is the one who asks for something.
type Who struct {
	Name string // whose jobs are his own
	Role Role
}
