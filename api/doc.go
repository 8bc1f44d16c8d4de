// Package api is the contract between a host and the programs that use it: documents, problem codes, limits, and a
// client. It imports the standard library alone, so a program that uses it links neither engine nor server. Package
// api/server serves what is described here, and publishes it as OpenAPI. The transport is HTTP.
//
// A document has a schema field where it stands alone; fields are only ever added to it.
package api
