// What cel-go makes of expressions, as Kubernetes configures it. Reads a request a line and prints an answer a line:
// the type and the value in canonical form, or why there is none, and the cost.
package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"reflect"
	"strconv"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/ext"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

// request is an expression and the values of its variables.
type request struct {
	// Kubernetes tells whether the environment is that of a CustomResourceDefinition, or all of the language.
	Kubernetes bool              `json:"kubernetes"`
	Expression string            `json:"expression"`
	Types      map[string]string `json:"types"`
	Values     map[string]any    `json:"values"`
}

// answer is what became of it; which fields are there tells how far it got.
type answer struct {
	Panic    string  `json:"panic,omitempty"`
	Invalid  string  `json:"invalid,omitempty"`
	Type     string  `json:"type,omitempty"`
	Program  string  `json:"program,omitempty"`
	Error    string  `json:"error,omitempty"`
	Value    any     `json:"value,omitempty"`
	HasValue bool    `json:"has_value,omitempty"`
	Cost     *uint64 `json:"cost,omitempty"`
	Estimate *uint64 `json:"estimate,omitempty"`
}

var variableTypes = map[string]*cel.Type{
	"int": cel.IntType, "uint": cel.UintType, "double": cel.DoubleType, "bool": cel.BoolType, "string": cel.StringType,
	"bytes": cel.BytesType, "timestamp": cel.TimestampType, "duration": cel.DurationType, "dyn": cel.DynType,
	"list(int)": cel.ListType(cel.IntType), "list(string)": cel.ListType(cel.StringType),
	"list(double)": cel.ListType(cel.DoubleType), "list(list(int))": cel.ListType(cel.ListType(cel.IntType)),
	"list(dyn)": cel.ListType(cel.DynType), "map(string, int)": cel.MapType(cel.StringType, cel.IntType),
	"map(string, string)": cel.MapType(cel.StringType, cel.StringType), "map(string, dyn)": cel.MapType(cel.StringType, cel.DynType),
}

func main() {
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	output := bufio.NewWriter(os.Stdout)
	defer output.Flush()
	encoder := json.NewEncoder(output)
	encoder.SetEscapeHTML(false)
	environments := map[string]*cel.Env{}
	for {
		line, err := input.ReadBytes('\n')
		if len(line) == 0 && err != nil {
			return
		}
		var asked request
		must(json.Unmarshal(line, &asked))
		key := fmt.Sprint(asked.Kubernetes, asked.Types)
		if environments[key] == nil {
			environments[key] = newEnvironment(asked)
		}
		must(encoder.Encode(decide(environments[key], asked)))
		if input.Buffered() == 0 {
			must(output.Flush())
		}
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func newEnvironment(asked request) *cel.Env {
	var variables []cel.EnvOption
	for name, kind := range asked.Types {
		found, ok := variableTypes[kind]
		if !ok {
			panic("unknown type " + kind)
		}
		variables = append(variables, cel.Variable(name, found))
	}
	if !asked.Kubernetes {
		options := append(variables, cel.OptionalTypes(), cel.EnableIdentifierEscapeSyntax(), ext.Strings(), ext.Math(),
			ext.Encoders(), ext.Sets(), ext.Lists(), ext.Bindings(), ext.TwoVarComprehensions())
		env, err := cel.NewEnv(options...)
		must(err)
		return env
	}
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        variables,
	})
	must(err)
	env, err := set.Env(environment.NewExpressions)
	must(err)
	return env
}

func decide(env *cel.Env, asked request) (result answer) {
	defer func() {
		// cel-go's validator of literals panics on some optional entries
		if panicked := recover(); panicked != nil {
			result = answer{Panic: fmt.Sprint(panicked)}
		}
	}()
	ast, issues := env.Compile(asked.Expression)
	if issues != nil && issues.Err() != nil {
		return answer{Invalid: issues.String()}
	}
	result.Type = ast.OutputType().String()
	if cost, err := env.EstimateCost(ast, &library.CostEstimator{SizeEstimator: noSizes{}}); err == nil {
		result.Estimate = &cost.Max
	}
	options := []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost)}
	if asked.Kubernetes {
		options = []cel.ProgramOption{cel.CostLimit(celconfig.PerCallLimit), cel.CostTracking(&library.CostEstimator{SizeEstimator: noSizes{}})}
	}
	program, err := env.Program(ast, options...)
	if err != nil {
		result.Program = err.Error()
		return result
	}
	values := map[string]any{}
	for name, value := range asked.Values {
		values[name] = native(asked.Types[name], value)
	}
	value, details, err := program.Eval(values)
	if details != nil {
		result.Cost = details.ActualCost()
	}
	if err != nil {
		result.Error = err.Error()
		return result
	}
	result.Value, result.HasValue = canonical(value), true
	return result
}

// noSizes knows no sizes of variables.
type noSizes struct{}

func (noSizes) EstimateSize(checker.AstNode) *checker.SizeEstimate { return nil }

func (noSizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

// native reads a variable's value; integers and numbers are texts, so that none is rounded on its way.
func native(kind string, value any) any {
	switch kind {
	case "int":
		number, err := strconv.ParseInt(value.(string), 10, 64)
		must(err)
		return number
	case "uint":
		number, err := strconv.ParseUint(value.(string), 10, 64)
		must(err)
		return number
	case "double":
		number, err := strconv.ParseFloat(value.(string), 64)
		must(err)
		return number
	case "bytes":
		bytes, err := hex.DecodeString(value.(string))
		must(err)
		return bytes
	case "timestamp":
		point, err := time.Parse(time.RFC3339Nano, value.(string))
		must(err)
		return point
	case "duration":
		duration, err := time.ParseDuration(value.(string))
		must(err)
		return duration
	case "list(int)", "list(double)", "list(string)":
		return list(value, kind[len("list("):len(kind)-1])
	case "list(list(int))":
		return list(value, "list(int)")
	case "map(string, int)":
		entries := map[string]any{}
		for key, inner := range value.(map[string]any) {
			entries[key] = native("int", inner)
		}
		return entries
	case "dyn", "list(dyn)", "map(string, dyn)":
		return integers(value)
	}
	return value
}

func list(value any, kind string) []any {
	items := []any{}
	for _, item := range value.([]any) {
		items = append(items, native(kind, item))
	}
	return items
}

// integers makes whole numbers integers, as Kubernetes reads JSON.
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
		if value == math.Trunc(value) && math.Abs(value) < 1<<53 {
			return int64(value)
		}
	}
	return value
}

func tagged(tag string, value any) map[string]any { return map[string]any{tag: value} }

func canonical(value ref.Val) any {
	switch value := value.(type) {
	case types.Null:
		return nil
	case types.Bool:
		return bool(value)
	case types.Int:
		return tagged("int", strconv.FormatInt(int64(value), 10))
	case types.Uint:
		return tagged("uint", strconv.FormatUint(uint64(value), 10))
	case types.Double:
		bits := math.Float64bits(float64(value))
		if math.IsNaN(float64(value)) {
			bits = 0x7ff8000000000000
		}
		return tagged("double", strconv.FormatUint(bits, 10))
	case types.String:
		return string(value)
	case types.Bytes:
		return tagged("bytes", hex.EncodeToString(value))
	case types.Duration:
		return tagged("duration", strconv.FormatInt(value.Nanoseconds(), 10))
	case types.Timestamp:
		return tagged("timestamp", fmt.Sprint(value.Unix(), " ", value.Nanosecond()))
	case *types.Optional:
		if value.HasValue() {
			return tagged("optional", []any{canonical(value.GetValue())})
		}
		return tagged("optional", []any{})
	case ref.Type:
		return tagged("type", value.TypeName())
	case traits.Mapper:
		entries := []any{}
		for iterator := value.Iterator(); iterator.HasNext() == types.True; {
			key := iterator.Next()
			entries = append(entries, []any{canonical(key), canonical(value.Get(key))})
		}
		return tagged("map", entries)
	case traits.Lister:
		items := []any{}
		for iterator := value.Iterator(); iterator.HasNext() == types.True; {
			items = append(items, canonical(iterator.Next()))
		}
		return items
	}
	if text, err := value.ConvertToNative(reflect.TypeFor[string]()); err == nil {
		return map[string]any{"opaque": value.Type().TypeName(), "text": text}
	}
	return tagged("opaque", value.Type().TypeName())
}
