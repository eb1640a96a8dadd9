//! What the expressions of a policy see of a write: its objects in the version that the policy matches.

use crate::admission::matching::Match;
use crate::admission::policy::authorizer::RequestAuthorizer;
use crate::admission::{Attributes, Operation};
use crate::kinds::core::NAMESPACE;
use crate::status::Result;
use flyball_schema::policy::AccessCheck;
use flyball_schema::policy::Input;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

static NULL: Value = Value::Null;

/// What does not depend on the policy: the namespace and the authorizer.
pub(super) struct Surroundings {
    namespace: Value,
    authorizer: Arc<RequestAuthorizer>,
    request_resource: AccessCheck,
}

impl Surroundings {
    /// Reads the namespace of a write.
    pub async fn read(attributes: &Attributes<'_>) -> Result<Surroundings> {
        let request = attributes.request;
        let is_namespace = request.kind.is(&NAMESPACE);
        let mut namespace = Value::Null;
        if !attributes.namespace_name().is_empty() && !is_namespace {
            let stored = attributes.namespace_object().await?;
            namespace = stored.cloned().ok_or_else(|| attributes.namespace_not_found())?;
            // Only what the type of `namespaceObject` has is shown.
            if let Some(metadata) = namespace["metadata"].as_object_mut() {
                ["managedFields", "ownerReferences"]
                    .iter()
                    .for_each(|field| drop(metadata.remove(*field)));
            }
        }
        // Expressions ask without waiting.
        drop(request.server.rbac().read(request.store()).await?);
        Ok(Surroundings {
            namespace,
            authorizer: Arc::new(RequestAuthorizer { server: request.server.clone(), user: request.user.clone() }),
            request_resource: request_resource(attributes),
        })
    }
}

/// The resource of a request, for `authorizer.requestResource`.
pub(crate) fn request_resource(attributes: &Attributes<'_>) -> AccessCheck {
    let resource = &attributes.request.kind.resource;
    AccessCheck {
        group: resource.group.to_string(),
        resource: resource.plural.to_string(),
        subresource: attributes.subresource.subresource().unwrap_or_default().to_owned(),
        namespace: attributes.namespace_name().to_owned(),
        name: attributes.request_name().to_owned(),
        ..AccessCheck::default()
    }
}

/// A write in the version that a policy matches.
pub(super) struct Versioned<'a> {
    object: Cow<'a, Value>,
    old: Cow<'a, Value>,
    request: Value,
    /// The request as match conditions see it: about the resource that was requested.
    condition_request: Value,
}

impl<'a> Versioned<'a> {
    /// Converts the objects of a write. `object` is its new state so far.
    pub async fn new(attributes: &'a Attributes<'_>, object: &'a Value, matched: &Match) -> Result<Versioned<'a>> {
        let own = &attributes.request.kind;
        let is_converted = !Arc::ptr_eq(own, &matched.kind) && attributes.has_own_object();
        let convert = async |object: &'a Value| match is_converted {
            true => own.convert_to(&matched.kind, object.clone()).await.map(Cow::Owned),
            false => Ok(Cow::Borrowed(object)),
        };
        let request = attributes.admission_request(matched);
        let mut condition_request = request.clone();
        condition_request["resource"] = condition_request["requestResource"].clone();
        let object = match attributes.operation {
            Operation::Delete => Cow::Borrowed(&NULL),
            _ => convert(object).await?,
        };
        let old = convert(attributes.old.unwrap_or(&NULL)).await?;
        Ok(Versioned { object, old, request, condition_request })
    }

    /// The object in the version that the policy matches.
    pub fn object(&self) -> &Value {
        &self.object
    }

    /// Replaces the object.
    pub fn set_object(&mut self, object: Value) {
        self.object = Cow::Owned(object);
    }

    /// The object in the version that the policy matches.
    pub fn into_object(self) -> Value {
        self.object.into_owned()
    }

    /// The variables of expressions.
    pub fn input<'s>(&'s self, surroundings: &'s Surroundings, params: &'s Value) -> Input<'s> {
        Input {
            object: &self.object,
            old_object: &self.old,
            request: &self.request,
            namespace: &surroundings.namespace,
            params,
            authorizer: Some(surroundings.authorizer.clone()),
            request_resource: surroundings.request_resource.clone(),
        }
    }

    /// The variables of match conditions, which see no namespace.
    pub fn conditions<'s>(&'s self, surroundings: &'s Surroundings, params: &'s Value) -> Input<'s> {
        Input {
            request: &self.condition_request,
            namespace: &NULL,
            ..self.input(surroundings, params)
        }
    }
}
