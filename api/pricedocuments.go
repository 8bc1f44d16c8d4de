package api

// Price says what GPUs are worth under a system that puts a price on them, as of its last decision.
type Price struct {
	Schema string      `json:"schema" doc:"trainyard.price/v1"`
	System string      `json:"system"`
	Now    string      `json:"now" doc:"RFC 3339"`
	Prices []TypePrice `json:"prices" doc:"by type of GPU; none before the first decision"`
	Bids   []Bid       `json:"bids" doc:"of the jobs that took part in the last decision, by number"`
}

// TypePrice is what a GPU of a type is worth.
type TypePrice struct {
	Type  string  `json:"type,omitempty" doc:"name; nothing where types have none"`
	GPUs  int     `json:"gpus" doc:"of that type"`
	Price float64 `json:"price" doc:"seconds that jobs wait saved by each second of one; 0 = no job lacks one"`
}

// Bid is what GPUs are worth to a job.
type Bid struct {
	Job     int     `json:"job"`
	Price   float64 `json:"price" doc:"of a GPU of the type that it has or asks for"`
	Held    int     `json:"held" doc:"GPUs that it has"`
	Holds   float64 `json:"holds" doc:"what each of the last of them is worth to it; 1e308 = any price"`
	Wants   int     `json:"wants" doc:"GPUs that it asks for next, in all; 0 = no more than it has"`
	Worth   float64 `json:"worth" doc:"what each of those beyond the held is worth to it; 1e308 = any price"`
	LeftSec float64 `json:"left_s" doc:"seconds of work expected to be left, on the GPUs asked for"`
	Kept    bool    `json:"kept,omitempty" doc:"GPUs that become free are kept for it"`
	Text    string  `json:"text,omitempty" doc:"in sentences; with why alone"`
}
