package api

// HostName is what clients call the manager at the other end of a unix socket.
const HostName = "trainyard"
