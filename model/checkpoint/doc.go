// Package checkpoint reads which tensors a model has, and how large they are, from the headers of a checkpoint:
// safetensors, or a file of torch.save. So the skew of a model (package skew) is known without asking its user, and
// before its job is placed for the second time.
//
// Nothing of a file is executed. The pickle in a file of torch.save is interpreted as far as tensors, dictionaries and
// lists go; a call of anything else has no effect and gives an object that nothing is known of. Of the tensors
// themselves no byte is read.
//
// Files are hostile until proved otherwise. Sizes are checked before anything is allocated, nothing is decompressed,
// what is nested has a depth, what is counted has a limit, and each tensor must lie within the file, and apart from the
// others where the format says so. Of a file that breaks a rule there is one error, which says where:
//
//	checkpoint: model.safetensors: tensor "a": data 0..16 of F32 [3], want 12 bytes
//
// The package opens no file: it is given an io.ReaderAt. It knows the optimiser's share of a training checkpoint by the
// usual names of keys, and leaves it out.
package checkpoint
