// Package admission knows of which jobs the API server takes the objects. It asks before a job may be given GPUs: what
// a quota, a rule or a webhook refuses is not to cost others theirs. Jobs of a namespace that ask for the same share
// an answer.
package admission
