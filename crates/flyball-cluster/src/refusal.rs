//! What an API server's refusal means to a controller.

/// The HTTP code of a refusal.
fn code(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

/// Whether there is no such object.
pub(crate) fn is_not_found(error: &kube::Error) -> bool {
    code(error) == Some(404)
}

/// Whether an object changed, or was replaced by another of its name, since it was read.
pub(crate) fn is_conflict(error: &kube::Error) -> bool {
    code(error) == Some(409)
}

/// Whether an object of that name exists already.
pub(crate) fn already_exists(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.reason == "AlreadyExists")
}

/// Whether nothing can be created because the namespace is about to go.
pub(crate) fn is_namespace_terminating(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else { return false };
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
}

/// What the server said, without what the client calls it.
pub(crate) fn message(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        error => error.to_string(),
    }
}
