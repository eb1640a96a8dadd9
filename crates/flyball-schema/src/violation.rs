//! What is wrong with one field, in the words of Kubernetes' field errors.
//! Finding it is left to the verbs; putting it into a `Status` to the API server.

use crate::go_text;
use serde_json::Value;
use std::fmt;

/// One thing wrong with one field; it becomes a cause of an `Invalid` status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The field, such as `spec.ports[0].name`.
    pub path: String,
    /// The kind of mistake.
    pub reason: Reason,
    /// The text of the cause, without the path.
    pub message: String,
}

/// The kind of mistake, as causes spell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each is the reason of its name")]
pub enum Reason {
    NotFound,
    Required,
    Duplicate,
    Invalid,
    NotSupported,
    Forbidden,
    TooLong,
    TooMany,
    TooFew,
    TooShort,
    Internal,
    TypeInvalid,
}

impl Reason {
    /// The spelling in `details.causes[].reason`.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::NotFound => "FieldValueNotFound",
            Reason::Required => "FieldValueRequired",
            Reason::Duplicate => "FieldValueDuplicate",
            Reason::Invalid => "FieldValueInvalid",
            Reason::NotSupported => "FieldValueNotSupported",
            Reason::Forbidden => "FieldValueForbidden",
            Reason::TooLong => "FieldValueTooLong",
            Reason::TooMany => "FieldValueTooMany",
            Reason::TooFew => "FieldValueTooFew",
            Reason::TooShort => "FieldValueTooShort",
            Reason::Internal => "InternalError",
            Reason::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    /// The words that open a message.
    pub fn title(self) -> &'static str {
        match self {
            Reason::NotFound => "Not found",
            Reason::Required => "Required value",
            Reason::Duplicate => "Duplicate value",
            Reason::Invalid | Reason::TypeInvalid => "Invalid value",
            Reason::NotSupported => "Unsupported value",
            Reason::Forbidden => "Forbidden",
            Reason::TooLong => "Too long",
            Reason::TooMany => "Too many",
            Reason::TooFew => "Too few",
            Reason::TooShort => "Too short",
            Reason::Internal => "Internal error",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.path, self.message)
    }
}

// apimachinery/pkg/util/validation/field/errors.go
impl Violation {
    /// A value has to be given.
    pub fn required(path: impl Into<String>, detail: &str) -> Violation {
        Violation::plain(path, Reason::Required, detail)
    }

    /// A value is not allowed here, though it may be well formed.
    pub fn forbidden(path: impl Into<String>, detail: &str) -> Violation {
        Violation::plain(path, Reason::Forbidden, detail)
    }

    /// The server failed, not the user.
    pub fn internal(path: impl Into<String>, detail: &str) -> Violation {
        Violation::plain(path, Reason::Internal, detail)
    }

    /// A value is malformed.
    pub fn invalid(path: impl Into<String>, value: impl Into<Value>, detail: &str) -> Violation {
        Violation::with_value(path, Reason::Invalid, &value.into(), detail)
    }

    /// A value has another type than its schema says.
    pub fn type_invalid(path: impl Into<String>, value: impl Into<Value>, detail: &str) -> Violation {
        Violation::with_value(path, Reason::TypeInvalid, &value.into(), detail)
    }

    /// A value occurs twice where it may occur once.
    pub fn duplicate(path: impl Into<String>, value: impl Into<Value>) -> Violation {
        Violation::with_value(path, Reason::Duplicate, &value.into(), "")
    }

    /// A value refers to something that is not there.
    pub fn not_found(path: impl Into<String>, value: impl Into<Value>) -> Violation {
        Violation::with_value(path, Reason::NotFound, &value.into(), "")
    }

    /// A value is not one of those that are listed.
    pub fn not_supported<S: AsRef<str>>(
        path: impl Into<String>,
        value: impl Into<Value>,
        supported: &[S],
    ) -> Violation {
        let quoted: Vec<_> = supported.iter().map(|value| go_text::quote(value.as_ref())).collect();
        let detail = if quoted.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", quoted.join(", "))
        };
        Violation::with_value(path, Reason::NotSupported, &value.into(), &detail)
    }

    /// A value has too many bytes.
    pub fn too_long(path: impl Into<String>, most: u64) -> Violation {
        Violation::plain(path, Reason::TooLong, &format!("may not be more than {}", counted(most, "byte")))
    }

    /// A list has too many items.
    pub fn too_many(path: impl Into<String>, count: u64, most: u64) -> Violation {
        let detail = format!("must have at most {}", counted(most, "item"));
        Violation::with_value(path, Reason::TooMany, &count.into(), &detail)
    }

    /// A list has too few items.
    pub fn too_few(path: impl Into<String>, count: u64, least: u64) -> Violation {
        let detail = format!("must have at least {}", counted(least, "item"));
        Violation::with_value(path, Reason::TooFew, &count.into(), &detail)
    }

    /// Any reason whose message shows the value.
    pub fn with_value(path: impl Into<String>, reason: Reason, value: &Value, detail: &str) -> Violation {
        Violation::with_text(path, reason, &go_text::shown(value), detail)
    }

    /// Any reason whose message shows a value that has been printed already.
    pub fn with_text(path: impl Into<String>, reason: Reason, value: &str, detail: &str) -> Violation {
        let message = detailed(format!("{}: {value}", reason.title()), detail);
        Violation { path: path.into(), reason, message }
    }

    /// Any reason whose message shows no value.
    pub fn plain(path: impl Into<String>, reason: Reason, detail: &str) -> Violation {
        Violation {
            path: path.into(),
            reason,
            message: detailed(reason.title().to_owned(), detail),
        }
    }
}

fn detailed(message: String, detail: &str) -> String {
    if detail.is_empty() {
        message
    } else {
        format!("{message}: {detail}")
    }
}

fn counted(count: u64, noun: &str) -> String {
    if count == 1 {
        format!("{count} {noun}")
    } else {
        format!("{count} {noun}s")
    }
}
