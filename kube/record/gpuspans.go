package record

import (
	"fmt"
	"strconv"
	"strings"
)

// mostGPUs bounds how many GPUs a list of spans may name: a job has 4,096 at most.
const mostGPUs = 1 << 14

// spansOf writes GPUs, as node/index, as one entry for those of a node that follow each other: node/0-3,6. What does
// not look like a GPU stays as it is.
func spansOf(list []string) (spans []string) {
	last, to := "", -1 // what the last entry ends with
	for _, name := range list {
		node, index, _ := strings.Cut(name, "/")
		i, err := strconv.Atoi(index)
		if err != nil || i < 0 || strconv.Itoa(i) != index {
			spans, last = append(spans, name), ""
			continue
		}
		end := len(spans) - 1
		switch {
		case node != last || last == "":
			spans = append(spans, name)
			last, to = node, i
		case i == to+1:
			spans[end] = strings.TrimSuffix(spans[end], "-"+strconv.Itoa(to)) + "-" + index
			to = i
		default:
			spans[end] += "," + index
			to = i
		}
	}
	return spans
}

// gpusOf returns the GPUs that spans name, as node/index. An error says that they are more than any job has.
func gpusOf(spans []string) (list []string, err error) {
	for _, span := range spans {
		node, set, _ := strings.Cut(span, "/")
		var of []string
		for part := range strings.SplitSeq(set, ",") {
			first, last, isRange := strings.Cut(part, "-")
			i, bad := strconv.Atoi(first)
			k := i
			if isRange && bad == nil {
				k, bad = strconv.Atoi(last)
			}
			written := first + "-" + last
			if !isRange {
				written = first + "-" + first
			}
			if bad != nil || i < 0 || k < i || fmt.Sprintf("%d-%d", i, k) != written { // no GPU is called so
				of = []string{span}
				break
			}
			if k-i >= mostGPUs {
				return nil, fmt.Errorf("%d GPUs of node %s, want at most %d", k-i+1, node, mostGPUs)
			}
			for ; i <= k; i++ {
				of = append(of, node+"/"+strconv.Itoa(i))
			}
		}
		if list = append(list, of...); len(list) > mostGPUs {
			return nil, fmt.Errorf("more than %d GPUs", mostGPUs)
		}
	}
	return list, nil
}
