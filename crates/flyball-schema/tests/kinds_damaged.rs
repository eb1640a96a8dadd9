//! A table of kinds that is damaged, cut short or of another version: one sentence that says what to do, and never a panic.

use flyball_schema::kinds::{self, FORMAT, Kinds, ReadError};

/// Every construct of the format, once.
const BODY: &str = r#"served v1
resource pods pod Pod namespaced create,get list=PodList short=po,p categories=all hash=xPOw= type=a.v1.Pod
subresource eviction policy/v1 Eviction create type=a.v1.Pod
package a.v1
object Pod atomic
 apiVersion - string
 claim 3m granular ={} Pod
 count 2.1v ! =0 |0 |1 ? integer:int32
 labels 4s atomic map string
 ports 5m ~merge,retainKeys:port list:port,protocol b.Port
 strategy 6m ~replace ={} b.Raw
package b
object Port
 names 1s set |"a" |"b" string
 port 2v ! integer:int32
object Raw free
type Amount quantity
type Json any
type Times list list map number:double
"#;

fn table(body: &str) -> String {
    format!("{FORMAT} v9 {:016x}\n{body}", kinds::checksum(body))
}

fn error(text: &str) -> ReadError {
    Kinds::read(text).expect_err("a table that cannot be read")
}

fn problem(body: &str) -> (usize, &'static str) {
    match error(&table(body)) {
        ReadError::Line { line, problem } => (line, problem),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_construct_can_be_read() {
    let kinds = Kinds::read(&table(BODY)).expect("a table");
    assert_eq!(&*kinds.version, "v9");
    assert_eq!(kinds.resources[0].short_names.len(), 2);
    let count = kinds.schema("a.v1.Pod").and_then(|pod| pod.field("count")).expect("a field");
    assert!(count.nullable && count.allowed.len() == 2);
}

#[test]
fn a_table_cut_short_says_so() {
    let whole = kinds::TABLE;
    for length in [whole.len() - 1, whole.len() / 2, 200] {
        let cut = &whole[..whole.floor_char_boundary(length)];
        assert_eq!(
            error(cut).to_string(),
            "the table of kinds is damaged or cut short: write it again with `cargo run -p conformance -- table`"
        );
    }
}

#[test]
fn a_changed_line_is_noticed() {
    let changed = kinds::TABLE.replacen("resourceVersion 6s", "resourceVersion 7s", 1);
    assert_eq!(error(&changed), ReadError::Damaged);
}

#[test]
fn another_format_is_named() {
    let newer = table(BODY).replacen("flyball-kinds 2 ", "flyball-kinds 3 ", 1);
    assert_eq!(
        error(&newer).to_string(),
        "the table of kinds has format `flyball-kinds 3` and this program reads `flyball-kinds 2`: \
         write it again with `cargo run -p conformance -- table`"
    );
    let much_newer = table(BODY).replacen("flyball-kinds 2 ", "flyball-kinds 10 ", 1);
    assert!(matches!(error(&much_newer), ReadError::Format { .. }));
}

#[test]
fn something_else_is_no_table() {
    for text in [
        "",
        "\n",
        "{}",
        "kind: Pod\nmetadata: {}\n",
        "flyball-kinds",
        "flyball-kinds\n",
        FORMAT,
    ] {
        assert_eq!(
            error(text).to_string(),
            "this is not a table of kinds: write a new one with `cargo run -p conformance -- table`",
            "{text:?}"
        );
    }
}

#[test]
fn a_header_cut_short_is_damage() {
    for header in [
        "flyball-kinds 2\n",
        "flyball-kinds 2 v1.36.4\n",
        "flyball-kinds 2 v1.36.4 zz\n",
    ] {
        assert_eq!(error(header), ReadError::Damaged, "{header:?}");
    }
}

#[test]
fn a_line_that_cannot_be_read_is_named() {
    let bad = table("served v1\nkind Pod\n");
    assert_eq!(
        error(&bad).to_string(),
        "line 3 of the table of kinds has an unknown first word: \
         write it again with `cargo run -p conformance -- table`"
    );
    assert_eq!(problem("resource pods\n"), (2, "a resource outside of a served version"));
    assert_eq!(problem("served v1\nresource pods\n"), (3, "a resource cut short"));
    assert_eq!(problem("served v1\nresource a a A global get\n"), (3, "an unknown scope"));
    assert_eq!(
        problem("served v1\nresource a a A cluster get color=red\n"),
        (3, "an unknown property of a resource")
    );
    assert_eq!(problem("subresource status v1 Pod get\n"), (2, "a subresource without a resource"));
    assert_eq!(problem(" name 1s string\n"), (2, "a field outside of an object"));
    assert_eq!(problem("object A\nobject A\n"), (3, "a type that was there before"));
    assert_eq!(problem("object A\n b 1s string\n a 2s string\n"), (4, "a field out of order"));
    assert_eq!(problem("object A\n a 1s B\n"), (3, "a type that is not in the table"));
    assert_eq!(problem("object A\n a 1 string\n"), (3, "a field without its place in protobuf"));
    assert_eq!(problem("object A\n a 1s =TCP string\n"), (3, "a value that is no JSON"));
    assert_eq!(problem("type A B\ntype B A\n"), (2, "a name for another name"));
}

#[test]
fn a_type_nested_too_deep_is_refused_before_the_stack_ends() {
    let body = format!("object A\n a 1s {} string\n", "list ".repeat(1_000_000).trim_end());
    assert_eq!(problem(&body), (3, "a type within a type within a type, too deep"));
}

#[test]
fn no_change_of_any_byte_panics() {
    for (at, _) in BODY.char_indices() {
        for replacement in [
            "", " ", "\n", ":", ".", ",", "=", "|", "?", "!", "~", "9", "é", "{", "list ", "package ",
        ] {
            let changed = format!("{}{replacement}{}", &BODY[..at], &BODY[at + 1..]);
            let read = Kinds::read(&table(&changed));
            assert!(read.is_ok() || matches!(read, Err(ReadError::Line { .. })), "{read:?}");
        }
    }
}

#[test]
fn no_line_that_is_missing_or_twice_there_panics() {
    let lines: Vec<&str> = BODY.lines().collect();
    for at in 0..lines.len() {
        for times in [0, 2] {
            let mut changed = lines.clone();
            changed.splice(at..=at, std::iter::repeat_n(lines[at], times));
            let read = Kinds::read(&table(&(changed.join("\n") + "\n")));
            assert!(read.is_ok() || matches!(read, Err(ReadError::Line { .. })), "{read:?}");
        }
    }
}
