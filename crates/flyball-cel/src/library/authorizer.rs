//! Authorization checks. The decision is the caller's: it binds an [`Authorizer`] to a variable.

use super::add;
use crate::decl::{Entry, entry};
use crate::env::Env;
use crate::eval::EvalError;
use crate::typing::Type;
use crate::value::{Opaque, Value};
use std::fmt::Debug;
use std::sync::Arc;

type Outcome<'a> = Result<Value<'a>, EvalError>;

/// Decides what a user, or a service account in its place, may do.
pub trait Authorizer: Debug + Send + Sync + 'static {
    /// Decides one question.
    fn authorize(&self, check: &AccessCheck) -> Decision;
}

/// A question to an [`Authorizer`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessCheck {
    /// The namespace and name of the service account that is asked about instead of the user.
    pub service_account: Option<(String, String)>,
    /// The path of a request that concerns no resource.
    pub path: Option<String>,
    /// The API group.
    pub group: String,
    /// The resource.
    pub resource: String,
    /// The subresource, or nothing.
    pub subresource: String,
    /// The namespace, or nothing.
    pub namespace: String,
    /// The name, or nothing.
    pub name: String,
    /// The field selector, or nothing.
    pub field_selector: String,
    /// The label selector, or nothing.
    pub label_selector: String,
    /// The verb.
    pub verb: String,
}

/// What an [`Authorizer`] decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether it is allowed.
    pub allowed: bool,
    /// Why.
    pub reason: String,
    /// What went wrong while deciding.
    pub error: Option<String>,
}

/// Which step of a question a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Authorizer,
    Path,
    Group,
    Resource,
}

#[derive(Clone, Debug)]
struct Question {
    step: Step,
    check: AccessCheck,
    authorizer: Arc<dyn Authorizer>,
}

impl Opaque for Question {
    fn type_of(&self) -> Type {
        Type::object(match self.step {
            Step::Authorizer => "kubernetes.authorization.Authorizer",
            Step::Path => "kubernetes.authorization.PathCheck",
            Step::Group => "kubernetes.authorization.GroupCheck",
            Step::Resource => "kubernetes.authorization.ResourceCheck",
        })
    }

    fn equals(&self, _other: &dyn Opaque) -> Result<bool, EvalError> {
        Err(EvalError::no_such_overload())
    }
}

impl Opaque for Decision {
    fn type_of(&self) -> Type {
        Type::object("kubernetes.authorization.Decision")
    }

    fn equals(&self, _other: &dyn Opaque) -> Result<bool, EvalError> {
        Err(EvalError::no_such_overload())
    }
}

impl<'a> Value<'a> {
    /// The value of the variable `authorizer`.
    pub fn authorizer(authorizer: Arc<dyn Authorizer>) -> Value<'a> {
        Value::opaque(Question {
            step: Step::Authorizer,
            check: AccessCheck::default(),
            authorizer,
        })
    }

    /// The value of the variable `authorizer.requestResource`: a check of a resource that is named already.
    pub fn resource_check(authorizer: Arc<dyn Authorizer>, check: AccessCheck) -> Value<'a> {
        Value::opaque(Question { step: Step::Resource, check, authorizer })
    }
}

/// Declares the functions; `selectors` adds those on field and label selectors.
pub(super) fn install(env: &mut Env) {
    add(env, &FUNCTIONS);
}

const FUNCTIONS: [Entry; 15] = [
    entry(
        "path",
        "authorizer_path",
        "kubernetes.authorization.Authorizer.(string) -> kubernetes.authorization.PathCheck",
        |args| {
            refine(args, Step::Authorizer, |question, path| {
                if path.trim().is_empty() {
                    return Err(EvalError::new("path must not be empty"));
                }
                question.check.path = Some(path.into());
                question.step = Step::Path;
                Ok(())
            })
        },
    ),
    entry(
        "group",
        "authorizer_group",
        "kubernetes.authorization.Authorizer.(string) -> kubernetes.authorization.GroupCheck",
        |args| {
            refine(args, Step::Authorizer, |question, group| {
                question.check.group = group.into();
                question.step = Step::Group;
                Ok(())
            })
        },
    ),
    entry(
        "serviceAccount",
        "authorizer_serviceaccount",
        "kubernetes.authorization.Authorizer.(string, string) -> kubernetes.authorization.Authorizer",
        service_account,
    ),
    entry(
        "resource",
        "groupcheck_resource",
        "kubernetes.authorization.GroupCheck.(string) -> kubernetes.authorization.ResourceCheck",
        |args| {
            refine(args, Step::Group, |question, resource| {
                if resource.trim().is_empty() {
                    return Err(EvalError::new("resource must not be empty"));
                }
                question.check.resource = resource.into();
                question.step = Step::Resource;
                Ok(())
            })
        },
    ),
    entry("subresource", "resourcecheck_subresource", RESOURCE, |args| {
        set(args, |check| &mut check.subresource)
    }),
    entry("namespace", "resourcecheck_namespace", RESOURCE, |args| {
        set(args, |check| &mut check.namespace)
    }),
    entry("name", "resourcecheck_name", RESOURCE, |args| set(args, |check| &mut check.name)),
    entry("fieldSelector", "authorizer_fieldselector", RESOURCE, |args| {
        set(args, |check| &mut check.field_selector)
    }),
    entry("labelSelector", "authorizer_labelselector", RESOURCE, |args| {
        set(args, |check| &mut check.label_selector)
    }),
    entry(
        "check",
        "pathcheck_check",
        "kubernetes.authorization.PathCheck.(string) -> kubernetes.authorization.Decision",
        |args| decide(args, Step::Path),
    ),
    entry(
        "check",
        "resourcecheck_check",
        "kubernetes.authorization.ResourceCheck.(string) -> kubernetes.authorization.Decision",
        |args| decide(args, Step::Resource),
    ),
    entry("errored", "decision_errored", "kubernetes.authorization.Decision.() -> bool", |args| {
        decision(args, |decision| Value::Bool(decision.error.is_some()))
    }),
    entry("error", "decision_error", "kubernetes.authorization.Decision.() -> string", |args| {
        decision(args, |decision| Value::string(decision.error.clone().unwrap_or_default()))
    }),
    entry("allowed", "decision_allowed", "kubernetes.authorization.Decision.() -> bool", |args| {
        decision(args, |decision| Value::Bool(decision.allowed))
    }),
    entry("reason", "decision_reason", "kubernetes.authorization.Decision.() -> string", |args| {
        decision(args, |decision| Value::string(decision.reason.clone()))
    }),
];

const RESOURCE: &str = "kubernetes.authorization.ResourceCheck.(string) -> kubernetes.authorization.ResourceCheck";

fn refine<'a>(args: &[Value<'a>], step: Step, with: fn(&mut Question, &str) -> Result<(), EvalError>) -> Outcome<'a> {
    match (args[0].downcast::<Question>(), &args[1]) {
        (Some(question), Value::String(text)) if question.step == step => {
            let mut question = question.clone();
            with(&mut question, text)?;
            Ok(Value::opaque(question))
        }
        _ => Err(EvalError::no_such_overload()),
    }
}

fn set<'a>(args: &[Value<'a>], field: fn(&mut AccessCheck) -> &mut String) -> Outcome<'a> {
    match (args[0].downcast::<Question>(), &args[1]) {
        (Some(question), Value::String(text)) if question.step == Step::Resource => {
            let mut question = question.clone();
            *field(&mut question.check) = text.to_string();
            Ok(Value::opaque(question))
        }
        _ => Err(EvalError::no_such_overload()),
    }
}

fn service_account<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let (Some(question), [_, Value::String(namespace), Value::String(name)]) = (args[0].downcast::<Question>(), args)
    else {
        return Err(EvalError::no_such_overload());
    };
    let is_name = |text: &str, pattern: &str, most: usize| {
        text.len() <= most && super::regex::compile(pattern).is_ok_and(|pattern| pattern.is_match(text))
    };
    if !is_name(name, r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", 253) {
        return Err(EvalError::new("Invalid service account name"));
    }
    if !is_name(namespace, "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", 63) {
        return Err(EvalError::new("Invalid service account namespace"));
    }
    let mut question = question.clone();
    question.check.service_account = Some((namespace.to_string(), name.to_string()));
    Ok(Value::opaque(question))
}

fn decide<'a>(args: &[Value<'a>], step: Step) -> Outcome<'a> {
    match (args[0].downcast::<Question>(), &args[1]) {
        (Some(question), Value::String(verb)) if question.step == step => {
            let check = AccessCheck { verb: verb.to_string(), ..question.check.clone() };
            Ok(Value::opaque(question.authorizer.authorize(&check)))
        }
        _ => Err(EvalError::no_such_overload()),
    }
}

fn decision<'a>(args: &[Value<'a>], with: fn(&Decision) -> Value<'a>) -> Outcome<'a> {
    match args[0].downcast::<Decision>() {
        Some(decision) => Ok(with(decision)),
        None => Err(EvalError::no_such_overload()),
    }
}
