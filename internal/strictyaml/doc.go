// Package strictyaml reads small YAML files strictly: what is unknown, given twice, of a wrong type or out of range is
// an error that says where it is, what it is and what is wanted, with the word that was probably meant:
//
//	cluster: lab.yaml:4:5: unknown key "gpu" (did you mean "gpus"?), want one of count, gpus, type, ...
//
// A Reader goes through the tree of one document; a caller says with Mapping, Each and the readers of values what may
// stand where. A file is one document in UTF-8 of plain mappings, lists, text and decimal numbers; anchors, aliases,
// tags, merge keys and directives are errors, and so is whatever would make reading cost more than in proportion to
// the size of the file.
//
// The package deliberately knows nothing of what is read, and decodes into no struct by reflection: that would lose the
// positions.
package strictyaml
