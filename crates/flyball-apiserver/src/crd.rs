//! CustomResourceDefinitions at work: names are accepted, kinds served, and their objects removed with them.
//! All of it happens within the write that causes it, so that its answer finds everything in place.

mod conditions;
mod follow;
mod instances;
mod names;
mod read;

use crate::endpoints::{Subresource, Writer};
use crate::registry::{Kind, object};
use crate::request::context::ResourceRequest;
use crate::server::ApiServer;
use crate::status::{Result, Status};
use flyball_store::{Entry, Error, Expect, Op, Range};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use conditions::terminate;
pub(crate) use follow::follow;

const GROUP: &str = "apiextensions.k8s.io";
const PLURAL: &str = "customresourcedefinitions";
const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The definitions as they were last seen, by name.
pub(crate) type Definitions = BTreeMap<String, Definition>;

/// One definition, and the kinds that it brings.
pub(crate) struct Definition {
    entry: Entry,
    object: Value,
    kinds: Vec<Arc<Kind>>,
}

/// Brings what is served in line with the definitions, after one of them, or an object of theirs, changed.
pub(crate) async fn settle(request: &ResourceRequest) -> Result<()> {
    let is_definition = request.kind.is(GROUP, PLURAL);
    let is_last_of_its_kind = request.kind.custom.as_ref().is_some_and(|custom| custom.is_terminating());
    match is_definition || is_last_of_its_kind {
        true => refresh(&request.server).await,
        false => Ok(()),
    }
}

/// Reads all definitions, gives each its status, and serves what they define.
pub(crate) async fn refresh(server: &ApiServer) -> Result<()> {
    let mut known = server.definitions().lock().await;
    while !round(server, &mut known).await? {}
    Ok(())
}

/// One look at all definitions; says whether nothing was left to do.
async fn round(server: &ApiServer, known: &mut Definitions) -> Result<bool> {
    let kind = definition_kind(server);
    let page = server.store().range(Range::prefix(kind.prefix(None))).await.map_err(Status::internal)?;
    let mut seen = Definitions::new();
    for entry in page.entries {
        let object = match known.remove(&name_of(&entry)) {
            Some(old) if old.entry.revision == entry.revision => {
                seen.insert(name_of(&entry), old);
                continue;
            }
            old => (object::decode(&entry.value), old),
        };
        let (object, old) = object;
        let kinds = read::kinds(&object, entry.revision, old.as_ref());
        seen.insert(name_of(&entry), Definition { entry, object, kinds });
    }
    *known = seen;
    for name in known.keys().cloned().collect::<Vec<_>>() {
        if let Some(object) = names::accept(known, &name, server.clock().now()) {
            write_status(server, &kind, &known[&name], object).await?;
            return Ok(false);
        }
    }
    server
        .registry()
        .replace_custom(known.values().flat_map(|definition| definition.kinds.clone()));
    for definition in known.values().filter(|definition| object::is_deleting(&definition.object)) {
        if instances::remove(server, &kind, definition).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn name_of(entry: &Entry) -> String {
    object::peek(&entry.value).metadata.name.into_owned()
}

fn definition_kind(server: &ApiServer) -> Arc<Kind> {
    let served = server.registry().served();
    served.find(GROUP, "v1", PLURAL).cloned().expect("definitions are built in")
}

/// Writes a definition's status, unless somebody else was faster.
async fn write_status(server: &ApiServer, kind: &Kind, definition: &Definition, mut object: Value) -> Result<()> {
    let now = crate::clock::seconds(server.clock().now());
    let writer = Writer {
        kind,
        others: &[],
        subresource: Subresource::Status,
        manager: "kube-apiserver",
        now: &now,
    };
    writer.update(Some(&definition.object), &mut object);
    let key = definition.entry.key.clone();
    let expect = Expect::Revision(definition.entry.revision);
    let op = match object::is_deleting(&object) && object::finalizers(&object).is_empty() {
        true => Op::delete(key, expect),
        false => Op::put(key, kind.stored(object), expect),
    };
    match server.store().commit(vec![op]).await {
        Ok(_) | Err(Error::Conflict { .. }) => Ok(()),
        Err(error) => Err(Status::internal(error)),
    }
}
