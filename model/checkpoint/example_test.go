package checkpoint_test

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/trainyard/trainyard/model/checkpoint"
)

// A model with one large tensor and one small, as safetensors.
func Example() {
	header := `{"fc.weight":{"dtype":"F32","shape":[300,100],"data_offsets":[0,120000]},` +
		`"conv.weight":{"dtype":"F32","shape":[10000],"data_offsets":[120000,160000]}}`
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	file = append(append(file, header...), make([]byte, 160000)...)

	tensors, err := checkpoint.Read(bytes.NewReader(file), int64(len(file)), "model.safetensors")
	if err != nil {
		panic(err)
	}
	profile, err := checkpoint.Profile(tensors)
	if err != nil {
		panic(err)
	}
	for _, t := range tensors {
		fmt.Println(t.Name, t.Bytes)
	}
	fmt.Printf("skew %.2f\n", profile.Skew())
	// Output:
	// fc.weight 120000
	// conv.weight 40000
	// skew 0.75
}
