// Package python holds the tests of the Python package next to it: src/trainyard, which makes a training safe to stop.
//
// They need Python with PyTorch, mypy and hatchling at /usr/bin/python3 (Debian: python3-torch, mypy and
// python3-hatchling) and skip where those are missing. The package has no code of its own.
package python
