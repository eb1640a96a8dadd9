//! The requests of the operators under test: recorded in order, and answered by the test where it says so.

use crate::{Answer, rights::Use};
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use kube::{Client, client::Body};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

/// Answers a request in the server's place, or lets it pass.
pub(crate) type Fault = Box<dyn FnMut(&Request<Body>) -> Option<Answer> + Send>;

/// What was requested, and the fault that answers in the server's place. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Journal {
    requests: Arc<Mutex<Requests>>,
    fault: Arc<Mutex<Option<Fault>>>,
}

#[derive(Default)]
struct Requests {
    all: Vec<String>,
    /// How many of them [`Journal::new_writes`] has read.
    read: usize,
    /// What the API server allowed.
    used: BTreeSet<Use>,
    /// What it refused for a missing right.
    denied: BTreeSet<Use>,
}

impl Journal {
    /// A client of the same API server whose requests are recorded and may be answered by a fault.
    pub(crate) fn client(&self, client: Client) -> Client {
        let (journal, namespace) = (self.clone(), client.default_namespace().to_owned());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (answer, client, journal) = (journal.record(&request), client.clone(), journal.clone());
            async move {
                if let Some(answer) = answer {
                    return Ok::<_, kube::Error>(answer.response);
                }
                let used = Use::of(request.method(), request.uri());
                let response = client.send(request).await?;
                journal.record_right(used, response.status());
                Ok(response.map(Body::boxed_unsync))
            }
        });
        Client::new(service, namespace)
    }

    fn record(&self, request: &Request<Body>) -> Option<Answer> {
        self.lock().all.push(format!("{} {}", request.method(), request.uri()));
        let mut fault = self.fault.lock().expect("a fault does not panic");
        fault.as_mut()?(request)
    }

    fn record_right(&self, used: Option<Use>, status: StatusCode) {
        let mut requests = self.lock();
        match status {
            StatusCode::FORBIDDEN => requests.denied.extend(used),
            _ => requests.used.extend(used),
        }
    }

    /// What the API server allowed so far.
    pub(crate) fn used(&self) -> BTreeSet<Use> {
        self.lock().used.clone()
    }

    /// What it refused so far.
    pub(crate) fn denied(&self) -> BTreeSet<Use> {
        self.lock().denied.clone()
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.lock().all.clone()
    }

    /// The writes since this was called last.
    pub(crate) fn new_writes(&self) -> Vec<String> {
        let mut requests = self.lock();
        let all = requests.all.len();
        let read = std::mem::replace(&mut requests.read, all);
        let new = requests.all[read..].iter().filter(|request| !request.starts_with("GET "));
        new.cloned().collect()
    }

    pub(crate) fn set_fault(&self, fault: Option<Fault>) {
        *self.fault.lock().expect("a fault does not panic") = fault;
    }

    fn lock(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().expect("nothing panics under this lock")
    }
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Journal of {} requests", self.lock().all.len())
    }
}
