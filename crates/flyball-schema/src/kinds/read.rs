//! Reads the lines of a table of kinds; resources are read in `served`, what stands behind a field's name in `expression`.
//!
//! A line begins with its meaning: `served`, `resource`, `subresource`, `package`, `type`, `object`, or a space (a field).

use super::expression::Expressions;
use super::{FORMAT, Kinds, ReadError, checksum, served};
use crate::resource::Resource;
use crate::schema::{Field, Form, Object, Patch, Protobuf, Schema, SchemaId, Wire};
use std::sync::Arc;

/// What is wrong with a line.
pub(super) type Problem = &'static str;

pub(super) fn read(text: &str) -> Result<Kinds, ReadError> {
    let (version, body) = header(text)?;
    let mut expressions = Expressions::default();
    let mut package = "";
    each_line(body, |line| declare(&mut expressions, &mut package, line))?;
    let mut reader = Reader { expressions, resources: Vec::new(), served: None, open: None };
    each_line(body, |line| reader.line(line))?;
    reader.close();
    let (schemas, names) = reader.expressions.finish();
    Ok(Kinds {
        version: version.into(),
        schemas,
        resources: reader.resources,
        names,
    })
}

/// Splits the version of Kubernetes and the lines below the first from a table that is whole.
fn header(text: &str) -> Result<(&str, &str), ReadError> {
    let name = FORMAT.split(' ').next().unwrap_or_default();
    let (first, body) = text.split_once('\n').ok_or(ReadError::NotATable)?;
    let words: Vec<&str> = first.split(' ').collect();
    let [table, format, rest @ ..] = &words[..] else {
        return Err(ReadError::NotATable);
    };
    if *table != name {
        return Err(ReadError::NotATable);
    }
    if first.get(..name.len() + 1 + format.len()) != Some(FORMAT) {
        return Err(ReadError::Format { found: format!("{table} {format}").into() });
    }
    match rest {
        [version, sum] if u64::from_str_radix(sum, 16) == Ok(checksum(body)) => Ok((version, body)),
        _ => Err(ReadError::Damaged),
    }
}

/// Calls `read` with each line below the first, and says which line a problem is in.
fn each_line<'a>(body: &'a str, mut read: impl FnMut(&'a str) -> Result<(), Problem>) -> Result<(), ReadError> {
    for (index, line) in body.lines().enumerate() {
        read(line).map_err(|problem| ReadError::Line { line: index + 2, problem })?;
    }
    Ok(())
}

/// Gives every named type its place, so that a field may refer to a type further down.
fn declare<'a>(expressions: &mut Expressions<'a>, package: &mut &'a str, line: &'a str) -> Result<(), Problem> {
    if line.starts_with(' ') {
        return Ok(());
    }
    let (word, rest) = cut(line);
    match word {
        "package" => *package = rest,
        "type" | "object" => expressions.declare(package, cut(rest).0)?,
        _ => {}
    }
    Ok(())
}

/// Splits at the first space.
pub(super) fn cut(text: &str) -> (&str, &str) {
    // Words are a few bytes long: looking at each is quicker than a search that is made for long texts.
    match text.bytes().position(|byte| byte == b' ') {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, ""),
    }
}

struct Reader<'a> {
    expressions: Expressions<'a>,
    resources: Vec<Resource>,
    /// The group and version that resources belong to.
    served: Option<(&'a str, &'a str)>,
    /// The object that fields belong to.
    open: Option<(SchemaId, Schema, Object)>,
}

impl<'a> Reader<'a> {
    fn line(&mut self, line: &'a str) -> Result<(), Problem> {
        if let Some(field) = line.strip_prefix(' ') {
            return self.field(field);
        }
        self.close();
        let (word, rest) = cut(line);
        match word {
            "served" => self.served = Some(served::group_version(rest)),
            "resource" => {
                let served = self.served.ok_or("a resource outside of a served version")?;
                self.resources.push(served::resource(rest, served, &self.expressions)?);
            }
            "subresource" => {
                let resource = self.resources.last_mut().ok_or("a subresource without a resource")?;
                resource.subresources.push(served::subresource(rest, &self.expressions)?);
            }
            "package" => self.expressions.enter(rest),
            "type" => self.expressions.define(cut(rest).0, cut(rest).1)?,
            "object" => self.object(rest)?,
            _ => return Err("an unknown first word"),
        }
        Ok(())
    }

    fn object(&mut self, text: &'a str) -> Result<(), Problem> {
        let (name, mut rest) = cut(text);
        let (id, name) = self.expressions.named(name).ok_or("a type without a place")?;
        let mut schema = Schema { name: Some(name), ..Schema::default() };
        let mut object = Object::default();
        while !rest.is_empty() {
            let (word, next) = cut(rest);
            match word {
                "atomic" => object.atomic = true,
                "free" => schema.preserve_unknown = true,
                _ => return Err("an unknown property of an object"),
            }
            rest = next;
        }
        self.open = Some((id, schema, object));
        Ok(())
    }

    /// Puts the object whose last field was read into its place.
    fn close(&mut self) {
        if let Some((id, schema, mut object)) = self.open.take() {
            object.sort_for_wire();
            self.expressions.set(id, Schema { form: Form::Object(Arc::new(object)), ..schema });
        }
    }

    fn field(&mut self, text: &'a str) -> Result<(), Problem> {
        let (name, rest) = cut(text);
        let (place, mut rest) = cut(rest);
        let mut field = Field {
            name: name.into(),
            schema: SchemaId(0),
            required: false,
            patch: None,
            protobuf: protobuf(place)?,
        };
        loop {
            let (word, next) = cut(rest);
            match word.strip_prefix('~') {
                Some(strategy) => field.patch = Some(Box::new(patch(strategy)?)),
                None if word == "!" => field.required = true,
                None => break,
            }
            rest = next;
        }
        field.schema = self.expressions.read(rest)?;
        let (_, _, object) = self.open.as_mut().ok_or("a field outside of an object")?;
        if object.fields.last().is_some_and(|last| *last.name >= *field.name) {
            return Err("a field out of order");
        }
        object.fields.push(field);
        Ok(())
    }
}

/// `6m`: field 6, a message; `6M`: a pointer to one; `2.1m`: field 1 of the message in field 2; `1s-`: a
/// zero is left out of JSON although it is the default; `-`: protobuf does not keep it.
fn protobuf(text: &str) -> Result<Option<Protobuf>, Problem> {
    const PROBLEM: Problem = "a field without its place in protobuf";
    if text == "-" {
        return Ok(None);
    }
    let (text, omitted) = text.strip_suffix('-').map_or((text, false), |text| (text, true));
    let letter = text.as_bytes().last().copied().unwrap_or_default();
    let wire = match letter.to_ascii_lowercase() {
        b'v' => Wire::Varint,
        b'f' => Wire::Fixed64,
        b's' => Wire::String,
        b'b' => Wire::Bytes,
        b'm' => Wire::Message,
        _ => return Err(PROBLEM),
    };
    let path = text[..text.len() - 1]
        .split('.')
        .map(str::parse)
        .collect::<Result<_, _>>()
        .map_err(|_| PROBLEM)?;
    let pointer = letter.is_ascii_uppercase();
    Ok(Some(Protobuf { path, wire, pointer, omitted }))
}

/// `merge,retainKeys:name`: the strategies, and the key that tells items apart.
fn patch(text: &str) -> Result<Patch, Problem> {
    let (strategies, key) = text.split_once(':').map_or((text, None), |(left, key)| (left, Some(key)));
    let mut patch = Patch { merge_key: key.map(Box::from), ..Patch::default() };
    for strategy in strategies.split(',') {
        match strategy {
            "merge" => patch.merge = true,
            "replace" => patch.replace = true,
            "retainKeys" => patch.retain_keys = true,
            _ => return Err("an unknown patch strategy"),
        }
    }
    Ok(patch)
}
