// Package report packs what was recorded of runs into one closed HTML file: the page of package web, and the data that
// it shows.
//
// The data is one JSON document, the head, and columns: tables of numbers by column, packed as column writes and
// page/columns.ts reads (trainyard.columns/v1). Names are data there, never markup. A browser that opens the file asks
// no one for anything, and runs no other script than ours: the file's Content-Security-Policy names the hash of each.
package report
