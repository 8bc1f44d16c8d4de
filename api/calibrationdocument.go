package api

// Calibration says how often what forecasts said came true: those of jobs as they were submitted, and those that
// were given by why, one a job and minute, the newest 100,000.
type Calibration struct {
	Schema   string        `json:"schema" doc:"trainyard.calibration/v1"`
	Kept     int           `json:"kept" doc:"forecasts"`
	Most     int           `json:"most" doc:"that are kept, the newest"`
	Since    string        `json:"since,omitempty" doc:"when the oldest was given"`
	Expected float64       `json:"expected" doc:"share of times inside their interval where forecasts are right"`
	Rows     []Calibrating `json:"rows" doc:"of each system and lead time with any, and of all"`
}

// Calibrating counts forecasts of starts or of ends. A forecast is judged once its time came, or its interval is over.
type Calibrating struct {
	Of      string  `json:"of" doc:"start or end"`
	System  string  `json:"system" doc:"that decided when it was given; nothing = all"`
	Lead    float64 `json:"lead_s" doc:"seconds to the middle at most; 0 = any"`
	Judged  int     `json:"judged"`
	Early   int     `json:"early" doc:"of those: before the interval"`
	Inside  int     `json:"inside" doc:"of those: in it, its ends included"`
	Late    int     `json:"late" doc:"of those: after it"`
	Pending int     `json:"pending" doc:"that cannot be judged yet"`
	Void    int     `json:"void" doc:"of which nothing comes: no interval was known, or the job was cancelled"`
	PIT     []int   `json:"pit" doc:"judged, up to the quantiles 0.1, 0.5, 0.9, and above; right is 1 4 4 1"`
}
