package access

// Room is how many connections and streams there may be, as the limit of open files of this process allows.
type Room struct {
	Socket  int // connections over the unix socket
	Network int // connections over the network
	Streams int // over the socket; a quarter as many are there for the network
}

// Bounds of a Room. Memory is no one's alone either: a connection takes some 10 KiB.
const (
	leastFiles = 64       // that are kept for the store and for jobs; or a quarter, if that is more
	mostFiles  = 16 << 10 // that connections and streams may take
)

// RoomNow returns the room under the present limit.
func RoomNow() Room { return roomOf(fileLimit()) }

// roomOf shares out files: a connection takes one, and a stream one more, of the output that it reads. For each four
// over the socket there may be one over the network.
func roomOf(limit int) Room {
	files := max(min(limit-max(leastFiles, limit/4), mostFiles), 16)
	socket := files * 16 / 35
	return Room{Socket: socket, Network: socket / 4, Streams: socket * 3 / 4}
}
