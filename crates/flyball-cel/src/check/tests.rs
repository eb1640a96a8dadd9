//! Types of expressions, and type errors as cel-go words them.

use crate::{Env, Library, Type};

fn env() -> Env {
    let libraries = [
        Library::Standard,
        Library::Optional(2),
        Library::TwoVariables,
        Library::Bindings,
    ];
    Env::new(libraries)
        .variable("self", Type::object("Self"))
        .variable("any", Type::Dyn)
        .variable("names", Type::list(Type::String))
        .variable("limits", Type::map(Type::String, Type::Int))
        .object(
            "Self",
            [
                ("name", Type::String),
                ("replicas", Type::Int),
                ("parts", Type::list(Type::object("Part"))),
            ],
        )
        .object("Part", [("size", Type::Double), ("limit", Type::Nullable(Type::Int.into()))])
        .homogeneous_literals()
}

#[test]
fn expressions_have_the_types_they_should_have() {
    let cases = [
        ("1 + 2", "int"),
        ("self.replicas > 1", "bool"),
        ("self.parts.map(p, p.size)", "list(double)"),
        ("self.parts.filter(p, p.size > 1.0)", "list(Part)"),
        ("self.parts[0].size", "double"),
        ("any.x.y", "dyn"),
        ("any + 1", "int"),
        ("any + any", "dyn"),
        ("[]", "list(dyn)"),
        ("[] + [1]", "list(int)"),
        ("{}", "map(dyn, dyn)"),
        ("{'a': [1]}", "map(string, list(int))"),
        ("limits.cpu", "int"),
        ("limits.?cpu", "optional_type(int)"),
        ("self.?parts[0].?size", "optional_type(double)"),
        ("limits[?'x'].orValue(1)", "int"),
        ("optional.none()", "optional_type(dyn)"),
        ("names.map(n, n.size() > 1, {n: n})", "list(map(string, string))"),
        ("type(1)", "type(int)"),
        ("int", "type(int)"),
        ("true ? 1 : any", "dyn"),
        ("names.transformMap(i, n, i)", "map(int, int)"),
        ("cel.bind(x, names, x[0])", "string"),
        ("timestamp('2020-01-01T00:00:00Z') - duration('1s')", "timestamp"),
        ("self.parts[0].limit == null", "bool"),
        ("1 < 2u", "bool"),
    ];
    for (text, expected) in cases {
        let checked = env().check(text).unwrap_or_else(|issues| panic!("{text}\n{issues}"));
        assert_eq!(checked.result_type().to_string(), expected, "{text}");
    }
}

#[test]
fn type_errors_are_worded_as_cel_go_words_them() {
    let cases = [
        ("x", "1:1: undeclared reference to 'x' (in container '')"),
        ("f(1)", "1:2: undeclared reference to 'f' (in container '')"),
        ("1 + 'a'", "1:3: found no matching overload for '_+_' applied to '(int, string)'"),
        ("self.nope", "1:5: undefined field 'nope'"),
        ("self.name.nope", "1:10: type 'string' does not support field selection"),
        (
            "self.name.size(1)",
            "1:15: found no matching overload for 'size' applied to 'string.(int)'",
        ),
        ("names.all(n, n)", "1:14: expected type 'bool' but found 'string'"),
        (
            "self.replicas.all(n, true)",
            "1:5: expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)",
        ),
        ("[1, 'a']", "1:5: expected type 'int' but found 'string'"),
        ("self.name && true", "1:5: expected type 'bool' but found 'string'"),
        (
            "Self{name: 1}",
            "1:10: expected type of field 'name' is 'string' but provided type is 'int'",
        ),
        ("Nope{}", "1:5: undeclared reference to 'Nope' (in container '')"),
        ("self == 1", "1:6: found no matching overload for '_==_' applied to '(Self, int)'"),
        (
            "names[?0].orValue(1)",
            "1:18: found no matching overload for 'orValue' applied to 'optional_type(string).(int)'",
        ),
        ("1 ? 2 : 3", "1:3: found no matching overload for '_?_:_' applied to '(int, int, int)'"),
        ("'a' in 'abc'", "1:5: found no matching overload for '@in' applied to '(string, string)'"),
    ];
    for (text, expected) in cases {
        let issues = env().check(text).expect_err(text);
        let shown: Vec<String> = issues
            .iter()
            .map(|issue| format!("{}:{}: {}", issue.location.line, issue.location.column + 1, issue.message))
            .collect();
        assert_eq!(shown, [expected], "{text}");
    }
}

#[test]
fn names_are_resolved_within_their_container() {
    let env = Env::new([Library::Standard])
        .variable("a.b.x", Type::Int)
        .variable("x", Type::String)
        .container("a.b.c");
    assert_eq!(env.check("x").expect("declared").result_type(), &Type::Int);
    assert_eq!(env.check(".x").expect("declared").result_type(), &Type::String);
    assert!(env.check("y").expect_err("undeclared").to_string().contains("(in container 'a.b.c')"));
}
