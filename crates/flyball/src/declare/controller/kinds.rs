//! What a controller does with each kind, without the kind's Rust type: as typed and dynamic declarations say it.

use crate::cache::decode;
use crate::cache::kind::{Kind, KindId};
use crate::cache::object::Object;
use crate::declare::controller::{ControllerSpec, Indexed, Watched};
use crate::{Cache, Mapped, Selection};
use serde::de::DeserializeOwned;
use std::sync::Arc;

impl ControllerSpec {
    pub(crate) fn owns(&mut self, kind: Kind) {
        let kind = self.selected(kind.metadata());
        self.owned.push(kind);
    }

    pub(crate) fn reads(&mut self, kind: Kind) {
        let kind = self.selected(kind);
        self.read.push(kind);
    }

    pub(crate) fn needs(&mut self, kind: Kind, verbs: impl IntoIterator<Item: Into<String>>) {
        self.needed.push((kind, verbs.into_iter().map(Into::into).collect()));
    }

    pub(crate) fn watches<O, I>(&mut self, kind: Kind, map: impl Fn(Arc<O>, Cache) -> I + Send + Sync + 'static)
    where
        O: DeserializeOwned,
        I: Mapped,
    {
        let kind = self.selected(kind);
        let watched = kind.clone();
        let map = move |object: &Object, cache: Cache| map(decode::<O>(&watched, object)?, cache).into_keys();
        self.watched.push(Watched { kind, map: Arc::new(map) });
    }

    pub(crate) fn index<C: DeserializeOwned>(
        &mut self,
        kind: Kind,
        name: String,
        by: impl Fn(&C) -> Vec<String> + Send + Sync + 'static,
    ) {
        let kind = self.selected(kind);
        self.read.push(kind.clone());
        let indexed = kind.clone();
        let by = Arc::new(move |object: &Object| Ok(by(&*decode::<C>(&indexed, object)?)));
        self.indexes.push(Indexed { kind, name, by });
    }

    pub(crate) fn select(&mut self, id: KindId, selection: Selection) {
        self.selections.retain(|(selected, _)| *selected != id);
        self.selections.push((id.clone(), selection.clone()));
        self.kinds_mut(&id).for_each(|kind| kind.selection = selection.clone());
    }

    pub(crate) fn optional(&mut self, id: KindId) {
        self.kinds_mut(&id).for_each(|kind| kind.optional = true);
        self.optional.push(id);
    }

    /// Every declaration of a kind.
    pub(crate) fn kinds_mut<'a>(&'a mut self, id: &'a KindId) -> impl Iterator<Item = &'a mut Kind> {
        let watched = self.watched.iter_mut().map(|watched| &mut watched.kind);
        let indexed = self.indexes.iter_mut().map(|indexed| &mut indexed.kind);
        let needed = self.needed.iter_mut().map(|(kind, _)| kind);
        let own = std::iter::once(&mut self.kind).chain(&mut self.owned).chain(&mut self.read);
        own.chain(watched).chain(indexed).chain(needed).filter(move |kind| kind.id() == *id)
    }

    /// A kind as this controller selects it, and optional if this controller can do without it.
    fn selected(&self, kind: Kind) -> Kind {
        let id = kind.id();
        let kind = Kind { optional: self.optional.contains(&id), ..kind };
        match self.selections.iter().find(|(selected, _)| *selected == id) {
            Some((_, selection)) => Kind { selection: selection.clone(), ..kind },
            None => kind,
        }
    }
}
