//! Priority and fairness: FlowSchemas assign each request to a priority level, which limits how many are handled at a time.
// apiserver/pkg/util/flowcontrol

mod configuration;
mod schema;
pub(crate) mod seats;
pub(crate) mod status;

use crate::flow_control::configuration::Configuration;
use crate::flow_control::seats::{Admission, Seats};
use crate::request::context::RequestContext;
use crate::status::Result;
use crate::store_index::StoreIndex;
use flyball_store::Store;
use http::HeaderValue;
use std::sync::{Arc, Mutex, PoisonError};

/// The API group of FlowSchemas and PriorityLevelConfigurations.
pub(crate) const GROUP: &str = "flowcontrol.apiserver.k8s.io";

/// The FlowSchemas and priority levels of a server, and the requests that its levels handle.
pub(crate) struct FlowControl {
    configuration: StoreIndex<Configuration>,
    seats: Arc<Mutex<Seats>>,
}

/// How a request is classified.
pub(crate) struct Classified {
    /// The uid of the FlowSchema that matches the request.
    pub schema_uid: HeaderValue,
    /// The uid of its priority level.
    pub level_uid: HeaderValue,
    /// Whether the request may be handled.
    pub admission: Admission,
}

impl FlowControl {
    /// The flow control of a server that handles `total` requests at a time; 0 sets no limit.
    pub fn new(total: usize) -> FlowControl {
        FlowControl {
            configuration: StoreIndex::default(),
            seats: Arc::new(Mutex::new(Seats::new(total))),
        }
    }

    /// Reads the schemas and levels, so that no request has to wait for it.
    pub async fn load(&self, store: &Store) -> Result<()> {
        self.configuration.read(store).await.map(drop)
    }

    /// Finds the level of a request, and asks it for a seat.
    pub async fn classify(&self, context: &RequestContext) -> Result<Classified> {
        let configuration = self.configuration.read(context.server.store()).await?;
        let schema = configuration.schema_of(&context.user, &context.info);
        let level = configuration.level_of(schema);
        let admission = match &level.limits {
            None => Admission::Exempt,
            Some(_) => {
                let flow = schema.flow(&context.user, &context.info);
                let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
                seats.configure(&configuration);
                seats.request(&self.seats, &level.name, flow)
            }
        };
        Ok(Classified {
            schema_uid: schema.uid.clone(),
            level_uid: level.uid.clone(),
            admission,
        })
    }

    /// Waits until the change of a schema or level takes effect.
    pub async fn reached(&self, revision: u64) {
        self.configuration.reached(revision).await;
    }
}
