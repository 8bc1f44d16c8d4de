package controller

import (
	"reflect"
	"strings"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
)

// statusFields are the names of the fields of a job's status.
var statusFields = fieldNames(reflect.TypeFor[v1alpha1.TrainingJobStatus]())

func fieldNames(t reflect.Type) (names []string) {
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}
