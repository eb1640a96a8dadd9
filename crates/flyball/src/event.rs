//! An event as an author publishes it.

/// Something that happened to an object, for those who `kubectl describe` it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    pub(crate) severity: Severity,
    pub(crate) reason: String,
    pub(crate) action: Option<String>,
    pub(crate) note: String,
    pub(crate) by: Option<String>,
    pub(crate) field: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Severity {
    Normal,
    Warning,
}

impl Event {
    /// Tells of something that went as it should: a reason in CamelCase, and a sentence.
    pub fn normal(reason: impl Into<String>, note: impl Into<String>) -> Event {
        let (reason, note) = (reason.into(), note.into());
        Event {
            severity: Severity::Normal,
            reason,
            action: None,
            note,
            by: None,
            field: None,
        }
    }

    /// Tells of something that somebody should look at: a reason in CamelCase, and a sentence.
    pub fn warning(reason: impl Into<String>, note: impl Into<String>) -> Event {
        Event { severity: Severity::Warning, ..Event::normal(reason, note) }
    }

    /// Says what was being done, in CamelCase; `Reconcile` unless set.
    pub fn action(mut self, action: impl Into<String>) -> Event {
        self.action = Some(action.into());
        self
    }

    /// Says which controller reports it; the operator unless set.
    pub fn by(mut self, controller: impl Into<String>) -> Event {
        self.by = Some(controller.into());
        self
    }

    /// Says which part of the object it is about, as in `spec.containers{web}`.
    pub fn field(mut self, path: impl Into<String>) -> Event {
        self.field = Some(path.into());
        self
    }
}

impl Severity {
    /// The `type` of a Kubernetes event.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Severity::Normal => "Normal",
            Severity::Warning => "Warning",
        }
    }
}
