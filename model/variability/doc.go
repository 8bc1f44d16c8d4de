// Package variability is the mathematics behind PAL (SC'24, arXiv 2408.11919): GPUs of one type differ in speed, by how
// much depends on what they run, and a gang is as slow as its slowest GPU.
//
//   - Scores is a table of PM scores, one for each application class and GPU: 1 is the median GPU, larger is slower.
//     ReadScores and WriteCSV are its file.
//   - Rule puts the scores of a class into bins, so that a policy compares few values.
//   - Measure makes scores from repeated runs, with what is known of their errors; ReadRuns reads published
//     measurements and Join brings the classes together.
//   - Tracker follows GPUs while they work, and keeps what a GPU is apart from what has just befallen it.
//   - Classifier, Published and Scores.ClassOf say to which class an application belongs.
//   - Locality is the slow-down of a gang by the distance between its GPUs.
//
// The package places nothing, measures nothing and knows no cluster: a GPU is a name and a number in a table. Classes
// are ordered from the most sensitive on; an application of which nothing is known is taken to be of the first.
//
// Where only a statement of the released code (hal-uw/blox-pal, tag artifact-v1.4) is given as source, the paper's text
// was not at hand.
package variability
