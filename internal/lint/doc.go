// Package lint checks, as tests, how the source and the documents of all modules are written: width of lines,
// complexity of functions, size of types, words, names of files, names that documents cite, exported names
// without a comment, code that nothing reaches, and code that stands twice.
//
// Each lint has a ceiling in ceilings.txt: the number of findings that the tree had when the number was last lowered. A
// test fails when there are more. It never fails when there are fewer; to lower the numbers to what is there:
//
//	go test ./internal/lint -rewrite
//
// To see the findings of one lint:
//
//	go test -v ./internal/lint -run TestWords
//
// A finding that must stay has a row with its reason in exceptions_test.go, and does not count.
//
// The package knows nothing of which package may import which: that is internal/layertest.
package lint
