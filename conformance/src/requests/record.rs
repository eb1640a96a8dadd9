//! Writes down what a server answers to every script, for people to read.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;

use super::script::{Request, Script};
use super::send::{Answer, Content, Session};
use super::webhooks::Webhooks;

/// Runs `scripts` on one server and writes `<script>.http` for each into `directory`; says where a status is not the
/// one that its script expects.
pub async fn record(client: &kube::Client, scripts: &[Script], directory: &Path) -> io::Result<Vec<String>> {
    fs::create_dir_all(directory)?;
    let webhooks = Webhooks::start().await?;
    let mut surprises = Vec::new();
    for script in scripts {
        let mut session = Session::with(client.clone(), webhooks.variables());
        let mut text = String::new();
        for request in &script.requests {
            let answer = session.send(request).await;
            let status = answer.as_ref().map(|answer| answer.status).unwrap_or_default();
            if status != request.status {
                surprises.push(format!(
                    "{}/{}: {} expected, {status} answered",
                    script.name, request.name, request.status
                ));
            }
            write!(text, "{}", shown(request, &answer)).expect("a string can be written to");
        }
        fs::write(directory.join(format!("{}.http", script.name)), text)?;
    }
    Ok(surprises)
}

fn shown(request: &Request, answer: &Result<Answer, String>) -> String {
    let mut lines = vec![format!("### {}", request.name), request.request.clone()];
    lines.extend(request.headers.iter().map(|(name, value)| format!("{name}: {value}")));
    let sent = request.body.as_ref().map(Value::to_string).or_else(|| request.text.clone());
    lines.extend(sent.map(|body| format!("\n{body}")));
    match answer {
        Err(error) => lines.push(format!("\n--> {error}")),
        Ok(answer) => {
            lines.push(format!("\n--> {}", answer.status));
            lines.extend(
                answer
                    .headers
                    .iter()
                    .map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value.as_bytes()))),
            );
            lines.push(match &answer.content {
                Content::Json(document) => format!("\n{document:#}"),
                Content::Events(events) => events.iter().map(|event| format!("\n{event}")).collect(),
                Content::Text(text) => format!("\n{text}"),
            });
        }
    }
    format!("{}\n\n", lines.join("\n"))
}
