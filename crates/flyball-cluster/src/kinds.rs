//! What the API server serves, for controllers that have to do with objects of every kind.

use flyball_apiserver::{ApiServer, registry};
use kube::api::ApiResource;
use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

/// The kinds of a cluster; they come and go with their definitions.
#[derive(Clone)]
pub(crate) struct Kinds {
    server: ApiServer,
    /// Group and name of those that were seen to go.
    withdrawn: Arc<Mutex<HashSet<(String, String)>>>,
}

/// One kind, in the version that is best to use.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kind {
    pub(crate) resource: ApiResource,
    pub(crate) namespaced: bool,
    /// What can be done with its objects.
    pub(crate) verbs: Vec<Box<str>>,
}

impl Kinds {
    /// The kinds that a server serves.
    pub(crate) fn of(server: ApiServer) -> Kinds {
        Kinds { server, withdrawn: Arc::default() }
    }

    /// All of them, in every version, as they are served now.
    pub(crate) fn served_now(&self) -> Arc<registry::Served> {
        self.server.registry().served()
    }

    /// All of them, each once.
    pub(crate) fn all(&self) -> Vec<Kind> {
        self.served(|_| true)
    }

    /// Those that are built in.
    pub(crate) fn built_in(&self) -> Vec<Kind> {
        self.served(|kind| kind.custom.is_none())
    }

    /// The kind that the definition of a custom resource brings, while it is served.
    pub(crate) fn defined_by(&self, definition: &str) -> Option<Kind> {
        let is = |kind: &registry::Kind| kind.custom.as_ref().is_some_and(|custom| custom.name == definition);
        self.served(is).pop()
    }

    /// The kind that an `apiVersion` and `kind` mean, in whatever version of its group.
    pub(crate) fn named(&self, api_version: &str, kind: &str) -> Option<Kind> {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        self.served(|served| &*served.resource.group == group && &*served.resource.kind == kind)
            .pop()
    }

    /// Notes that a kind has gone, and with it all of its objects.
    pub(crate) fn withdraw(&self, resource: &ApiResource) {
        let mut withdrawn = self.withdrawn.lock().expect("nothing panics under this lock");
        withdrawn.insert((resource.group.clone(), resource.kind.clone()));
    }

    /// Whether a kind was served and is not any more. Of one that never was nobody knows what it will bring.
    pub(crate) fn is_withdrawn(&self, api_version: &str, kind: &str) -> bool {
        let withdrawn = self.withdrawn.lock().expect("nothing panics under this lock");
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        withdrawn.contains(&(group.to_owned(), kind.to_owned())) && self.named(api_version, kind).is_none()
    }

    fn served(&self, wanted: impl Fn(&registry::Kind) -> bool) -> Vec<Kind> {
        let served = self.server.registry().served();
        let best_first = served.groups().into_iter().flat_map(|group| group.kinds());
        let mut known = HashSet::new();
        let wanted = best_first.filter(|kind| wanted(kind));
        wanted
            .filter(|kind| known.insert((kind.resource.group.clone(), kind.resource.plural.clone())))
            .map(Kind::of)
            .collect()
    }
}

impl Kind {
    fn of(served: &Arc<registry::Kind>) -> Kind {
        let resource = &served.resource;
        Kind {
            namespaced: resource.namespaced,
            verbs: resource.verbs.clone(),
            resource: ApiResource {
                group: resource.group.to_string(),
                version: resource.version.to_string(),
                api_version: resource.api_version(),
                kind: resource.kind.to_string(),
                plural: resource.plural.to_string(),
            },
        }
    }

    /// Whether all of this can be done with its objects.
    pub(crate) fn can(&self, verbs: &[&str]) -> bool {
        verbs.iter().all(|verb| self.verbs.iter().any(|can| &**can == *verb))
    }

    /// Whether its objects are events, which nobody owns and which go by themselves.
    pub(crate) fn is_event(&self) -> bool {
        self.resource.kind == "Event" && matches!(&*self.resource.group, "" | "events.k8s.io")
    }
}
