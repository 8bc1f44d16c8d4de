// Package power says what GPUs draw and what that costs: the power of a node by the use of its GPUs (Node), what each
// job on it answers for (Node.Draw), what a power cap saves and costs (Caps), and prices and carbon by the hour
// (Series).
//
// Sources: Fan, Weber and Barroso, "Power Provisioning for a Warehouse-sized Computer", ISCA'07 (the shape of the
// curve); Haghshenas and Hashemi, "EaCO", arXiv 2412.08294, tables 1 to 4 (the defaults are fitted to them); You, Chung
// and Chowdhury, "Zeus", NSDI'23 (power caps).
//
// The package deliberately neither meters nor decides: readings come with events, and who sleeps or is capped is for a
// system to decide.
package power
