//! An operator as a value: its name, its kinds and its controllers. It is inert until it is started.

use crate::{Controller, Result, Running};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;

/// Everything that runs under one name.
///
/// The name is the field manager of every write, and the operator's name in logs and events.
#[derive(Clone, Debug)]
pub struct Operator {
    name: String,
    crds: Vec<CustomResourceDefinition>,
    controllers: Vec<Controller>,
}

impl Operator {
    /// An operator that does nothing yet.
    pub fn new(name: impl Into<String>) -> Operator {
        Operator { name: name.into(), crds: Vec::new(), controllers: Vec::new() }
    }

    /// Declares a kind that the operator brings along; it is installed when the operator starts.
    pub fn crd(mut self, crd: CustomResourceDefinition) -> Operator {
        self.crds.push(crd);
        self
    }

    /// Adds a controller.
    pub fn controller(mut self, controller: Controller) -> Operator {
        self.controllers.push(controller);
        self
    }

    /// The operator's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kinds that the operator brings along.
    pub fn crds(&self) -> &[CustomResourceDefinition] {
        &self.crds
    }

    /// Installs the operator's kinds and starts its controllers.
    ///
    /// The same operator may be started any number of times: after a stop, or on several clusters.
    pub async fn start(&self, client: Client) -> Result<Running> {
        Running::start(self, client).await
    }

    pub(crate) fn controllers(&self) -> &[Controller] {
        &self.controllers
    }
}
