// Package skew is the model profile behind Tiresias's placement (Gu et al., NSDI'19, section 3): how unevenly the bytes
// of a model are spread over its tensors, and so whether a job suffers when its GPUs are spread over many nodes.
//
// A job whose skew is above a limit is consolidated on as few nodes as possible; any other takes what GPUs there are.
//
//   - Profile is the tensors of a model; ParseLog takes one from a log of tensors or of network messages.
//   - Of knows the models whose tensors were published.
//   - SpreadFactor is our model of the slow-down of a spread gang.
//   - Limit fits the limit to what spread jobs turned out to suffer.
//
// The package intercepts no network calls and places nothing. Sizes are in MB of 2^20 bytes, as in the published lists.
package skew
