// Package pytorch holds the tests of the example next to it: train.py, which trains by PyTorch's DDP on gloo and CPUs,
// as run.sh starts it with torchrun, and jobs.yaml, which trains several at once. train.py says what it expects and
// prints.
//
// They need PyTorch for /usr/bin/python3 (Debian: apt-get install --no-install-recommends python3-torch, 650 MB) and
// skip where it is missing. The package has no code of its own.
package pytorch
