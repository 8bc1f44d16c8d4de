// Trainer trains a small classifier, the way a job of a cluster does: it saves when asked to stop, resumes by itself,
// and runs on as many workers as it is given. It shows what a training program does to be scheduled well, and the tests
// of drivers run it as a real job whose result says whether any work was lost, repeated or done twice.
//
//	trainer [flags]          (trainer -h lists them)
//
// The model is a perceptron with one hidden layer, trained by mini-batch SGD on generated data. Each of the width
// workers is a goroutine that takes its share of the global batch; their gradients are added in the order of the
// workers. Therefore, at one width, a run that was stopped, killed and resumed any number of times ends with exactly
// the weights, and the hash, of one that was left alone. Another width may load the checkpoint; its sums round
// otherwise.
//
// # Environment
//
//	TRAINYARD_NUM_GPUS        width, the number of workers (default 1)
//	TRAINYARD_BATCH_GLOBAL    samples per step over all workers (default --batch)
//	TRAINYARD_LR_SCALE        factor on the learning rate (default 1)
//	TRAINYARD_CHECKPOINT_DIR  where checkpoints are saved and looked for (default --checkpoint-dir; without
//	                          either, none)
//	TRAINER_LEDGER            folder of locks and of ledger.log, see ledger.go (default none)
//	TRAINYARD_JOB_ID, TRAINYARD_ATTEMPT, TRAINYARD_DEVICES
//	                          identity and comma-separated devices, for the ledger only
//
// A variable that is empty counts as not set.
//
// # Output
//
//	TRAINYARD step=120 total=1000 loss=0.83 samples=30720 epoch=2   at the start, every --report-every steps, at the end
//	TRAINYARD saved step=100                                       a checkpoint is on disk
//	TRAINYARD preempted step=120 signal=terminated                 the last line of a run that was asked to stop
//	{"steps":1000,"loss":...,"hash":"...","accuracy":...}           the result, also in --out
//	TRAINYARD done steps=1000 loss=0.31 hash=...                   the last line of a run that finished
//
// The loss is the mean cross-entropy over 256 samples that are never trained on; the accuracy in the result is the
// share of 10,000 others that are reported right. Messages go to stderr.
//
// # Exit codes
//
//	0    trained to the end
//	1    an error: a file, another run's checkpoint, or a loss that is no longer finite
//	2    wrong flags or environment
//	3    --fail-at or --fail-when
//	75   SIGTERM or SIGINT came, and the work is saved (EX_TEMPFAIL of sysexits.h)
//	99   the ledger shows that the job or one of its devices is in use already
//	143  SIGTERM came and there is no folder to save in (130 for SIGINT)
package main
