//! Certificates and registration on an API server in the process, over years of virtual time. TLS is spoken through a pipe.

use super::*;
use crate::webhook::WebhookService;
use crate::{Conversion, Review, Validation};
use flyball_test::Cluster;
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use k8s_openapi::{
    ByteString,
    api::{admissionregistration::v1::ValidatingWebhookConfiguration, core::v1::ConfigMap},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{CustomResource, api::PostParams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio_rustls::TlsAcceptor;

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

mod first {
    use super::*;

    #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
    #[kube(group = "example.dev", version = "v1", kind = "Disk", namespaced)]
    pub struct DiskSpec {
        pub size: i64,
    }
}

mod second {
    use super::*;

    #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
    #[kube(group = "example.dev", version = "v2", kind = "Disk", namespaced)]
    pub struct DiskSpec {
        pub size: i64,
    }
}

async fn admit(_: Arc<ConfigMap>, _: Review<ConfigMap>) -> Result<()> {
    Ok(())
}

fn operator() -> Operator {
    let rule =
        Validation::new(admit).rule(|rule| rule.everywhere().failure_policy(crate::webhook::FailurePolicy::Ignore));
    Operator::new("disks").validates(rule)
}

fn keeper(client: &Client, operator: &Operator) -> Keeper {
    let config = Webhook { cert_dir: "/no/such/directory".into(), ..Webhook::default() };
    Keeper::new(client.clone(), operator, &config, Clock::start(), WebhookHealth::new()).unwrap()
}

/// What the API server is told to trust.
async fn trusted(client: &Client) -> String {
    let api: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let configuration = api.get("disks").await.unwrap();
    let ByteString(bundle) = configuration.webhooks.unwrap().remove(0).client_config.ca_bundle.unwrap_or_default();
    String::from_utf8(bundle).unwrap()
}

/// Asks a replica as the API server does, with what it is told to trust, or was.
async fn ask(keeper: &Keeper, bundle: &str) -> Result<()> {
    let (client, server) = tokio::io::duplex(1 << 16);
    let acceptor = TlsAcceptor::from(keeper.certificate.server_config().unwrap());
    let service = WebhookService::new(&keeper.operator, keeper.client.clone());
    let served = tokio::spawn(async move {
        let Ok(stream) = acceptor.accept(server).await else {
            return;
        };
        let connection = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
        connection.await.unwrap_or_default();
    });
    let asked = probe::probe(client, "disks-webhook.default.svc", bundle, keeper.clock).await;
    served.abort();
    asked
}

/// It takes some seconds: each request is a TLS handshake, and there are about a thousand.
#[tokio::test(start_paused = true)]
async fn in_a_year_with_its_rotation_every_request_is_answered_by_every_replica() {
    let cluster = Cluster::without_controllers().await;
    let client = cluster.client();
    let mut replicas = [keeper(&client, &operator()), keeper(&client, &operator())];
    let (mut signers, mut bundles) = (Vec::new(), Vec::new());
    for replica in &mut replicas {
        replica.turn().await.unwrap();
    }
    let start = tokio::time::Instant::now();
    while start.elapsed() < 400 * DAY {
        // An API server that reads the configuration one turn late.
        let late = trusted(&client).await;
        let failed = |error| panic!("after {:?}: {error}", start.elapsed());
        for replica in &mut replicas {
            replica.turn().await.unwrap();
            ask(replica, &late).await.unwrap_or_else(failed);
        }
        let bundle = trusted(&client).await;
        for replica in &replicas {
            ask(replica, &bundle).await.unwrap_or_else(failed);
        }
        let Source::Own { served: Some((signer, _)) } = &replicas[0].source else {
            panic!("its own")
        };
        if signers.last() != Some(signer) {
            signers.push(signer.clone());
        }
        let rotates = bundle.matches("BEGIN").count() > 1;
        if bundles.last() != Some(&bundle) {
            bundles.push(bundle);
        }
        tokio::time::sleep(if rotates { 6 * HOUR } else { 2 * DAY }).await;
    }
    assert_eq!(signers.len(), 2, "an authority signs for two thirds of a year: {signers:?}");
    assert_eq!(bundles.len(), 1 + 3, "a rotation is three changes of what is trusted");
}

#[tokio::test(start_paused = true)]
async fn a_certificate_is_renewed_at_two_thirds_of_its_life_and_after_a_suspend() {
    let cluster = Cluster::without_controllers().await;
    let mut keeper = keeper(&cluster.client(), &operator());
    let served = async |keeper: &mut Keeper| {
        keeper.turn().await.unwrap();
        let Source::Own { served: Some((_, pem)) } = &keeper.source else {
            panic!("its own")
        };
        pem.certificate.clone()
    };
    let first = served(&mut keeper).await;
    tokio::time::sleep(4 * DAY).await;
    assert_eq!(served(&mut keeper).await, first);
    tokio::time::sleep(DAY).await;
    let second = served(&mut keeper).await;
    assert_ne!(second, first);
    // The machine sleeps for a month; the next turn is a minute after it wakes up.
    tokio::time::sleep(30 * DAY).await;
    assert_ne!(served(&mut keeper).await, second);
    ask(&keeper, &trusted(&cluster.client()).await).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn replicas_that_start_together_share_one_authority_and_an_unreadable_one_is_replaced() {
    let cluster = Cluster::without_controllers().await;
    let client = cluster.client();
    let mut replicas: Vec<_> = (0..5).map(|_| keeper(&client, &operator())).collect();
    let turns = replicas.iter_mut().map(Keeper::turn);
    futures::future::try_join_all(turns).await.unwrap();
    let bundle = trusted(&client).await;
    for replica in &replicas {
        ask(replica, &bundle).await.unwrap();
    }
    let api: Api<Secret> = Api::default_namespaced(client.clone());
    let mut secret = api.get("disks-webhook-ca").await.unwrap();
    assert_eq!(secret.data.as_ref().unwrap()["ca.crt"].0, bundle.as_bytes());
    secret.data = Some([("authority.json".into(), ByteString(b"{".to_vec()))].into());
    api.replace("disks-webhook-ca", &PostParams::default(), &secret).await.unwrap();
    for replica in &mut replicas {
        replica.turn().await.unwrap();
    }
    let replaced = trusted(&client).await;
    assert_ne!(replaced, bundle);
    for replica in &replicas {
        ask(replica, &replaced).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_installed_configuration_is_kept_and_only_its_bundle_is_set() {
    let cluster = Cluster::without_controllers().await;
    let client = cluster.client();
    let mut keeper = keeper(&client, &operator());
    keeper.install = false;
    let missing = keeper.turn().await.unwrap_err().to_string();
    assert_eq!(missing, "not installed: ValidatingWebhookConfiguration disks");
    let endpoint = Endpoint::service("disks", "default");
    let mut printed = crate::webhook::registration::configurations(&operator(), &endpoint, None).remove(0);
    printed["webhooks"][0]["timeoutSeconds"] = 3.into();
    let api: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    api.create(&PostParams::default(), &serde_json::from_value(printed).unwrap())
        .await
        .unwrap();
    keeper.turn().await.unwrap();
    let webhook = api.get("disks").await.unwrap().webhooks.unwrap().remove(0);
    assert_eq!(webhook.timeout_seconds, Some(3), "the administrator's");
    ask(&keeper, &trusted(&client).await).await.unwrap();
    let version = api.get("disks").await.unwrap().metadata.resource_version;
    keeper.turn().await.unwrap();
    assert_eq!(
        api.get("disks").await.unwrap().metadata.resource_version,
        version,
        "nothing is written without need"
    );
}

#[tokio::test(start_paused = true)]
async fn files_are_served_and_their_authority_is_trusted() {
    let cluster = Cluster::without_controllers().await;
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    let now = Clock::start().now();
    let names = Endpoint::service("disks", "default").host_names();
    let issued = |authority: &Authority| {
        let pem = authority.issue(&names, now).unwrap();
        write("ca.crt", &authority.bundle());
        write("tls.crt", &pem.certificate);
        write("tls.key", &pem.key);
    };
    issued(&Authority::new("others", now).unwrap());
    let config = Webhook {
        cert_dir: directory.path().display().to_string(),
        ..Webhook::default()
    };
    let client = cluster.client();
    let mut keeper = Keeper::new(client.clone(), &operator(), &config, Clock::start(), WebhookHealth::new()).unwrap();
    let _kept = tokio::spawn(keeper.certificate.clone().keep());
    keeper.turn().await.unwrap();
    ask(&keeper, &trusted(&client).await).await.unwrap();
    issued(&Authority::new("others", now).unwrap());
    tokio::time::sleep(Duration::from_secs(60)).await;
    keeper.turn().await.unwrap();
    ask(&keeper, &trusted(&client).await).await.unwrap();
    let secret: Option<Secret> = Api::default_namespaced(client).get_opt("disks-webhook-ca").await.unwrap();
    assert_eq!(secret, None, "the operator makes no authority of its own");
}

#[tokio::test(start_paused = true)]
async fn a_definition_is_told_whom_to_trust() {
    let up = |disk: first::Disk| Ok(second::Disk::new("", second::DiskSpec { size: disk.spec.size }));
    let down = |disk: second::Disk| Ok(first::Disk::new("", first::DiskSpec { size: disk.spec.size }));
    let operator = Operator::new("disks").converts(Conversion::of::<first::Disk>().then::<second::Disk>(up, down));
    let cluster = Cluster::without_controllers().await;
    let client = cluster.client();
    let mut keeper = keeper(&client, &operator);
    let missing = keeper.turn().await.unwrap_err().to_string();
    assert_eq!(missing, "not installed: CustomResourceDefinition disks.example.dev");
    crate::engine::crds::install(&client, &operator).await.unwrap();
    keeper.turn().await.unwrap();
    let definition =
        async || -> CustomResourceDefinition { Api::all(client.clone()).get("disks.example.dev").await.unwrap() };
    let client_config = definition().await.spec.conversion.unwrap().webhook.unwrap().client_config.unwrap();
    let bundle = String::from_utf8(client_config.ca_bundle.unwrap().0).unwrap();
    ask(&keeper, &bundle).await.unwrap();
    let version = definition().await.metadata.resource_version;
    crate::engine::crds::install(&client, &operator).await.unwrap();
    keeper.turn().await.unwrap();
    assert_eq!(definition().await.metadata.resource_version, version, "installer and keeper agree");
}
