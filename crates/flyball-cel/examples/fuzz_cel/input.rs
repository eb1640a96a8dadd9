//! Random input: expressions by the grammar, expressions that were observed and then damaged, JSON, and plain text.

use serde_json::{Value as Json, json};

/// Expressions to start from.
const OBSERVED: &str = include_str!("../../tests/data/observed.jsonl");

/// A source of random choices that a seed decides.
pub struct Input {
    random: fastrand::Rng,
}

/// Messages, each with a field.
const MESSAGES: [(&str, &str); 17] = [
    ("google.protobuf.BoolValue", "value"),
    ("google.protobuf.BytesValue", "value"),
    ("google.protobuf.DoubleValue", "value"),
    ("google.protobuf.Duration", "nanos"),
    ("google.protobuf.Duration", "seconds"),
    ("google.protobuf.FloatValue", "value"),
    ("google.protobuf.Int32Value", "value"),
    ("google.protobuf.ListValue", "values"),
    ("google.protobuf.StringValue", "value"),
    ("google.protobuf.Struct", "fields"),
    ("google.protobuf.Timestamp", "nanos"),
    ("google.protobuf.Timestamp", "seconds"),
    ("google.protobuf.Value", "list_value"),
    ("google.protobuf.Value", "struct_value"),
    ("JSONPatch", "value"),
    ("Object", "spec"),
    ("Object.spec", "a"),
];

impl Input {
    pub fn new(seed: u64) -> Input {
        Input { random: fastrand::Rng::with_seed(seed) }
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.random.usize(..limit.max(1))
    }

    pub fn pick<'t>(&mut self, choices: &[&'t str]) -> &'t str {
        choices[self.below(choices.len())]
    }

    /// An expression of the grammar, mostly well typed nowhere.
    pub fn expression(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.atom();
        }
        let depth = depth - 1;
        match self.below(15) {
            0 => format!("{} {} {}", self.expression(depth), self.operator(), self.expression(depth)),
            1 => format!("({} ? {} : {})", self.expression(depth), self.expression(depth), self.expression(depth)),
            2 => format!("[{}, {}]", self.expression(depth), self.expression(depth)),
            3 => format!("{{{}: {}}}", self.expression(depth), self.expression(depth)),
            4 => format!("{}.{}", self.expression(depth), self.pick(&["a", "name", "?a", "items", "`x-y`"])),
            5 => format!("{}[{}]", self.expression(depth), self.expression(depth)),
            6 => format!("{}[?{}]", self.expression(depth), self.expression(depth)),
            7 => format!("has({}.{})", self.expression(depth), self.pick(&["a", "b"])),
            8 => self.comprehension(depth),
            9 => format!("{}({})", self.pick(&FUNCTIONS), self.expression(depth)),
            10 => format!("{}.{}({})", self.expression(depth), self.pick(&METHODS), self.expression(depth)),
            11 => format!("{}.{}()", self.expression(depth), self.pick(&METHODS)),
            12 => self.message(depth),
            13 => format!("{}{}", self.pick(&["!", "-", "--", "!!"]), self.expression(depth)),
            _ => self.atom(),
        }
    }

    fn message(&mut self, depth: usize) -> String {
        let (name, field) = MESSAGES[self.below(MESSAGES.len())];
        let value = self.expression(depth);
        match self.below(3) {
            0 => format!("{name}{{{field}: {value}}}"),
            1 => format!("{name}{{{field}: dyn({value})}}"),
            _ => format!("{name}{{?{field}: optional.of({value})}}"),
        }
    }

    fn comprehension(&mut self, depth: usize) -> String {
        let target = self.expression(depth);
        let body = self.expression(depth);
        match self.below(4) {
            0 => {
                let name = self.pick(&["all", "exists", "exists_one", "map", "filter", "sortBy"]);
                format!("{target}.{name}(x, {body})")
            }
            1 => format!("{target}.map(x, {body}, {})", self.expression(depth)),
            2 => {
                let name = self.pick(&["all", "transformList", "transformMap", "transformMapEntry", "existsOne"]);
                format!("{target}.{name}(k, v, {body})")
            }
            _ => format!("cel.bind(x, {target}, {body})"),
        }
    }

    fn operator(&mut self) -> &'static str {
        self.pick(&[
            "+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "in", "&&", "||",
        ])
    }

    fn atom(&mut self) -> String {
        let atoms = [
            "1",
            "0",
            "-1",
            "9223372036854775807",
            "-9223372036854775808",
            "18446744073709551615u",
            "2u",
            "1.5",
            "-0.0",
            "1e308",
            "true",
            "false",
            "null",
            "''",
            "'tea'",
            "'é😀'",
            "b'\\xff'",
            "self",
            "self.items",
            "self.name",
            "x",
            "k",
            "v",
            "[]",
            "{}",
            "duration('1h')",
            "timestamp('9999-12-31T23:59:59Z')",
            "optional.none()",
            "int",
            "optional.of(1)",
            "'10.0.0.0/8'",
            "'1.2.3'",
            "'1Gi'",
            "'[a-z]+'",
            "'%s %d'",
            "lists.range(10)",
            "string",
        ];
        self.pick(&atoms).to_string()
    }

    /// An expression that was observed, damaged in a few places.
    pub fn damaged(&mut self) -> String {
        let lines = OBSERVED.lines().count();
        let line = OBSERVED.lines().nth(self.below(lines)).unwrap_or("{}");
        let case: Json = serde_json::from_str(line).unwrap_or_default();
        let mut letters: Vec<char> = case["expr"].as_str().unwrap_or("1").chars().collect();
        for _ in 0..self.below(4) {
            let at = self.below(letters.len() + 1);
            match self.below(3) {
                0 if at < letters.len() => {
                    letters.remove(at);
                }
                1 => letters.insert(at, self.letter()),
                _ => {
                    let from = self.below(letters.len() + 1);
                    let copied: Vec<char> = letters[from.min(at)..from.max(at)].to_vec();
                    letters.splice(at..at, copied);
                }
            }
        }
        letters.into_iter().collect()
    }

    fn letter(&mut self) -> char {
        let letters: Vec<char> = "()[]{}.,:?!-+*/%<>=&|'\"`\\rbuxU0123456789aeé😀\n\t \u{0}".chars().collect();
        letters[self.below(letters.len())]
    }

    /// Text of the letters that mean something somewhere.
    pub fn text(&mut self, longest: usize) -> String {
        (0..self.below(longest)).map(|_| self.letter()).collect()
    }

    /// The object that expressions look at.
    pub fn object(&mut self) -> Json {
        let items: Vec<Json> = (0..self.below(50)).map(|number| json!({"a": number, "name": self.text(6)})).collect();
        json!({"items": items, "name": self.text(20), "a": {"b": [1, 2.5, null, "x"]}, "n": self.below(100)})
    }
}

const FUNCTIONS: [&str; 24] = [
    "size",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "bool",
    "type",
    "dyn",
    "duration",
    "timestamp",
    "url",
    "ip",
    "cidr",
    "quantity",
    "semver",
    "isURL",
    "isIP",
    "isCIDR",
    "lists.range",
    "strings.quote",
    "optional.of",
    "sign",
    "format.named",
];

const METHODS: [&str; 44] = [
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "charAt",
    "indexOf",
    "lastIndexOf",
    "lowerAscii",
    "replace",
    "split",
    "substring",
    "trim",
    "join",
    "format",
    "find",
    "findAll",
    "isSorted",
    "sum",
    "min",
    "max",
    "slice",
    "flatten",
    "sort",
    "distinct",
    "reverse",
    "getHours",
    "getDate",
    "getFullYear",
    "value",
    "hasValue",
    "orValue",
    "or",
    "first",
    "containsIP",
    "containsCIDR",
    "masked",
    "isGreaterThan",
    "compareTo",
    "add",
    "sub",
    "asInteger",
    "validate",
    "getQuery",
];
