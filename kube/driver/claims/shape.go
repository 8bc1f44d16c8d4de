package claims

import (
	"fmt"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
)

// Selector returns the expression that selects exactly the devices of a driver that have these UUIDs.
func Selector(driver string, uuids []string) string {
	names := make([]string, len(uuids))
	for i, id := range uuids {
		names[i] = strconv.Quote(id)
	}
	return fmt.Sprintf("device.attributes[%q].uuid in [%s]", driver, strings.Join(names, ", "))
}

// Selected returns the UUIDs that a claim asks for; ok is false where it may be given anything else, or is not of the
// form in which Trainyard writes claims: one request of as many devices as its one Selector names.
func Selected(c *resourcev1.ResourceClaim) (uuids []string, ok bool) {
	d := &c.Spec.Devices
	if len(d.Requests) != 1 || len(d.Constraints) > 0 || len(d.Config) > 0 {
		return nil, false
	}
	r := d.Requests[0].Exactly
	if r == nil || len(d.Requests[0].FirstAvailable) > 0 || len(r.Selectors) != 1 || r.Selectors[0].CEL == nil ||
		r.AdminAccess != nil && *r.AdminAccess || r.AllocationMode != resourcev1.DeviceAllocationModeExactCount {
		return nil, false
	}
	uuids, ok = named(r.Selectors[0].CEL.Expression)
	return uuids, ok && int64(len(uuids)) == r.Count
}

// named returns the UUIDs that an expression names; ok is false where Selector did not write it.
func named(expression string) (uuids []string, ok bool) {
	rest, ok := strings.CutPrefix(expression, "device.attributes[")
	quoted, err := strconv.QuotedPrefix(rest)
	if !ok || err != nil {
		return nil, false
	}
	rest, ok = strings.CutPrefix(rest[len(quoted):], "].uuid in [")
	for ok && rest != "]" {
		one, bad := strconv.QuotedPrefix(rest)
		id, unread := strconv.Unquote(one)
		if bad != nil || unread != nil {
			return nil, false
		}
		uuids = append(uuids, id)
		rest = strings.TrimPrefix(rest[len(one):], ", ")
	}
	driver, err := strconv.Unquote(quoted)
	return uuids, ok && err == nil && expression == Selector(driver, uuids)
}
