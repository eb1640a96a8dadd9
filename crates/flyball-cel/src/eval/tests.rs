//! Expressions with what they are worth. The right-hand side is an expression too, so that a new case adds no Rust.

use crate::{Bindings, Env, Library, Type, Value};
use serde_json::json;

fn env() -> Env {
    let libraries = [
        Library::Standard,
        Library::Optional(2),
        Library::TwoVariables,
        Library::Bindings,
    ];
    Env::new(libraries).variable("self", Type::Dyn)
}

fn object() -> serde_json::Value {
    json!({"name": "web", "replicas": 3, "ratio": 0.5, "tags": ["a", "b"], "nested": {"on": true, "none": null}})
}

/// Expressions, and others that are worth the same.
const VALUES: &[(&str, &str)] = &[
    ("1 + 2 * 3 - 4", "3"),
    ("7 / 2 == 3 && 7 % 2 == 1 && -7 / 2 == -3", "true"),
    ("1u + 2u", "3u"),
    ("1.5 + 0.5", "2.0"),
    ("'a' + 'b'", "'ab'"),
    ("b'a' + b'b'", "b'ab'"),
    ("[1] + [2, 3]", "[1, 2, 3]"),
    ("size('héllo')", "5"),
    ("'héllo'.size() + size([1, 2]) + size({1: 2}) + size(b'héllo')", "5 + 2 + 1 + 6"),
    ("dyn(1) == 1.0 && dyn(1u) == 1 && 1 < dyn(2u)", "true"),
    ("1 in [1, 2] && !(3 in [1, 2]) && 'a' in {'a': 1} && dyn(2.0) in [1, 2]", "true"),
    ("self.name", "'web'"),
    ("self.nested.on ? self.tags[1] : 'x'", "'b'"),
    ("has(self.name) && !has(self.missing) && has(self.nested.none)", "true"),
    ("self.tags.all(t, t.size() == 1)", "true"),
    ("self.tags.exists(t, t == 'b')", "true"),
    ("self.tags.exists_one(t, t == 'b')", "true"),
    ("self.tags.map(t, t + t)", "['aa', 'bb']"),
    ("[1, 2, 3, 4].map(x, x % 2 == 0, x * x)", "[4, 16]"),
    ("[1, 2, 3, 4].filter(x, x > 2)", "[3, 4]"),
    ("{'a': 1, 'b': 2}.map(k, k)", "['a', 'b']"),
    ("[[1], [2, 3]].map(l, l.map(x, x + 1))", "[[2], [3, 4]]"),
    ("[1, 2].exists(x, x / 0 == 1 || x == 2)", "true"),
    ("[0, 1].all(x, 1 / x == 1 || x == 0)", "true"),
    ("1 / 0 == 1 || true", "true"),
    ("false && 1 / 0 == 1", "false"),
    ("(1 / 0 == 1 ? true : false) || true", "true"),
    ("self.?name.orValue('none')", "'web'"),
    ("self.?missing.orValue('none')", "'none'"),
    ("self.?missing.deeper.hasValue()", "false"),
    ("self.nested.?on", "optional.of(true)"),
    ("self.tags[?5].or(optional.of('c')).value()", "'c'"),
    ("[1, ?optional.none(), ?optional.of(2)]", "[1, 2]"),
    ("{'a': 1, ?'b': optional.none(), ?'c': optional.of(3)}", "{'a': 1, 'c': 3}"),
    ("self.?name.optMap(n, n + '!').value()", "'web!'"),
    ("self.?nested.optFlatMap(n, n.?on).value()", "true"),
    ("optional.ofNonZeroValue('').hasValue() || has(self.?nested.on)", "true"),
    ("cel.bind(x, self.replicas * 2, x + x)", "12"),
    ("cel.bind(x, 1 / 0, true)", "true"),
    ("[10, 20].transformList(i, v, i + v)", "[10, 21]"),
    ("{'a': 1}.transformMap(k, v, v + 1)", "{'a': 2}"),
    ("{'a': 1, 'b': 2}.transformMapEntry(k, v, v > 1, {v: k})", "{2: 'b'}"),
    ("[1, 2].all(i, v, v == i + 1)", "true"),
    (
        "type(1) == int && type('a') == string && type([]) == list && type(type(1)) == type",
        "true",
    ),
    ("int('42') + int(3.9) + int(4u)", "49"),
    ("string(1.0) + string(true) + string(12u) + string(b'x')", "'1true12x'"),
    ("string(duration('1h'))", "'3600s'"),
    ("duration('1h') + duration('1m')", "duration('61m')"),
    ("timestamp('2020-01-01T00:00:00Z') + duration('24h')", "timestamp('2020-01-02T00:00:00Z')"),
    ("timestamp('2020-01-02T00:00:00Z') - timestamp('2020-01-01T00:00:00Z')", "duration('24h')"),
    ("timestamp('2009-02-13T23:31:30Z').getHours('America/New_York')", "18"),
    ("timestamp('2009-02-13T23:31:30Z').getDayOfWeek()", "5"),
    (
        "'abc'.startsWith('ab') && 'abc'.endsWith('bc') && 'abc'.contains('b') && 'abc'.matches('^a.c$')",
        "true",
    ),
    ("{1: 'a', 'b': 2}[1]", "'a'"),
    ("{1u: 'a'}[dyn(1)]", "'a'"),
    ("[1, 2, 3][dyn(1.0)]", "2"),
    ("'\\u00e9' == 'é' && \"\"\"a\nb\"\"\" == 'a\\nb' && r'\\n'.size() == 2", "true"),
    ("!!true && --1 == 1 && -(-5) == 5", "true"),
    ("[true].exists(x, x) ? 'y' : 'n'", "'y'"),
    ("null == self.nested.none && self.nested != null", "true"),
    ("[1, 2] == [1.0, 2u].map(x, x)", "true"),
    ("self == self && self.tags == ['a', 'b']", "true"),
];

#[test]
fn expressions_are_worth_what_they_should_be() {
    let (env, object) = (env(), object());
    for (text, expected) in VALUES {
        let program = env.compile(text).unwrap_or_else(|error| panic!("{text}\n{error}"));
        let wanted = env.compile(expected).expect(expected);
        let bindings = Bindings::new().bind("self", Value::json(&object));
        let value = program.evaluate(&bindings).unwrap_or_else(|error| panic!("{text}: {error}"));
        let wanted = wanted.evaluate(&Bindings::new()).expect(expected);
        assert_eq!(value, wanted, "{text}");
        assert_eq!(value.type_of().runtime_name(), wanted.type_of().runtime_name(), "{text}");
    }
}

#[test]
fn errors_are_worded_as_cel_go_words_them() {
    let cases = [
        ("1 / 0", "division by zero"),
        ("1 % 0", "modulus by zero"),
        ("9223372036854775807 + 1", "integer overflow"),
        ("0u - 1u", "unsigned integer overflow"),
        ("self.missing", "no such key: missing"),
        ("self.missing.deeper", "no such key: missing"),
        ("self.tags[3]", "index out of bounds: 3"),
        ("{'a': 1}['b']", "no such key: b"),
        ("self.name.first", "no such key: first"),
        ("dyn('a') + 1", "no such overload"),
        ("dyn(null) + 1", "no such overload: _+_"),
        ("size(dyn(1))", "no such overload: size"),
        ("self.name && true", "no such overload"),
        ("optional.none().value()", "optional.none() dereference"),
        ("int(self.name)", "type conversion error from 'string' to 'int'"),
        ("timestamp(self.replicas + 9999999999999)", "timestamp overflow"),
        ("double('NaN') < 1.0", "NaN values cannot be ordered"),
        ("self.replicas.all(x, true)", "got 'types.Int', expected iterable type"),
        ("self.name.getHours()", "no such overload: getHours(string)"),
        ("self.tags.all(t, 1 / 0 == 1)", "division by zero"),
        (
            "{'a': 1}.transformMapEntry(k, v, {'x': 1}).transformMapEntry(k, v, {k: v, 'y': 2}).transformMap(k, v, 1 / 0)",
            "division by zero",
        ),
        ("timestamp('2020-01-01T00:00:00Z').getHours('Nowhere')", "unknown time zone Nowhere"),
    ];
    let (env, object) = (env(), object());
    for (text, expected) in cases {
        let program = env.compile(text).unwrap_or_else(|error| panic!("{text}\n{error}"));
        let bindings = Bindings::new().bind("self", Value::json(&object));
        let error = program.evaluate(&bindings).expect_err(text);
        assert_eq!(error.message(), expected, "{text}");
    }
}

#[test]
fn an_evaluation_stops_at_its_limit() {
    let env = env();
    let items: Vec<i64> = (0..200).collect();
    let items = json!(items);
    let program = env.compile("self.all(x, self.all(y, x + y >= 0))").expect("valid");
    let bindings = Bindings::new().bind("self", Value::json(&items));
    let evaluation = program.evaluate_within(&bindings, 100_000);
    let error = evaluation.result.expect_err("too expensive");
    assert_eq!(error.message(), "operation cancelled: actual cost limit exceeded");
    let doubled = (0..64).fold("[1, 2, 3, 4]".to_string(), |text, _| format!("cel.bind(x, {text}, x + x)"));
    let program = env.compile(&doubled).expect("valid");
    assert!(program.evaluate(&Bindings::new()).expect_err("too large").is_cancelled());
}

#[test]
fn the_deepest_expressions_fit_the_stack_of_a_thread() {
    let env = env();
    let nested = |open: &str, close: &str, count: usize| format!("{}1{}", open.repeat(count), close.repeat(count));
    let cases = [
        nested("[", "]", 249),
        nested("{1: ", "}", 249),
        nested("(", ")", 249),
        nested("optional.of(", ")", 249),
        nested("[1].map(x, ", ")", 120),
        nested("[1].all(x, true || [", "] == [])", 80),
        nested("cel.bind(x, ", ", x)", 240),
        nested("(true ? ", " : 1)", 120),
        vec!["1"; 250].join(" + "),
        format!("1{}", " == 1 ? 1 : 1".repeat(80)),
        format!("dyn([]){}", ".map(x, x)".repeat(240)),
    ];
    for text in cases {
        let program = env.compile(&text).unwrap_or_else(|error| panic!("{error}"));
        program.evaluate(&Bindings::new()).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
}

#[test]
fn values_that_share_parts_are_compared_and_shown_within_bounds() {
    let env = env();
    let shared = |result: &str| {
        let bound = (0..60).fold(result.to_string(), |inner, level| {
            let name = format!("v{level}");
            let part = format!("v{}", level + 1);
            format!("cel.bind({name}, [{part}, {part}], {inner})")
        });
        format!("cel.bind(v60, [1], {bound})")
    };
    for text in ["v0 != v0", "v0 in [v0]"] {
        let program = env.compile(&shared(text)).expect("valid");
        let error = program.evaluate(&Bindings::new()).expect_err(text);
        assert!(error.is_cancelled(), "{text}: {error}");
    }
    let program = env.compile(&shared("v0")).expect("valid");
    let value = program.evaluate(&Bindings::new()).expect("a value");
    assert!(value.to_string().len() < 1 << 20 && value.notation().len() < 1 << 20);
    assert_eq!(value.to_json(), None);
}

#[test]
fn a_call_that_costs_too_much_does_not_run() {
    let libraries = [Library::Standard, Library::Lists(3), Library::Sets];
    let env = Env::new(libraries).variable("self", Type::Dyn);
    let items: serde_json::Value = (0..200_000).collect();
    for text in ["dyn(self).distinct() == []", "sets.contains(self, self)"] {
        let program = env.compile(text).expect("valid");
        let bindings = Bindings::new().bind("self", Value::json(&items));
        let error = program.evaluate_within(&bindings, 1_000_000).result.expect_err(text);
        assert!(error.is_cancelled(), "{text}: {error}");
    }
}
