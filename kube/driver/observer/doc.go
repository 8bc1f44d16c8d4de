// Package observer says what of the cluster is to be looked at, and runs the looks.
//
// Whatever changes in the cache is a Key in a Queue. An Observer takes the keys, has each object looked at, kind by
// kind, and collects what the looks found: events for the engine, and keys of objects to look at again. A look that
// finds nothing new reports nothing, so keys may come late, twice or together.
package observer
