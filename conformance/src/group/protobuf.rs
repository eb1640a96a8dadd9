//! Group `protobuf`: what a real server answers in JSON is written by us with the bytes of its protobuf, and read back;
//! it is also what is written down, but for what has to differ.

use std::sync::LazyLock;

use base64::prelude::{BASE64_STANDARD, Engine};
use flyball_schema::protobuf;
use regex::Regex;

use crate::answers::{self, Answer};
use crate::reference::{Error, Reference};
use crate::report::{Finding, sentence};

/// Asks the real server for the answers whose names contain `text`.
pub async fn run(text: &str) -> Vec<Finding> {
    let reference = match Reference::start().await {
        Ok(reference) => reference,
        Err(Error::NoGo) => return vec![Finding::skipped("real", Error::NoGo.to_string())],
        Err(error) => return vec![Finding::check("real", Err(sentence(&error)))],
    };
    let client = match reference.admin.client() {
        Ok(client) => client,
        Err(error) => return vec![Finding::check("real", Err(sentence(&error)))],
    };
    match judge(&client, text).await {
        Ok(findings) => findings,
        Err(error) => vec![Finding::check("real", Err(error))],
    }
}

async fn judge(client: &kube::Client, text: &str) -> Result<Vec<Finding>, String> {
    let known = answers::read()?;
    let asked = answers::ask(client, &known).await?;
    let pairs = known.iter().zip(&asked).filter(|(known, _)| known.name.contains(text));
    Ok(pairs
        .map(|(known, asked)| Finding::check(&*known.name, round_trip(asked).and_then(|()| same(known, asked))))
        .collect())
}

fn round_trip(answer: &Answer) -> Result<(), String> {
    let bytes = BASE64_STANDARD.decode(&answer.protobuf).map_err(|error| error.to_string())?;
    let written = protobuf::encode_object(&answer.json).map_err(|error| error.to_string())?;
    let read = protobuf::decode_object(&bytes).map_err(|error| error.to_string())?;
    let again = protobuf::encode_object(&read).map_err(|error| error.to_string())?;
    match (written == bytes, again == bytes) {
        (true, true) => Ok(()),
        (false, _) => Err(format!("{} is written\n{}", bytes.escape_ascii(), written.escape_ascii())),
        (_, false) => Err(format!("{} is read and written\n{}", bytes.escape_ascii(), again.escape_ascii())),
    }
}

fn same(known: &Answer, asked: &Answer) -> Result<(), String> {
    let (known, asked) = (masked(known), masked(asked));
    match known == asked {
        true => Ok(()),
        false => Err(format!("written down {known}\nanswered     {asked}")),
    }
}

/// Without uids, times, revisions, addresses, and what is made of them.
fn masked(answer: &Answer) -> String {
    static PATTERNS: LazyLock<[Regex; 7]> = LazyLock::new(|| {
        [
            "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
            r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z",
            r#""resourceVersion":"\d+""#,
            r"\b10\.0\.0\.\d+\b",
            r#""(continue|remainingItemCount|nodePort|healthCheckNodePort)":("[^"]*"|\d+)"#,
            r"127\.0\.0\.1:\d+",
            "X509SHA256=[0-9a-f]+",
        ]
        .map(|pattern| Regex::new(pattern).expect("a constant pattern"))
    });
    let text = answer.json.to_string();
    PATTERNS.iter().fold(text, |text, pattern| pattern.replace_all(&text, "…").into_owned())
}
