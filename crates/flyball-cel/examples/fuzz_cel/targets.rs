//! The entry points, each with the input that it gets.

use crate::input::Input;
use flyball_cel::value::{Duration, Timestamp};
use flyball_cel::{
    Bindings, Env, FieldShape, Library, ListKind, ObjectShape, Shape, ShapeKind, Type, UnknownSizes, Value,
};
use std::sync::{Arc, OnceLock};

/// Kubernetes' limit for one rule.
const LIMIT: u64 = 1_000_000;

pub type Target = fn(&mut Input);

pub const ALL: [(&str, Target); 6] = [
    ("grammar", |input| {
        let depth = 1 + input.below(6);
        let text = input.expression(depth);
        run(input, &text);
    }),
    ("damaged", |input| {
        let text = input.damaged();
        run(input, &text);
    }),
    ("text", |input| {
        let text = input.text(200);
        run(input, &text);
    }),
    ("deep", |input| {
        let count = input.below(400);
        let (open, close) = [
            ("(", ")"),
            ("[", "]"),
            ("-(", ")"),
            ("!(", ")"),
            ("{1: ", "}"),
            ("[x].map(x, ", ")"),
        ][input.below(6)];
        let text = format!("{}x{}", open.repeat(count), close.repeat(count));
        run(input, &text);
        let chain = input
            .pick(&[
                ".a",
                "[0]",
                "+1",
                "==1",
                ".map(x,x)",
                ".?a",
                ".optMap(x,x)",
                "&&x",
                "?x:x",
            ])
            .repeat(count);
        run(input, &format!("self{chain}"));
    }),
    ("pattern", |input| {
        let (text, pattern) = (input.text(60), input.text(40));
        let env = env().clone().variable("pattern", Type::String);
        let program = env.compile("self.name.matches(pattern) || self.name.find(pattern) == ''").expect("valid");
        let object = serde_json::json!({"name": text});
        let bindings = Bindings::new().bind("self", Value::json(&object)).bind("pattern", Value::text(&pattern));
        drop(program.evaluate_within(&bindings, LIMIT));
    }),
    ("times", |input| {
        let text = input.text(40);
        if let Some(span) = Duration::parse(&text) {
            assert_eq!(Duration::from_nanoseconds(span.nanoseconds()), span);
        }
        if let Some(point) = Timestamp::parse(&text) {
            assert!(!point.to_string().is_empty());
        }
    }),
];

fn env() -> &'static Env {
    static ENV: OnceLock<Env> = OnceLock::new();
    ENV.get_or_init(|| {
        let others = [
            Library::Bindings,
            Library::Math(2),
            Library::Encoders,
            Library::JsonPatch,
        ];
        let env = Env::new(flyball_cel::KUBERNETES.into_iter().chain(others));
        let env = env.validated_literals().kubernetes_costs().quoted_identifiers();
        let env = env
            .open_messages("Object")
            .message("JSONPatch", [("op", Type::String), ("value", Type::Dyn)]);
        let names = ["x", "k", "v"];
        names
            .into_iter()
            .fold(env.variable("self", Type::Dyn), |env, name| env.variable(name, Type::Dyn))
    })
}

/// A declared shape of the object that expressions look at.
fn shape() -> &'static Shape {
    static SHAPE: OnceLock<Shape> = OnceLock::new();
    SHAPE.get_or_init(|| {
        let field = |name: &str, kind: ShapeKind| {
            let shape = Shape { kind, nullable: false };
            (Arc::from(name), FieldShape { json_name: name.into(), shape })
        };
        let item = ObjectShape {
            fields: [field("a", ShapeKind::Int), field("name", ShapeKind::String)].into(),
        };
        let items = Box::new(Shape::from(ShapeKind::Object(Arc::new(item))));
        let items = ShapeKind::List { items, kind: ListKind::Map(vec!["name".into()]) };
        let fields = [
            field("items", items),
            field("name", ShapeKind::String),
            field("n", ShapeKind::Double),
        ];
        ShapeKind::Object(Arc::new(ObjectShape { fields: fields.into() })).into()
    })
}

/// Compiles an expression, estimates its cost, and evaluates it on JSON as it is and as it is declared.
fn run(input: &mut Input, text: &str) {
    let Ok(program) = env().compile(text) else { return };
    let estimate = env().estimate_cost(program.checked(), &UnknownSizes);
    assert!(estimate.min <= estimate.max || estimate.max == 0, "{text}: {estimate:?}");
    let object = input.object();
    let views = [Ok(Value::json(&object)), Value::shaped(&object, shape())];
    for value in views.into_iter().flatten() {
        let bindings = Bindings::new().bind("self", value).bind("x", Value::Int(1)).bind("k", Value::text("k"));
        let evaluation = program.evaluate_within(&bindings.bind("v", Value::Double(0.5)), LIMIT);
        if let Ok(value) = evaluation.result {
            assert!(!value.notation().is_empty());
            drop(value.to_json());
            drop(value.to_protobuf_json());
        }
    }
}
