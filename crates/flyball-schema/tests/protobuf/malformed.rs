//! Bytes that are no object: each is refused in the words of Go's generated code, whatever it is.

use crate::cases;
use flyball_schema::kinds;
use flyball_schema::protobuf::{self, DecodeError, Envelope};

#[test]
fn what_is_no_object_is_refused_in_gos_words() {
    for case in cases("malformed.yaml") {
        let text = |field: &str| case[field].as_str().unwrap_or_default();
        let node = kinds::builtin().type_of("v1", text("kind")).expect("the kind is in the table");
        let bytes = bytes(text("bytes"));
        let read = Envelope::read(&bytes).and_then(|envelope| protobuf::decode(envelope.raw, node));
        assert_eq!(read.err().map(|error| error.to_string()).as_deref(), case["error"].as_str(), "{case}");
    }
}

#[test]
fn messages_that_lie_in_each_other_without_end_are_refused() {
    let name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
    let node = kinds::builtin().schema(name).expect("the type is in the table");
    // Field 28 is `not`: a schema in a schema, a million times.
    let mut deep = Vec::new();
    let mut length = 0_usize;
    for _ in 0..100_000 {
        let mut head = vec![0xe2, 0x01];
        let mut rest = length;
        while rest >= 0x80 {
            head.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        head.push(rest as u8);
        length += head.len();
        deep.push(head);
    }
    let bytes: Vec<u8> = deep.into_iter().rev().flatten().collect();
    assert_eq!(protobuf::decode(&bytes, node), Err(DecodeError::Depth));
}

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).expect("hexadecimal") as u8;
    hex.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}
