//! An object's text as it is kept, and as it is read.

use crate::cache::object::template::Template;
use crate::cache::object::{Header, Meta};
use serde_json::value::RawValue;
use std::{
    borrow::Cow,
    collections::HashMap,
    fmt,
    ops::{Deref, Range},
    sync::Arc,
};

/// Text in memory: as it is, or as its difference to the text of another object.
pub(crate) enum Kept {
    Whole(Box<str>),
    Packed(Arc<Template>, Box<[u8]>),
}

/// JSON that is read.
pub(crate) struct Json<'a>(Cow<'a, str>);

impl Kept {
    pub(crate) fn len(&self) -> usize {
        match self {
            Kept::Whole(json) => json.len(),
            Kept::Packed(_, packed) => packed.len(),
        }
    }

    /// A part of the text, as far as there is one.
    pub(crate) fn read(&self, part: Range<usize>) -> Json<'_> {
        Json(match self {
            Kept::Whole(text) => Cow::Borrowed(&text[part.start..part.end.min(text.len())]),
            Kept::Packed(template, packed) => {
                let mut text = template.unpack(packed);
                text.truncate(part.end);
                text.drain(..part.start);
                Cow::Owned(text)
            }
        })
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.read(0..usize::MAX))
    }
}

impl Json<'_> {
    pub(crate) fn meta(&self) -> Meta<'_> {
        let header: Header<'_> = serde_json::from_str(self).expect("parsed before");
        header.metadata
    }

    /// One of the object's top fields as the API server wrote it, except that `managedFields` is left out.
    pub(crate) fn raw(&self, name: &str) -> Option<&RawValue> {
        let fields: HashMap<&str, &RawValue> = serde_json::from_str(self).ok()?;
        fields.get(name).copied()
    }
}

impl Deref for Json<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}
