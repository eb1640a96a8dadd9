//! Calls of webhooks: by URL or Service over TLS, or of a service in this process. What is sent and what an answer means
//! is left to admission and conversion.
// apiserver/pkg/util/webhook

mod client;
mod client_config;
mod connector;
mod error;
mod review;
mod services;

pub(crate) use client::WebhookClient;
pub(crate) use client_config::ClientConfig;
pub(crate) use review::decode;
pub use services::{Registration, WebhookAddress, WebhookServices};
