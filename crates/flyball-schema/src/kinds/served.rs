//! Reads the lines of a table of kinds that say what is served: resources and their subresources.

use super::expression::Expressions;
use super::read::Problem;
use crate::resource::{Resource, Subresource};

/// Reads `pods pod Pod namespaced create,delete,get list=PodList short=po type=io.k8s.api.core.v1.Pod`.
pub(super) fn resource(
    text: &str,
    (group, version): (&str, &str),
    expressions: &Expressions<'_>,
) -> Result<Resource, Problem> {
    let words: Vec<&str> = text.split(' ').collect();
    let [plural, singular, kind, scope, verbs, rest @ ..] = &words[..] else {
        return Err("a resource cut short");
    };
    let mut resource = Resource {
        group: group.into(),
        version: version.into(),
        kind: (*kind).into(),
        list_kind: Box::default(),
        plural: (*plural).into(),
        singular: (*singular).into(),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced: namespaced(scope)?,
        verbs: boxed(verbs),
        subresources: Vec::new(),
        storage_version_hash: None,
        schema: None,
    };
    for word in rest {
        match word.split_once('=') {
            Some(("list", kind)) => resource.list_kind = kind.into(),
            Some(("short", names)) => resource.short_names = boxed(names),
            Some(("categories", names)) => resource.categories = boxed(names),
            Some(("hash", hash)) => resource.storage_version_hash = Some(hash.into()),
            Some(("type", name)) => resource.schema = Some(expressions.place(name)?),
            _ => return Err("an unknown property of a resource"),
        }
    }
    Ok(resource)
}

/// Reads `scale autoscaling/v1 Scale get,patch,update type=io.k8s.api.autoscaling.v1.Scale`.
pub(super) fn subresource(text: &str, expressions: &Expressions<'_>) -> Result<Subresource, Problem> {
    let words: Vec<&str> = text.split(' ').collect();
    let [name, served, kind, verbs, rest @ ..] = &words[..] else {
        return Err("a subresource cut short");
    };
    let (group, version) = group_version(served);
    let schema = match rest {
        [] => None,
        [word] => Some(word.strip_prefix("type=").ok_or("an unknown property of a subresource")?),
        _ => return Err("something behind a subresource"),
    };
    Ok(Subresource {
        name: (*name).into(),
        group: group.into(),
        version: version.into(),
        kind: (*kind).into(),
        verbs: boxed(verbs),
        schema: schema.map(|name| expressions.place(name)).transpose()?,
    })
}

/// `apps/v1`, or `v1` in the core group.
pub(super) fn group_version(text: &str) -> (&str, &str) {
    text.split_once('/').unwrap_or(("", text))
}

fn namespaced(scope: &str) -> Result<bool, Problem> {
    match scope {
        "namespaced" => Ok(true),
        "cluster" => Ok(false),
        _ => Err("an unknown scope"),
    }
}

fn boxed(list: &str) -> Vec<Box<str>> {
    list.split(',').map(Box::from).collect()
}
