//! Raw requests to an API server in this process.

use flyball_apiserver::{ApiServer, Body, ServerOptions, User};
use flyball_store::Store;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

/// An API server, and a short way to send it requests as a user.
#[derive(Clone)]
pub struct Server(pub ApiServer, User);

/// What it answered.
#[derive(Debug)]
pub struct Answer {
    pub code: u16,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Server {
    pub async fn start() -> Server {
        Server::over(Store::memory()).await
    }

    pub async fn over(store: Store) -> Server {
        Server::with(store, ServerOptions::default()).await
    }

    pub async fn with(store: Store, options: ServerOptions) -> Server {
        let server = Server(options.start(store).await.unwrap(), User::admin());
        server.account("default").await;
        server
    }

    /// Makes the service account of a namespace's pods, as a controller of a cluster does; its token is not mounted.
    pub async fn account(&self, namespace: &str) {
        let account = json!({"metadata": {"name": "default"}, "automountServiceAccountToken": false});
        let answer = self.post(&format!("/api/v1/namespaces/{namespace}/serviceaccounts"), account).await;
        assert!(matches!(answer.code, 201 | 409), "{}", answer.body);
    }

    /// The same server, asked by another user.
    pub fn by(&self, user: User) -> Server {
        Server(self.0.clone(), user)
    }

    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.0.as_user(User::admin()), "default")
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.ask(Method::GET, path, "").await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.ask(Method::POST, path, &body.to_string()).await
    }

    pub async fn put(&self, path: &str, body: Value) -> Answer {
        self.ask(Method::PUT, path, &body.to_string()).await
    }

    pub async fn delete(&self, path: &str, body: Value) -> Answer {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        self.ask(Method::DELETE, path, &body).await
    }

    pub async fn patch(&self, kind: &str, path: &str, body: Value) -> Answer {
        self.send(Method::PATCH, path, &format!("application/{kind}"), &body.to_string()).await
    }

    pub async fn ask(&self, method: Method, path: &str, body: &str) -> Answer {
        self.send(method, path, "application/json", body).await
    }

    pub async fn send(&self, method: Method, path: &str, content_type: &str, body: &str) -> Answer {
        Answer::read(self.raw(method, path, content_type, body).await).await
    }

    /// Sends a request that no user of the process vouches for.
    pub async fn without_user(&self, method: Method, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        Answer::read(self.0.respond(request(method, path, headers, body)).await).await
    }

    pub async fn raw(&self, method: Method, path: &str, content_type: &str, body: &str) -> Response<Body> {
        self.with_headers(method, path, &[("content-type", content_type)], body).await
    }

    pub async fn with_headers(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response<Body> {
        let request = request(method, path, headers, body);
        self.0.as_user(self.1.clone()).respond(request).await
    }

    /// Opens a watch.
    pub async fn watch(&self, path: &str) -> Watch {
        let response = self.raw(Method::GET, path, "application/json", "").await;
        assert_eq!(response.status(), 200, "watch {path}");
        Watch { body: response.into_body(), rest: Vec::new() }
    }
}

fn request(method: Method, path: &str, headers: &[(&str, &str)], body: &str) -> Request<Full<bytes::Bytes>> {
    let request = Request::builder().method(method).uri(path).header("user-agent", "tester/1.0");
    headers
        .iter()
        .fold(request, |request, (name, value)| request.header(*name, *value))
        .body(Full::new(bytes::Bytes::from(body.to_owned())))
        .unwrap()
}

impl Answer {
    async fn read(response: Response<Body>) -> Answer {
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let body = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
        Answer { code: parts.status.as_u16(), headers: parts.headers, body }
    }
}

/// An open watch.
pub struct Watch {
    body: Body,
    rest: Vec<u8>,
}

impl Watch {
    /// The next event as `TYPE name`, and the event; none when the watch is over.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let frame = self.body.frame().await?.unwrap();
            self.rest.extend_from_slice(&frame.into_data().unwrap());
        }
    }

    /// The next event as `TYPE name`.
    pub async fn words(&mut self) -> String {
        match self.next().await {
            Some(event) => {
                let name = event["object"]["metadata"]["name"].as_str().unwrap_or("-");
                format!("{} {name}", event["type"].as_str().unwrap())
            }
            None => "end".into(),
        }
    }
}
