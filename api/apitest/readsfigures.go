package apitest

import (
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
)

// users checks that the GPU-hours of all users are those that their attempts held, as losses has them.
func (s pastSuite) users(t *testing.T) {
	doc, err := api.FiguresOf(s.Client).Users(t.Context(), api.Range{})
	if err != nil {
		t.Fatal(err)
	}
	sum, share := 0.0, 0.0
	for i, u := range doc.Users {
		sum, share = sum+u.Hours, share+u.Share
		if i > 0 && doc.Users[i-1].Hours < u.Hours {
			t.Errorf("%s behind %s, who held less", doc.Users[i-1].User, u.User)
		}
	}
	if doc.Schema != "trainyard.users/v1" || doc.Hours <= 0 || math.Abs(sum-doc.Hours) > 1e-9 ||
		math.Abs(share-1) > 1e-9 {
		t.Errorf("%+v: users sum to %v GPU-hours and %v of all", doc, sum, share)
	}
	early, err := api.FiguresOf(s.Client).Users(t.Context(), api.Range{To: time.Unix(0, 0)})
	if err != nil || early.Hours > 0 || len(early.Users) > 0 {
		t.Errorf("before anything happened: %+v, %v", early, err)
	}
	s.ranges(t, "/v1/users?")
}

// usage checks what jobs used, by whatever rows are, and what is refused.
func (s pastSuite) usage(t *testing.T) {
	f := api.FiguresOf(s.Client)
	for _, by := range [][]string{nil, {"day"}, {"group", "user"}, {"model"}, {"job"}, api.UsageWords} {
		s.usageBy(t, by)
	}
	early, err := f.Usage(t.Context(), api.UsageQuestion{Range: api.Range{To: time.Unix(0, 0)}})
	if err != nil || len(early.Rows) > 0 {
		t.Errorf("before anything happened: %+v, %v", early, err)
	}
	for _, q := range []string{"by=shoe", "by=user,", "tz=Mars/Olympus", "tz=Local", "tz=../../etc/passwd",
		"price=NaN", "kwh=Inf"} {
		s.refused(t, http.MethodGet, "/v1/usage?"+q, "", "malformed", http.StatusBadRequest, api.ErrMalformed)
	}
	s.ranges(t, "/v1/usage?by=job&")
}

// usageBy checks that the parts of each row sum to what was held, and the rows to what attempts held as users has it.
func (s pastSuite) usageBy(t *testing.T, by []string) {
	t.Helper()
	f := api.FiguresOf(s.Client)
	doc, err := f.Usage(t.Context(), api.UsageQuestion{By: by, Price: 2, Zone: "Asia/Kathmandu"})
	if err != nil {
		t.Fatal(err)
	}
	held, cost := 0.0, 0.0
	for _, r := range doc.Rows {
		if math.Abs(r.Useful+r.Redone+r.ComingUp+r.Stopping-r.Held) > 1e-9 || r.Jobs < 1 || r.Wait < 0 {
			t.Errorf("by %v: %+v", by, r)
		}
		held, cost = held+r.Held, cost+r.Cost
	}
	users, err := f.Users(t.Context(), api.Range{}) // time goes on in between
	if err != nil {
		t.Fatal(err)
	}
	if doc.Schema != "trainyard.usage/v1" || len(doc.Rows) == 0 || held <= 0 || held > users.Hours+1e-9 ||
		math.Abs(cost-2*held) > 1e-9 {
		t.Errorf("by %v: %+v, rows sum to %v GPU-hours of %v, %v money", by, doc, held, users.Hours, cost)
	}
}

// ranges checks how spans are refused that are none.
func (s pastSuite) ranges(t *testing.T, path string) {
	t.Helper()
	for _, q := range []string{"from=yesterday", "to=1e9", "from=2099-01-01T00:00:00Z"} {
		s.refused(t, http.MethodGet, path+q, "", "malformed", http.StatusBadRequest, api.ErrMalformed)
	}
	now := url.QueryEscape(time.Now().UTC().Format(time.RFC3339Nano))
	s.refused(t, http.MethodGet, path+"from="+now+"&to=2001-01-01T00:00:00Z", "", "malformed", http.StatusBadRequest,
		api.ErrMalformed)
}

// series checks that a figure of so many points has no more, that its points do not overlap, and what is refused.
func (s pastSuite) series(t *testing.T) {
	for _, name := range []string{"held", "busy", "gpus", "queue", "asked", "watts", "kwh", "dollars_per_hour",
		"cost"} {
		s.points(t, name)
	}
	held, err := api.FiguresOf(s.Client).Series(t.Context(), "held", api.Range{}, 2000)
	if err != nil || len(held.Points) == 0 || held.Points[len(held.Points)-1].High < float64(s.Width) {
		t.Errorf("%+v, %v: want %d GPUs held at the end", held, err, s.Width)
	}
	s.refused(t, http.MethodGet, "/v1/series?name=heat", "", "malformed", http.StatusBadRequest, api.ErrMalformed)
	s.refused(t, http.MethodGet, "/v1/series", "", "malformed", http.StatusBadRequest, api.ErrMalformed)
	for _, points := range []string{"0", "-1", "2001", "1000000000", "many"} {
		resp, bad := s.Client.Do(t.Context(), http.MethodGet, "/v1/series?name=held&points="+points, nil, nil)
		if bad == nil {
			_ = resp.Body.Close()
			t.Errorf("%s points: answered, want a problem", points)
		}
	}
	s.ranges(t, "/v1/series?name=held&")
}

// points checks seven points of a figure.
func (s pastSuite) points(t *testing.T, name string) {
	t.Helper()
	doc, err := api.FiguresOf(s.Client).Series(t.Context(), name, api.Range{}, 7)
	if err != nil {
		t.Fatal(err)
	}
	if doc.Schema != "trainyard.series/v1" || doc.Name != name || doc.Unit == "" || len(doc.Points) > 7 ||
		doc.Known != (len(doc.Points) > 0) {
		t.Errorf("%+v, want at most 7 points", doc)
	}
	for i, p := range doc.Points {
		if p.Low > p.Mean+1e-9 || p.Mean > p.High+1e-9 || i > 0 && p.At <= doc.Points[i-1].At {
			t.Errorf("%s, point %d: %+v", name, i, p)
		}
	}
}

// forecast checks that all jobs that are not done are there, and their bands in order.
func (s pastSuite) forecast(t *testing.T) {
	doc, err := api.FiguresOf(s.Client).Forecast(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if doc.Schema != "trainyard.forecast/v1" || doc.At == "" || doc.Busy == nil || doc.Queue == nil {
		t.Errorf("%+v", doc)
	}
	found := map[string]bool{}
	for _, j := range doc.Jobs {
		found[j.Ref], found[j.Name], found[strconv.Itoa(j.ID)] = true, true, true
		if j.State == "done" || j.State == "running" && j.Start != nil {
			t.Errorf("%+v, want one that is not done, and no start of one that runs", j)
		}
	}
	if !found[s.Running] || !found[s.Waiting] {
		t.Errorf("%+v lacks %s or %s", doc.Jobs, s.Running, s.Waiting)
	}
	for _, b := range slices.Concat(doc.Busy, doc.Queue) {
		if b.Low > b.Median || b.Median > b.High {
			t.Errorf("band %+v", b)
		}
	}
}

// remedy checks how one is refused that does not help.
func (s pastSuite) remedy(t *testing.T) {
	path := "/v1/jobs/" + url.PathEscape(s.Waiting) + "/remedy"
	s.refused(t, http.MethodPost, path, `{"id":"gpus:99999"}`, "no-help", http.StatusConflict, api.ErrNoHelp)
	s.refused(t, http.MethodPost, "/v1/jobs/no-such/remedy", `{"id":"gpus:1"}`, "no-job", http.StatusNotFound,
		api.ErrNoJob)
}

// whatif checks how what is no question is refused.
func (s pastSuite) whatif(t *testing.T) {
	s.refused(t, http.MethodPost, "/v1/whatif", `{"systems":["no-such"]}`, "malformed", http.StatusBadRequest,
		api.ErrMalformed)
	s.refused(t, http.MethodGet, "/v1/whatif/none", "", "no-whatif", http.StatusNotFound, api.ErrNoWhatIf)
	s.refused(t, http.MethodPost, "/v1/whatif/none/cancel", "", "no-whatif", http.StatusNotFound, api.ErrNoWhatIf)
}

// calibration checks that rows of all systems are there, and add up.
func (s pastSuite) price(t *testing.T) {
	doc, err := api.FiguresOf(s.Client).Price(t.Context())
	if err != nil || doc.Schema != "trainyard.price/v1" || len(doc.Prices) == 0 {
		t.Errorf("%+v, %v, want a price of each type", doc, err)
	}
}

func (s pastSuite) calibration(t *testing.T) {
	var doc api.Calibration
	s.document(t, "/v1/calibration", &doc)
	if doc.Schema != "trainyard.calibration/v1" || doc.Kept > doc.Most || len(doc.Rows) < 2 {
		t.Errorf("%+v, want starts and ends of all systems", doc)
	}
	for _, r := range doc.Rows {
		sum := 0
		for _, n := range r.PIT {
			sum += n
		}
		if sum != r.Judged || r.Early+r.Inside+r.Late != r.Judged {
			t.Errorf("%+v does not add up", r)
		}
	}
}
