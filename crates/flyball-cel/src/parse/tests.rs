//! Syntax errors with what cel-go says of them, each line of its answer without the source line beneath.

use super::{MAX_CODE_POINTS, Syntax, macros, parse};

const OPERAND: &str =
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";
const ENTRY: &str = "{'[', '{', '}', '(', '.', ',', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

fn issues(text: &str) -> Vec<String> {
    let syntax = Syntax {
        optionals: false,
        quoted_identifiers: false,
        macros: macros::STANDARD.to_vec(),
    };
    match parse(text, &syntax) {
        Ok(_) => Vec::new(),
        Err(issues) => issues
            .iter()
            .map(|issue| {
                let (line, column) = (issue.location.line, issue.location.column + 1);
                format!("{line}:{column}: {}", issue.message)
            })
            .collect(),
    }
}

/// Expressions and what is wrong with them.
const WRONG: &[(&str, &[&str])] = &[
    ("0xFFFFFFFFFFFFFFFFF", &["1:1: invalid int literal"]),
    ("0xFFFFFFFFFFFFFFFFFu", &["1:1: invalid uint literal"]),
    ("1.99e90000009", &["1:1: invalid double literal"]),
    (
        "*@a | b",
        &[
            "1:1: Syntax error: extraneous input '*' expecting OPERAND",
            "1:2: Syntax error: token recognition error at: '@'",
            "1:5: Syntax error: token recognition error at: '| '",
            "1:7: Syntax error: extraneous input 'b' expecting <EOF>",
        ],
    ),
    ("has(m)", &["1:5: invalid argument to has() macro"]),
    (
        "m.map(__result__, __result__)",
        &["1:7: iteration variable overwrites accumulator variable"],
    ),
    ("m.filter(a.b, false)", &["1:11: argument is not an identifier"]),
    ("1.all(2, 3)", &["1:7: argument must be a simple name"]),
    ("{", &["1:2: Syntax error: mismatched input '<EOF>' expecting ENTRY"]),
    ("TestAllTypes(){}", &["1:15: Syntax error: mismatched input '{' expecting <EOF>"]),
    ("TestAllTypes{}()", &["1:15: Syntax error: mismatched input '(' expecting <EOF>"]),
    (
        "1 + $",
        &[
            "1:5: Syntax error: token recognition error at: '$'",
            "1:6: Syntax error: mismatched input '<EOF>' expecting OPERAND",
        ],
    ),
    ("1 + 2\n3 +", &["2:1: Syntax error: mismatched input '3' expecting <EOF>"]),
    (
        "1 + +",
        &[
            "1:5: Syntax error: mismatched input '+' expecting OPERAND",
            "1:6: Syntax error: mismatched input '<EOF>' expecting OPERAND",
        ],
    ),
    ("{\"a\": 1}.\"a\"", &["1:10: Syntax error: no viable alternative at input '.\"a\"'"]),
    (
        "in",
        &[
            "1:1: Syntax error: mismatched input 'in' expecting OPERAND",
            "1:3: Syntax error: mismatched input '<EOF>' expecting OPERAND",
        ],
    ),
    ("while", &["1:1: reserved identifier: while"]),
    (
        "[1, 2, 3].map(var, var * var)",
        &[
            "1:15: reserved identifier: var",
            "1:15: argument is not an identifier",
            "1:20: reserved identifier: var",
            "1:26: reserved identifier: var",
        ],
    ),
    (
        "func{{a}}",
        &[
            "1:6: Syntax error: extraneous input '{' expecting {'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}",
            "1:8: Syntax error: mismatched input '}' expecting ':'",
            "1:9: Syntax error: extraneous input '}' expecting <EOF>",
        ],
    ),
    ("{a}", &["1:3: Syntax error: mismatched input '}' expecting ':'"]),
    (
        "{:a}",
        &[
            "1:2: Syntax error: extraneous input ':' expecting ENTRY",
            "1:4: Syntax error: mismatched input '}' expecting ':'",
        ],
    ),
    ("ind[a{b}]", &["1:8: Syntax error: mismatched input '}' expecting ':'"]),
    (
        "?",
        &[
            "1:1: Syntax error: mismatched input '?' expecting OPERAND",
            "1:2: Syntax error: mismatched input '<EOF>' expecting OPERAND",
        ],
    ),
    ("self.true == 1", &["1:6: Syntax error: mismatched input 'true' expecting IDENTIFIER"]),
    ("a.?b && a[?b]", &["1:2: unsupported syntax '.?'", "1:10: unsupported syntax '[?'"]),
    ("[?a, ?b]", &["1:2: unsupported syntax '?'", "1:6: unsupported syntax '?'"]),
    ("a.`b-c`", &["1:3: unsupported syntax: '`'"]),
    (
        "a.`b.c`()",
        &[
            "1:3: unsupported syntax: '`'",
            "1:8: Syntax error: mismatched input '(' expecting <EOF>",
        ],
    ),
    (
        "x{.",
        &["1:3: Syntax error: mismatched input '.' expecting {'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}"],
    ),
    ("'\\udead' == '\\ufffd'", &["1:1: invalid unicode code point"]),
];

#[test]
fn syntax_errors_are_worded_as_cel_go_words_them() {
    for (text, expected) in WRONG {
        let expected: Vec<String> = expected
            .iter()
            .map(|line| line.replace("OPERAND", OPERAND).replace("ENTRY", ENTRY))
            .collect();
        assert_eq!(issues(text), expected, "{text}");
    }
}

#[test]
fn size_and_depth_are_limited() {
    let long = "a".repeat(MAX_CODE_POINTS + 1);
    assert_eq!(
        issues(&long),
        ["-1:0: expression code point size exceeds limit: size: 100001, limit 100000"]
    );
    let nested = format!("{}1{}", "[".repeat(251), "]".repeat(251));
    assert_eq!(issues(&nested), ["-1:0: expression recursion limit exceeded: 250"]);
    let chained = vec!["1"; 300].join(" + ");
    assert_eq!(issues(&chained), ["-1:0: max recursion depth exceeded"]);
    let wide = vec!["true"; 10_000].join(" && ");
    assert_eq!(issues(&wide), [""; 0]);
}
