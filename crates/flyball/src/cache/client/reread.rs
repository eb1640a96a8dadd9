//! Reads what an answer to a write did not tell: one object, or what is left of a collection.

use crate::Key;
use crate::cache::Mirror;
use crate::cache::client::written;
use crate::cache::kind::{Form, Kind, KindId};
use crate::cache::object::Object;
use crate::metrics::MeasuredClient;
use http::{Request, StatusCode, header};
use kube::client::Body;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{borrow::Cow, collections::HashSet, sync::Arc, time::Duration};
use tokio::time::sleep;

/// How many milliseconds to wait before each further attempt.
const RETRY_DELAYS_MS: [u64; 4] = [100, 400, 1_000, 2_000];
/// Of a collection so many objects are asked for at once.
const PAGE: &str = "limit=500";
/// The same objects without anything but their metadata.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// What was written is not known until this has been read.
pub(crate) struct Reread {
    mirrors: Vec<Arc<Mirror>>,
    what: What,
}

enum What {
    Object(Key),
    Collection {
        namespace: Option<String>,
        /// Which objects of it were meant.
        selectors: String,
        /// What the server says it deleted, if it says it.
        deleted: Option<Vec<Identity>>,
    },
}

type Identity = (Key, Box<str>);

/// The write was done; what became of it is not known.
#[derive(Debug, thiserror::Error)]
#[error("the write was done, but {path} cannot be read after it: {why}")]
struct Unread {
    path: String,
    why: String,
}

#[derive(Deserialize)]
struct List<'a> {
    #[serde(borrow, default)]
    metadata: ListMeta<'a>,
    #[serde(borrow, default)]
    items: Vec<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct ListMeta<'a> {
    #[serde(borrow, default, rename = "continue")]
    next: Cow<'a, str>,
}

impl Reread {
    /// One object, for those mirrors that hold its namespace.
    pub(crate) fn object(mut mirrors: Vec<Arc<Mirror>>, key: Key) -> Option<Reread> {
        mirrors.retain(|mirror| mirror.covers(key.namespace()));
        (!mirrors.is_empty()).then_some(Reread { mirrors, what: What::Object(key) })
    }

    /// What is left of a collection of which `query` chose some.
    pub(crate) fn collection(
        mirrors: Vec<Arc<Mirror>>,
        namespace: Option<String>,
        query: &str,
        deleted: Option<Vec<Identity>>,
    ) -> Reread {
        let selectors = query.split('&').filter(|parameter| parameter.contains("Selector="));
        let selectors = selectors.collect::<Vec<_>>().join("&");
        Reread {
            mirrors,
            what: What::Collection { namespace, selectors, deleted },
        }
    }

    /// Reads it, and puts it into the mirrors: one request per version of the kind that is mirrored.
    pub(crate) async fn run(self, client: &MeasuredClient) -> kube::Result<()> {
        let mut versions: Vec<(KindId, Vec<Arc<Mirror>>)> = Vec::new();
        for mirror in self.mirrors {
            let id = mirror.kind().id();
            match versions.iter_mut().find(|(known, _)| *known == id) {
                Some((_, mirrors)) => mirrors.push(mirror),
                None => versions.push((id, vec![mirror])),
            }
        }
        for (_, mirrors) in &versions {
            match &self.what {
                What::Object(key) => object(client, mirrors, key).await?,
                What::Collection { namespace, selectors, deleted } => {
                    collection(client, mirrors, namespace.as_deref(), selectors, deleted.as_deref()).await?;
                }
            }
        }
        Ok(())
    }
}

async fn object(client: &MeasuredClient, mirrors: &[Arc<Mirror>], key: &Key) -> kube::Result<()> {
    // As they are before the read: one that is created after it is not the one that it does not find.
    let known: Vec<_> = mirrors.iter().map(|mirror| Some(mirror.get(key)?.uid.clone())).collect();
    let path = format!("{}/{}", mirrors[0].kind().path(key.namespace()), key.name());
    match read(client, &path, accept(mirrors, METADATA)).await? {
        Some(text) => mirrors.iter().for_each(|mirror| written(mirror, &text)),
        None => {
            let known = mirrors.iter().zip(known).filter_map(|(mirror, uid)| Some((mirror, uid?)));
            known.for_each(|(mirror, uid)| mirror.removed(key, &uid));
        }
    }
    Ok(())
}

async fn collection(
    client: &MeasuredClient,
    mirrors: &[Arc<Mirror>],
    namespace: Option<&str>,
    selectors: &str,
    deleted: Option<&[Identity]>,
) -> kube::Result<()> {
    let known = |mirror: &Mirror| {
        let objects = mirror.list(namespace).into_iter();
        objects.map(|object| (object.key.clone(), object.uid.clone())).collect()
    };
    // Where the server did not say what it deleted: what is not there any more, of whichever selection.
    let (deleted, selectors): (Vec<Identity>, _) = match deleted {
        Some(deleted) => (deleted.to_vec(), selectors),
        None => (mirrors.iter().flat_map(|mirror| -> Vec<_> { known(mirror) }).collect(), ""),
    };
    let path = mirrors[0].kind().path(namespace);
    let (mut left, mut next) = (HashSet::new(), String::new());
    loop {
        let query = [selectors, PAGE, &next].into_iter().filter(|part| !part.is_empty());
        let uri = format!("{path}?{}", query.collect::<Vec<_>>().join("&"));
        let text = read(client, &uri, accept(mirrors, METADATA_LIST)).await?.unwrap_or_default();
        let list: List<'_> = serde_json::from_str(&text).map_err(kube::Error::SerdeError)?;
        for item in list.items {
            left.extend(Object::parse(item.get()).ok().map(|object| object.uid));
            mirrors.iter().for_each(|mirror| written(mirror, item.get()));
        }
        if list.metadata.next.is_empty() {
            break;
        }
        next = format!("continue={}", list.metadata.next);
    }
    for (key, uid) in deleted.iter().filter(|(_, uid)| !left.contains(uid)) {
        mirrors.iter().for_each(|mirror| mirror.removed(key, uid));
    }
    Ok(())
}

/// Metadata suffices if no mirror holds more, or selects by more.
fn accept(mirrors: &[Arc<Mirror>], metadata: &'static str) -> &'static str {
    let suffices = |kind: &Kind| kind.form == Form::Metadata && kind.selection.selects_by_metadata();
    match mirrors.iter().all(|mirror| suffices(mirror.kind())) {
        true => metadata,
        false => "application/json",
    }
}

/// What is there, or nothing if nothing is.
async fn read(client: &MeasuredClient, path: &str, accept: &str) -> kube::Result<Option<String>> {
    let mut again = RETRY_DELAYS_MS.into_iter();
    loop {
        let request = Request::get(path).header(header::ACCEPT, accept).body(Body::empty());
        let answer = client.send(request.map_err(kube::Error::HttpError)?).await;
        let why = match answer {
            Ok(answer) if answer.status() == StatusCode::NOT_FOUND => return Ok(None),
            Ok(answer) if answer.status().is_success() => match answer.into_body().collect_bytes().await {
                Ok(body) => return Ok(Some(String::from_utf8_lossy(&body).into_owned())),
                Err(error) => error.to_string(),
            },
            Ok(answer) => answer.status().to_string(),
            Err(error) => error.to_string(),
        };
        match again.next() {
            Some(delay) => sleep(Duration::from_millis(delay)).await,
            None => return Err(kube::Error::Service(Box::new(Unread { path: path.to_owned(), why }))),
        }
    }
}
