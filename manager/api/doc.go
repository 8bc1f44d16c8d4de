// Package api is how everybody but the manager's own process reaches a manager: documents, routes, a server over a Manager and
// a client. Routes and documents are published as OpenAPI by the server itself; what is read is bounded, what is asked for is
// allowed to somebody by name or refused. The transport is HTTP, by default over a unix socket in the state folder.
//
// A document has a schema field where it stands alone; fields are only ever added to it.
package api
