//! Cuts what a server sends into objects while it arrives: a list into its items, a watch into its lines.

/// A list that arrives in pieces. No more of it is held than the item that is not complete yet.
#[derive(Default)]
pub(crate) struct Items {
    /// What has arrived and was not handed out.
    buffer: Vec<u8>,
    /// How far the buffer has been looked at.
    scanned: usize,
    /// Where in the buffer the item begins that is not complete yet.
    item: Option<usize>,
    /// How many braces and brackets are open.
    depth: u32,
    /// Whether the array of items is open.
    inside: bool,
    text: Text,
    /// The list without its items.
    envelope: Vec<u8>,
}

/// Whether a string is open, and whether its next character is escaped.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Text {
    #[default]
    Outside,
    Inside,
    Escaped,
}

impl Items {
    /// Takes the next piece, and hands out the items that it completes.
    pub(crate) fn feed<E>(&mut self, piece: &[u8], mut each: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        self.buffer.extend_from_slice(piece);
        let mut kept = 0;
        while let Some(at) = self.bracket() {
            let byte = self.buffer[at];
            if matches!(byte, b'{' | b'[') {
                self.opened(byte, at, &mut kept);
                continue;
            }
            self.depth = self.depth.saturating_sub(1);
            match (self.depth, self.item) {
                (2, Some(begin)) if self.inside => {
                    each(&self.buffer[begin..self.scanned])?;
                    (self.item, kept) = (None, self.scanned);
                }
                (1, _) if self.inside => (self.inside, kept) = (false, at),
                _ => {}
            }
        }
        self.keep(kept);
        Ok(())
    }

    /// Where the next brace or bracket is that is not part of a string. Most bytes are skipped here, in two tight loops.
    fn bracket(&mut self) -> Option<usize> {
        let (mut at, mut text) = (self.scanned, self.text);
        let found = loop {
            let rest = self.buffer.get(at..).unwrap_or_default();
            let skipped = match text {
                Text::Outside => rest.iter().position(|byte| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']')),
                Text::Inside => rest.iter().position(|byte| matches!(byte, b'"' | b'\\')),
                Text::Escaped => (!rest.is_empty()).then_some(0),
            };
            let Some(skipped) = skipped else {
                at += rest.len();
                break None;
            };
            at += skipped + 1;
            text = match (text, rest[skipped]) {
                (Text::Outside, b'"') | (Text::Escaped, _) => Text::Inside,
                (Text::Outside, _) => break Some(at - 1),
                (Text::Inside, b'"') => Text::Outside,
                (Text::Inside, _) => Text::Escaped,
            };
        };
        (self.scanned, self.text) = (at, text);
        found
    }

    fn opened(&mut self, byte: u8, at: usize, kept: &mut usize) {
        self.depth += 1;
        if self.inside {
            if self.depth == 3 {
                self.item = Some(at);
            }
        } else if byte == b'[' && self.depth == 2 && ends_with_key(&self.buffer[..at], "items") {
            self.inside = true;
            self.envelope.extend_from_slice(&self.buffer[*kept..=at]);
            *kept = at + 1;
        }
    }

    /// Drops what was handed out, and the separators between items.
    fn keep(&mut self, kept: usize) {
        let from = match self.inside {
            true => self.item.unwrap_or(self.scanned),
            false => kept,
        };
        self.buffer.drain(..from);
        self.scanned -= from;
        self.item = self.item.map(|begin| begin - from);
    }

    /// The list without its items, once it has ended.
    pub(crate) fn end(mut self) -> Vec<u8> {
        self.envelope.append(&mut self.buffer);
        self.envelope
    }
}

/// Whether JSON is cut off just before the value of that key.
fn ends_with_key(json: &[u8], key: &str) -> bool {
    let json = json.trim_ascii_end().strip_suffix(b":").unwrap_or_default();
    let json = json.trim_ascii_end().strip_suffix(b"\"").unwrap_or_default();
    json.strip_suffix(key.as_bytes()).is_some_and(|json| json.ends_with(b"\""))
}

/// A stream of lines that arrives in pieces.
#[derive(Default)]
pub(crate) struct Lines {
    /// The beginning of a line.
    rest: Vec<u8>,
}

/// A line may have needed much; the next ones rarely do.
const ROOM: usize = 64 * 1_024;

impl Lines {
    /// Takes the next piece, and hands out the lines that it completes.
    pub(crate) fn feed<E>(&mut self, mut piece: &[u8], mut each: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        while let Some(end) = piece.iter().position(|byte| *byte == b'\n') {
            let (line, next) = (&piece[..end], &piece[end + 1..]);
            piece = next;
            if self.rest.is_empty() {
                each(line)?;
                continue;
            }
            self.rest.extend_from_slice(line);
            let handed_out = each(&self.rest);
            self.rest.clear();
            handed_out?;
        }
        self.rest.shrink_to(ROOM);
        self.rest.extend_from_slice(piece);
        Ok(())
    }

    /// What came after the last end of a line.
    pub(crate) fn end(self) -> Option<Vec<u8>> {
        (!self.rest.trim_ascii().is_empty()).then_some(self.rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::convert::Infallible;

    fn cut(json: &str, size: usize) -> (Vec<Value>, Value) {
        let (mut items, mut found) = (Items::default(), Vec::new());
        for piece in json.as_bytes().chunks(size) {
            let each = |item: &[u8]| {
                found.push(serde_json::from_slice(item).unwrap());
                Ok::<_, Infallible>(())
            };
            items.feed(piece, each).unwrap();
        }
        (found, serde_json::from_slice(&items.end()).unwrap())
    }

    #[test]
    fn a_list_is_cut_into_items_wherever_its_pieces_end() {
        let items = [
            json!({ "metadata": { "name": "a\"}]\\" }, "items": [{ "items": [1] }] }),
            json!({ "text": "\"items\":[{", "empty": {}, "list": [[]] }),
            json!({}),
        ];
        let meta = json!({ "resourceVersion": "7", "continue": "\"items\":[" });
        let envelope = |items: &Value| json!({ "apiVersion": "v1", "items": items, "metadata": meta });
        let whole = json!(items);
        let last = format!(r#"{{ "metadata":{meta}, "items" : {whole} }}"#);
        for json in [envelope(&whole).to_string(), format!("{:#}\n", envelope(&whole)), last] {
            for size in 1..=json.len() {
                let (found, rest) = cut(&json, size);
                assert_eq!(found, items, "{size}");
                assert_eq!((&rest["metadata"], &rest["items"]), (&meta, &json!([])), "{size}");
            }
        }
    }

    /// Any JSON, with the text that a splitter by characters would take for structure.
    fn random(rng: &mut fastrand::Rng, depth: u32) -> Value {
        let text = |rng: &mut fastrand::Rng| -> String {
            let parts = [
                "\"",
                "\\",
                "{",
                "}",
                "[",
                "]",
                ",",
                ":",
                "items",
                "\"items\":[",
                "é",
                "\n",
                " ",
            ];
            (0..rng.usize(..4)).map(|_| parts[rng.usize(..parts.len())]).collect()
        };
        match rng.u8(..if depth == 0 { 4 } else { 6 }) {
            0 => Value::Null,
            1 => json!(rng.bool()),
            2 => json!(rng.i32(..)),
            3 => json!(text(rng)),
            4 => (0..rng.usize(..4)).map(|_| random(rng, depth - 1)).collect(),
            _ => (0..rng.usize(..4))
                .map(|_| (text(rng), random(rng, depth - 1)))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }

    #[test]
    fn random_lists_are_cut_as_serde_json_reads_them() {
        for seed in 0..2_000 {
            let rng = &mut fastrand::Rng::with_seed(seed);
            let items: Vec<Value> = (0..rng.usize(..5))
                .map(|_| json!({ "a": random(rng, 3), "items": random(rng, 2) }))
                .collect();
            let (before, after) = (random(rng, 2), random(rng, 2));
            let list = json!({ "before": before, "items": items, "metadata": after });
            let json = if rng.bool() {
                list.to_string()
            } else {
                format!("{list:#}")
            };
            let (found, rest) = cut(&json, rng.usize(1..=json.len()));
            assert_eq!(found, items, "seed {seed}: {json}");
            assert_eq!((&rest["before"], &rest["metadata"]), (&before, &after), "seed {seed}: {json}");
        }
    }

    /// A list that is no JSON, or is cut off, is an error of the one who reads its parts; it never panics.
    #[test]
    fn random_bytes_do_not_panic() {
        for seed in 0..5_000 {
            let rng = &mut fastrand::Rng::with_seed(seed);
            let mut json = json!({ "items": [random(rng, 3)], "metadata": random(rng, 2) }).to_string().into_bytes();
            for _ in 0..rng.usize(1..6) {
                let at = rng.usize(..json.len());
                json[at] = br#"{}[]",:\ix"#[rng.usize(..10)];
            }
            let mut items = Items::default();
            for piece in json.chunks(rng.usize(1..=json.len())) {
                items.feed::<Infallible>(piece, |_| Ok(())).unwrap();
            }
            items.end();
        }
    }

    #[test]
    fn a_list_may_have_no_items() {
        for items in ["[]", "null", "[ ]"] {
            let json = format!(r#"{{"items":{items},"metadata":{{"resourceVersion":"7"}}}}"#);
            let (found, rest) = cut(&json, 3);
            assert_eq!((found.len(), rest["metadata"]["resourceVersion"].as_str()), (0, Some("7")));
        }
    }

    #[test]
    fn no_more_is_held_than_one_item() {
        let item = json!({ "text": "x".repeat(1_000) }).to_string();
        let (mut items, mut found) = (Items::default(), 0);
        items.feed::<Infallible>(br#"{"items":["#, |_| Ok(())).unwrap();
        for _ in 0..1_000 {
            let piece = format!("{item},");
            items
                .feed::<Infallible>(piece.as_bytes(), |_| {
                    found += 1;
                    Ok(())
                })
                .unwrap();
        }
        assert_eq!(found, 1_000);
        assert!(items.buffer.capacity() < 4_096, "{}", items.buffer.capacity());
    }

    #[test]
    fn a_stream_is_cut_into_lines_wherever_its_pieces_end() {
        let text = "one\n\ntwo and three\nfour";
        for size in 1..=text.len() {
            let (mut lines, mut found) = (Lines::default(), Vec::new());
            for piece in text.as_bytes().chunks(size) {
                let each = |line: &[u8]| {
                    found.push(String::from_utf8(line.to_vec()).unwrap());
                    Ok::<_, Infallible>(())
                };
                lines.feed(piece, each).unwrap();
            }
            assert_eq!(found, ["one", "", "two and three"]);
            assert_eq!(lines.end().unwrap(), b"four");
        }
    }
}
