// What Go does to the same input: apiextensions' pruning, defaulting and validation of a custom resource, and an apply
// by apimachinery's field manager, which is structured-merge-diff. Prints `NAME NANOSECONDS ALLOCATIONS BYTES`, an operation each.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
)

func main() {
	directory := os.Args[1]
	report("resource", resource(directory))
	report("apply", apply(directory))
}

func report(name string, result testing.BenchmarkResult) {
	fmt.Println(name, result.NsPerOp(), result.AllocsPerOp(), result.AllocedBytesPerOp())
}

func read(directory, name string, into any) {
	bytes, err := os.ReadFile(filepath.Join(directory, name))
	must(err)
	must(json.Unmarshal(bytes, into))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func resource(directory string) testing.BenchmarkResult {
	var external apiextensionsv1.JSONSchemaProps
	read(directory, "schema.json", &external)
	var internal apiextensions.JSONSchemaProps
	must(apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&external, &internal, nil))
	structural, err := structuralschema.NewStructural(&internal)
	must(err)
	validator, _, err := validation.NewSchemaValidator(&internal)
	must(err)
	var object unstructured.Unstructured
	read(directory, "resource.json", &object.Object)
	object.Object = runtime.DeepCopyJSON(integers(object.Object).(map[string]any))
	return testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			copied := runtime.DeepCopyJSON(object.Object)
			pruning.Prune(copied, structural, true)
			defaulting.Default(copied, structural)
			errs := validation.ValidateCustomResource(nil, copied, validator)
			errs = append(errs, listtype.ValidateListSetsAndMaps(nil, structural, copied)...)
			if len(errs) > 0 {
				panic(errs.ToAggregate())
			}
		}
	})
}

// integers makes whole numbers what apimachinery's own decoder makes of them.
func integers(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			value[key] = integers(inner)
		}
	case []any:
		for index, inner := range value {
			value[index] = integers(inner)
		}
	case float64:
		return int64(value)
	}
	return value
}

func apply(directory string) testing.BenchmarkResult {
	var applies map[string]map[string]any
	read(directory, "applies.json", &applies)
	kind := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	manager, err := managedfields.NewDefaultFieldManager(applyconfigurations.NewTypeConverter(scheme.Scheme), scheme.Scheme,
		scheme.Scheme, scheme.Scheme, kind, kind.GroupVersion(), "", nil)
	must(err)
	live, err := scheme.Scheme.New(kind)
	must(err)
	live.GetObjectKind().SetGroupVersionKind(kind)
	config := func(name string) runtime.Object {
		return &unstructured.Unstructured{Object: integers(applies[name]).(map[string]any)}
	}
	for _, step := range []struct{ config, manager string }{{"deploy-1", "deploy"}, {"mesh", "mesh"}, {"scaler", "scaler"}} {
		live, err = manager.Apply(live, config(step.config), step.manager, false)
		must(err)
	}
	change := config("deploy-2")
	return testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := manager.Apply(live, change, "deploy", false)
			must(err)
		}
	})
}
