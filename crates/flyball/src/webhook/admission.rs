//! Admission as an author writes it: functions over typed objects, or over any request.

use crate::cache::kind::Kind;
use crate::webhook::patch::patch;
use crate::webhook::review::{self, Answer, Request};
use crate::webhook::rule::WebhookRule;
use crate::{Error, Result};
use futures::future::BoxFuture;
use k8s_openapi::api::authentication::v1::UserInfo;
use kube::{
    Client, Resource,
    api::DynamicObject,
    core::admission::{AdmissionRequest, AdmissionResponse, Operation},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::{
    fmt,
    marker::PhantomData,
    sync::{Arc, Mutex, PoisonError},
};

/// What a webhook knows of the request beside the object.
pub struct Review<K> {
    request: Arc<Request>,
    old: Option<Arc<K>>,
    warnings: Arc<Mutex<Vec<String>>>,
    client: Client,
}

impl<K> Review<K> {
    /// What is done to the object. On a delete, the object is the one that is deleted.
    pub fn operation(&self) -> Operation {
        self.request.operation.clone()
    }

    /// The object as it is stored, on an update.
    pub fn old(&self) -> Option<&K> {
        self.old.as_deref()
    }

    /// The name of the object; empty on a create with `generateName`.
    pub fn name(&self) -> &str {
        &self.request.name
    }

    /// The namespace of the object, if it has one.
    pub fn namespace(&self) -> Option<&str> {
        self.request.namespace.as_deref()
    }

    /// The subresource that is written, such as `status`; none for the object itself.
    pub fn subresource(&self) -> Option<&str> {
        self.request.sub_resource.as_deref().filter(|name| !name.is_empty())
    }

    /// The user that makes the request.
    pub fn user(&self) -> &UserInfo {
        &self.request.user_info
    }

    /// Whether nothing will be stored.
    pub fn is_dry_run(&self) -> bool {
        self.request.dry_run == Some(true)
    }

    /// Shows a warning to the user; kubectl prints it. The API server cuts it after 256 characters.
    pub fn warn(&self, warning: impl Into<String>) {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(warning.into());
    }

    /// A client with the rights of the operator, for what the object alone does not tell.
    pub fn client(&self) -> &Client {
        &self.client
    }
}

impl<K> fmt::Debug for Review<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Review of {:?} of {} {:?}",
            self.request.operation, self.request.kind.kind, self.request.name
        )
    }
}

/// Answers one request, with the type of its objects erased.
pub(crate) type Handler = Arc<dyn Fn(Arc<Request>, Client) -> BoxFuture<'static, Result<Answer>> + Send + Sync>;

/// What a webhook does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Validate,
    Default,
}

/// A webhook of an operator.
#[derive(Clone)]
pub(crate) struct AdmissionSpec {
    pub(crate) purpose: Purpose,
    /// Of an author; one is made of the kind otherwise.
    pub(crate) named: Option<String>,
    /// None where it is for any kind.
    pub(crate) kind: Option<Kind>,
    pub(crate) rule: WebhookRule,
    pub(crate) handler: Handler,
}

impl fmt::Debug for AdmissionSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.purpose, self.short_name())
    }
}

/// A webhook that checks objects; [`Operator::validates`](crate::Operator::validates) takes one.
///
/// Its function is like a reconciler: it is given an object, here with a [`Review`] of the request, and succeeds or fails.
///
/// - A failure with [`Violations`](crate::webhook::Violations) is a refusal that names fields.
/// - [`Error::permanent`] is a refusal with that message.
/// - Any other failure, also by `?`, means that the webhook has no answer: its
///   [`failure_policy`](WebhookRule::failure_policy) decides.
#[must_use = "a webhook does nothing before an operator has it"]
pub struct Validation<K> {
    pub(crate) spec: AdmissionSpec,
    kind: PhantomData<fn(K)>,
}

/// A webhook that completes objects before they are validated; [`Operator::defaults`](crate::Operator::defaults) takes one.
///
/// Its function is given an object and returns it with whatever it changed. What it did not change, and what its type does not
/// know, stays as the client sent it. Failures mean what they mean for a [`Validation`].
#[must_use = "a webhook does nothing before an operator has it"]
pub struct Defaulting<K> {
    pub(crate) spec: AdmissionSpec,
    kind: PhantomData<fn(K)>,
}

impl<K> Validation<K>
where
    K: Resource<DynamicType = (), Scope: 'static> + DeserializeOwned + Send + Sync + 'static,
{
    /// Checks objects with a function of the shape `async fn(Arc<K>, Review<K>) -> Result<()>`.
    pub fn new<Fut>(validate: impl Fn(Arc<K>, Review<K>) -> Fut + Send + Sync + 'static) -> Validation<K>
    where
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        let (kind, validate) = (Kind::of::<K>(), Arc::new(validate));
        let handler: Handler = Arc::new(move |request, client| {
            let validate = validate.clone();
            Box::pin(async move {
                let typed = match Typed::<K>::of(&request, client) {
                    Ok(typed) => typed,
                    Err(error) => return answered(Err(error), &request),
                };
                let validated = validate(Arc::new(typed.object), typed.review).await;
                Ok(Answer {
                    warnings: taken(&typed.warnings),
                    ..answered(validated, &request)?
                })
            })
        });
        let spec = AdmissionSpec::typed(Purpose::Validate, kind, handler);
        Validation { spec, kind: PhantomData }
    }
}

impl Validation<DynamicObject> {
    /// Checks requests of any kind with a function of the shape `async fn(AdmissionRequest, Client) -> Result<AdmissionResponse>`,
    /// kube's types. [`Validation::rule`] has to say what it is about.
    ///
    /// The name is a part of the webhook's, in lower-case letters, digits and dashes.
    pub fn raw<Fut>(
        name: impl Into<String>,
        validate: impl Fn(AdmissionRequest<DynamicObject>, Client) -> Fut + Send + Sync + 'static,
    ) -> Validation<DynamicObject>
    where
        Fut: Future<Output = Result<AdmissionResponse>> + Send + 'static,
    {
        let spec = AdmissionSpec::raw(Purpose::Validate, name.into(), validate);
        Validation { spec, kind: PhantomData }
    }
}

impl<K> Validation<K> {
    /// Says which requests it is asked about, and how.
    pub fn rule(mut self, rule: impl FnOnce(WebhookRule) -> WebhookRule) -> Validation<K> {
        self.spec.rule = rule(self.spec.rule);
        self
    }

    /// Names it, where an operator has two for one kind: lower-case letters, digits and dashes.
    pub fn named(mut self, name: impl Into<String>) -> Validation<K> {
        self.spec.named = Some(name.into());
        self
    }
}

impl<K> Defaulting<K>
where
    K: Resource<DynamicType = (), Scope: 'static> + Serialize + DeserializeOwned + Send + Sync + 'static,
{
    /// Completes objects with a function of the shape `async fn(K, Review<K>) -> Result<K>`.
    pub fn new<Fut>(default: impl Fn(K, Review<K>) -> Fut + Send + Sync + 'static) -> Defaulting<K>
    where
        Fut: Future<Output = Result<K>> + Send + 'static,
    {
        let (kind, default) = (Kind::of::<K>(), Arc::new(default));
        let handler: Handler = Arc::new(move |request, client| {
            let default = default.clone();
            Box::pin(async move {
                let typed = match Typed::<K>::of(&request, client) {
                    Ok(typed) => typed,
                    Err(error) => return answered(Err(error), &request),
                };
                let before = serde_json::to_value(&typed.object).map_err(Error::permanent)?;
                let (changed, mut answer) = match default(typed.object, typed.review).await {
                    Ok(object) => (Some(object), Answer::default()),
                    Err(error) => (None, answered(Err(error), &request)?),
                };
                if let (Some(changed), Some(original)) = (changed, &request.object) {
                    let after = serde_json::to_value(changed).map_err(Error::permanent)?;
                    answer.patch = patch(original, &before, &after);
                }
                answer.warnings = taken(&typed.warnings);
                Ok(answer)
            })
        });
        let spec = AdmissionSpec::typed(Purpose::Default, kind, handler);
        Defaulting { spec, kind: PhantomData }
    }
}

impl Defaulting<DynamicObject> {
    /// Changes requests of any kind; see [`Validation::raw`]. `AdmissionResponse::with_patch` says what is changed.
    pub fn raw<Fut>(
        name: impl Into<String>,
        default: impl Fn(AdmissionRequest<DynamicObject>, Client) -> Fut + Send + Sync + 'static,
    ) -> Defaulting<DynamicObject>
    where
        Fut: Future<Output = Result<AdmissionResponse>> + Send + 'static,
    {
        let spec = AdmissionSpec::raw(Purpose::Default, name.into(), default);
        Defaulting { spec, kind: PhantomData }
    }
}

impl<K> Defaulting<K> {
    /// Says which requests it is asked about, and how.
    pub fn rule(mut self, rule: impl FnOnce(WebhookRule) -> WebhookRule) -> Defaulting<K> {
        self.spec.rule = rule(self.spec.rule);
        self
    }

    /// Names it, where an operator has two for one kind: lower-case letters, digits and dashes.
    pub fn named(mut self, name: impl Into<String>) -> Defaulting<K> {
        self.spec.named = Some(name.into());
        self
    }
}

impl<K> fmt::Debug for Validation<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spec.fmt(f)
    }
}

impl<K> fmt::Debug for Defaulting<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spec.fmt(f)
    }
}

impl AdmissionSpec {
    fn typed(purpose: Purpose, kind: Kind, handler: Handler) -> AdmissionSpec {
        let rule = WebhookRule::of(&kind);
        AdmissionSpec { purpose, named: None, kind: Some(kind), rule, handler }
    }

    fn raw<Fut>(
        purpose: Purpose,
        name: String,
        admit: impl Fn(AdmissionRequest<DynamicObject>, Client) -> Fut + Send + Sync + 'static,
    ) -> AdmissionSpec
    where
        Fut: Future<Output = Result<AdmissionResponse>> + Send + 'static,
    {
        let admit = Arc::new(admit);
        let handler: Handler = Arc::new(move |request, client| {
            let admit = admit.clone();
            Box::pin(async move {
                let read: AdmissionRequest<DynamicObject> = serde_json::from_value(request.all.clone())
                    .map_err(|error| malformed(format!("request: {error}")))?;
                match admit(read, client).await {
                    Ok(response) => from_response(response),
                    Err(error) => answered(Err(error), &request),
                }
            })
        });
        AdmissionSpec {
            purpose,
            named: Some(name),
            kind: None,
            rule: WebhookRule::any(),
            handler,
        }
    }
}

/// An object that its Rust type does not know.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Undecodable(String);

/// A request that the API server would not send.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Malformed(pub(crate) String);

pub(crate) fn malformed(why: impl Into<String>) -> Error {
    Error::retry(Malformed(why.into()))
}

/// The object of a request, decoded.
struct Typed<K> {
    object: K,
    review: Review<K>,
    warnings: Arc<Mutex<Vec<String>>>,
}

impl<K: Resource<DynamicType = ()> + DeserializeOwned> Typed<K> {
    fn of(request: &Arc<Request>, client: Client) -> Result<Typed<K>> {
        let is_delete = request.operation == Operation::Delete;
        let decoded = |field: &str, object: &Option<Value>| match object {
            Some(Value::Null) | None => Ok(None),
            Some(object) => K::deserialize(object).map(Some).map_err(|error| {
                Error::permanent(Undecodable(format!(
                    "{} {:?} does not decode: {field}: {error}",
                    K::kind(&()),
                    request.name
                )))
            }),
        };
        let old = decoded("oldObject", &request.old_object)?;
        let (object, old) = match is_delete {
            true => (old, None),
            false => (decoded("object", &request.object)?, old),
        };
        let Some(object) = object else {
            let field = if is_delete { "oldObject" } else { "object" };
            return Err(malformed(format!("request.{field}: missing")));
        };
        let warnings = Arc::default();
        let review = Review {
            request: request.clone(),
            old: old.map(Arc::new),
            warnings: Arc::clone(&warnings),
            client,
        };
        Ok(Typed { object, review, warnings })
    }
}

fn taken(warnings: &Mutex<Vec<String>>) -> Vec<String> {
    std::mem::take(&mut *warnings.lock().unwrap_or_else(PoisonError::into_inner))
}

/// An admission, a refusal, or the failure of the webhook.
fn answered(outcome: Result<()>, request: &Request) -> Result<Answer> {
    match outcome {
        Ok(()) => Ok(Answer::default()),
        Err(error) => Ok(Answer {
            refusal: Some(review::refusal(error, request)?),
            ..Answer::default()
        }),
    }
}

fn from_response(response: AdmissionResponse) -> Result<Answer> {
    let patch = match &response.patch {
        Some(patch) => serde_json::from_slice(patch)?,
        None => Vec::new(),
    };
    let refusal = (!response.allowed).then(|| serde_json::to_value(&response.result)).transpose()?;
    Ok(Answer {
        refusal,
        patch,
        warnings: response.warnings.unwrap_or_default(),
        audit_annotations: response.audit_annotations.into_iter().collect(),
    })
}
