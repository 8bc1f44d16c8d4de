package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
)

// Table returns how the jobs stand as Jobs does, but of each only what WriteTable writes, and neither their system nor
// how many fit: of many jobs it takes a fraction of the time. A manager from before there was that is asked for all.
func (c *Client) Table(ctx context.Context, f Filter) (doc Jobs, err error) {
	err = c.again(ctx, func() error {
		return c.asked(ctx, http.MethodGet, "/v1/table?"+f.query().Encode(), nil, nil,
			func(resp *http.Response) (err error) {
				doc.Unit, doc.Now = resp.Header.Get(UnitHeader), resp.Header.Get(NowHeader)
				listed, _ := strconv.Atoi(resp.Header.Get(ListedHeader)) // only to allot
				doc.Jobs, err = ReadTable(io.LimitReader(resp.Body, maxAnswer), listed)
				return err
			})
	})
	if p := (*Problem)(nil); errors.As(err, &p) && p.Status == http.StatusNotFound {
		return c.Jobs(ctx, f)
	}
	return doc, err
}
