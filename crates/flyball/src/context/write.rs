//! `Context::create` and `Context::delete`: writes of objects that are not applied.

use crate::cache::kind::Kind;
use crate::context::own::Ownership;
use crate::context::{Context, attempt};
use crate::{Error, Key, Result};
use kube::api::{DeleteParams, PostParams, Request};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::sync::Arc;

impl Context {
    /// Creates an object, and answers with what the API server made of it.
    ///
    /// One of a kind that the controller [owns](crate::Controller::owns) is named, placed and owned as by [`Context::apply`];
    /// with `metadata.generateName` and without a name the API server names it. One of a kind that the controller only
    /// [needs](crate::Controller::needs) to create gets no owner, and the namespace of the object being
    /// reconciled unless it names another.
    ///
    /// It fails if the object exists. Prefer [`Context::apply`], which may be repeated, wherever the name is known.
    pub async fn create<C>(&self, object: C) -> Result<Arc<C>>
    where
        C: kube::Resource<DynamicType = (), Scope: 'static> + Serialize + DeserializeOwned,
    {
        self.objects::<C>().create(object).await
    }

    /// Deletes an object, and says whether it was there.
    ///
    /// `params` decide on preconditions, propagation and grace period. A name alone means the namespace of the object being
    /// reconciled. The kind must be declared with [`Controller::owns`](crate::Controller::owns), or with the verb `delete` by
    /// [`Controller::needs`](crate::Controller::needs).
    ///
    /// ```
    /// # use flyball::{Context, Result};
    /// # use k8s_openapi::api::{batch::v1::Job, core::v1::Secret};
    /// # use kube::api::DeleteParams;
    /// # async fn forget(ctx: &Context) -> Result<()> {
    /// ctx.delete::<Secret>("token", &DeleteParams::default()).await?;
    /// ctx.delete::<Job>("import", &DeleteParams::foreground()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn delete<C>(&self, key: impl Into<Key>, params: &DeleteParams) -> Result<bool>
    where
        C: kube::Resource<DynamicType = (), Scope: 'static>,
    {
        self.objects::<C>().delete(key, params).await
    }

    pub(super) async fn create_object<C>(&self, kind: &Kind, object: C) -> Result<Arc<C>>
    where
        C: Serialize + DeserializeOwned,
    {
        self.declared.check("create", kind).map_err(Error::permanent)?;
        let object = serde_json::to_value(object)?;
        let is_named_by_server = is_named_by_server(&object);
        let (key, mut object) = match self.declared.owns(kind) {
            true => self.adopt(kind, object, Ownership::Controlled).map_err(Error::permanent)?,
            false => self.placed(kind, object).map_err(Error::permanent)?,
        };
        super::apply::without_nulls(&mut object);
        if let (true, Some(metadata)) = (is_named_by_server, object["metadata"].as_object_mut()) {
            metadata.remove("name");
        }
        let params = PostParams {
            field_manager: Some(self.operator.name.clone()),
            ..PostParams::default()
        };
        let body = serde_json::to_vec(&object)?;
        let request = Request::new(kind.path(key.namespace())).create(&params, body)?;
        let (_, text) = self.request(request).await.map_err(attempt("create", kind, &key))?;
        let created = crate::cache::object::Object::parse(&text)?;
        self.applied.applies(kind, &created.key);
        Ok(created.decode()?)
    }

    pub(super) async fn delete_key(&self, kind: &Kind, key: &Key, params: &DeleteParams) -> Result<bool> {
        self.declared.check("delete", kind).map_err(Error::permanent)?;
        let request = Request::new(kind.path(key.namespace())).delete(key.name(), params)?;
        match self.request(request).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
            deleted => deleted.map(|_| true).map_err(attempt("delete", kind, key)).map_err(Error::from),
        }
    }
}

fn is_named_by_server(object: &Value) -> bool {
    let has = |field: &str| object["metadata"][field].as_str().is_some_and(|text| !text.is_empty());
    has("generateName") && !has("name")
}
