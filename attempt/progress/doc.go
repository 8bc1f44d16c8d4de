// Package progress reads how far a training has come from what it writes: lines made for us, or the log of a common
// trainer. It is pure: bytes in, readings out; no clock, no file, no goroutine.
//
// A Reader takes chunks, torn anywhere, of four sources: the output of a job, its errors, a file of JSON lines and the
// lines of a socket. From the last two it takes objects, as in
//
//	{"step": 120, "total": 90000, "loss": 2.1, "samples": 30720}
//
// and from all of them lines made for us (docs/guide/jobs.md has the words):
//
//	TRAINYARD step=120 total=90000 loss=2.1 samples=30720
//	TRAINYARD saved step=100
//
// In output it also knows the bars of tqdm and PyTorch Lightning (plain and rich), the dictionaries of the Hugging Face
// Trainer, and lines such as "Epoch 3/10, step 100/1000, loss 2.1". What it does not know it passes over, and so it
// does with a line longer than MaxLine. Nothing in a log makes it fail.
//
// Rate estimates a speed from counts and the times at which the caller read them.
//
// The package deliberately decides nothing: the caller decides whether steps that go back are a rollback, and what a
// step is worth.
package progress
