//! Webhooks and rules of an operator through the admission of the API server, in the process.

use flyball::webhook::{FailurePolicy, Operation};
use flyball::{Action, CelRule, Context, Controller, Defaulting, Operator, Result, Review, Validation, Violations};
use flyball_test::Cluster;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::{
    Api, CustomResource, CustomResourceExt, Error, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    core::Status,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.dev", version = "v1", kind = "Disk", namespaced)]
struct DiskSpec {
    size: i64,
    class: Option<String>,
}

async fn validate(disk: Arc<Disk>, review: Review<Disk>) -> Result<()> {
    let mut violations = Violations::default();
    if disk.spec.size > 100 {
        violations.invalid("spec.size", disk.spec.size, "must be at most 100");
    }
    if review.old().is_some_and(|old| old.spec.size > disk.spec.size) {
        violations.forbidden("spec.size", "a disk does not shrink");
    }
    if review.operation() == Operation::Delete && disk.spec.size == 100 {
        violations.forbidden("metadata", "the largest disk is kept");
    }
    violations.check()
}

async fn complete(mut disk: Disk, _: Review<Disk>) -> Result<Disk> {
    disk.spec.class.get_or_insert_with(|| "standard".into());
    Ok(disk)
}

async fn reconcile(_: Arc<Disk>, _: Context) -> Result {
    Ok(Action::await_change())
}

fn operator() -> Operator {
    let everything = [Operation::Create, Operation::Update, Operation::Delete];
    Operator::new("disks")
        .crd(Disk::crd())
        .validates(Validation::new(validate).rule(|rule| rule.operations(everything)))
        .defaults(Defaulting::new(complete))
        .controller(Controller::new(reconcile).cleanup(|_, _| async { Ok(()) }))
}

fn disk(name: &str, size: i64) -> Disk {
    Disk::new(name, DiskSpec { size, class: None })
}

fn disks(cluster: &Cluster) -> Api<Disk> {
    Api::default_namespaced(cluster.client())
}

fn refusal<T: std::fmt::Debug>(answer: Result<T, Error>) -> Status {
    match answer {
        Err(Error::Api(status)) => *status,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn objects_are_completed_and_refused_with_the_field_that_is_wrong() {
    let cluster = Cluster::with(operator()).await;
    let created = cluster.create(disk("ada", 10)).await;
    assert_eq!(created.spec.class.as_deref(), Some("standard"));

    let status = refusal(disks(&cluster).create(&PostParams::default(), &disk("bob", 101)).await);
    assert_eq!(
        status.message,
        "admission webhook \"validate-disks.example.dev\" denied the request: Disk.example.dev \"bob\" is invalid: \
         spec.size: Invalid value: 101: must be at most 100"
    );
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    let causes = status.details.unwrap().causes;
    assert_eq!((causes[0].field.as_str(), causes[0].reason.as_str()), ("spec.size", "FieldValueInvalid"));

    let shrink = Patch::Merge(json!({ "spec": { "size": 9 } }));
    let status = refusal(disks(&cluster).patch("ada", &PatchParams::default(), &shrink).await);
    assert!(
        status.message.ends_with("spec.size: Forbidden: a disk does not shrink"),
        "{}",
        status.message
    );

    cluster.merge::<Disk>("ada", json!({ "spec": { "size": 100 } })).await;
    let status = refusal(disks(&cluster).delete("ada", &DeleteParams::default()).await);
    assert!(status.message.ends_with("the largest disk is kept"), "{}", status.message);
}

#[tokio::test(start_paused = true)]
async fn the_namespaces_of_the_system_and_of_the_operator_are_left_alone() {
    let cluster = Cluster::with(operator()).await;
    for name in ["flyball-test", "others"] {
        let namespace: Namespace = serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
        cluster.create(namespace).await;
    }
    for (namespace, asked) in [("kube-system", false), ("flyball-test", false), ("others", true)] {
        let api: Api<Disk> = Api::namespaced(cluster.client(), namespace);
        let created = api.create(&PostParams::default(), &disk("ada", 1000)).await;
        assert_eq!(created.is_err(), asked, "{namespace}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_condition_decides_before_the_webhook_and_a_wrong_one_is_refused_at_start() {
    let conditional = |expression: &'static str| {
        let rule = Validation::new(validate).rule(move |rule| rule.condition("class", expression));
        Operator::new("disks").crd(Disk::crd()).validates(rule)
    };
    let cluster = Cluster::with(conditional("!has(object.spec.class) || object.spec.class != 'any'")).await;
    let large = Disk::new("ada", DiskSpec { size: 101, class: Some("any".into()) });
    cluster.create(large).await;
    assert!(disks(&cluster).create(&PostParams::default(), &disk("bob", 101)).await.is_err());

    let refused = tokio::spawn(async move { Cluster::with(conditional("object.spec.class = 'any'")).await });
    let message = *refused.await.unwrap_err().into_panic().downcast::<String>().unwrap();
    assert!(
        message.contains("apply ValidatingWebhookConfiguration disks")
            && message.contains("matchConditions[0].expression"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn while_the_operator_is_down_its_failure_policy_decides() {
    let ignoring = Validation::new(validate).rule(|rule| rule.failure_policy(FailurePolicy::Ignore));
    let ignoring = Operator::new("ignoring").crd(Disk::crd()).validates(ignoring);
    let mut cluster = Cluster::with(ignoring).await;
    assert!(disks(&cluster).create(&PostParams::default(), &disk("ada", 101)).await.is_err());
    cluster.crash("ignoring");
    cluster.create(disk("ada", 101)).await;

    cluster.run(operator()).await;
    cluster.crash("disks");
    let status = refusal(disks(&cluster).create(&PostParams::default(), &disk("bob", 1)).await);
    assert!(status.message.contains("failed calling webhook"), "{}", status.message);
    cluster.restart("disks").await;
    cluster.create(disk("bob", 1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_can_be_removed_from_an_object_that_is_wrong_by_now() {
    let controller = || Controller::new(reconcile).cleanup(|_, _| async { Ok(()) });
    let careless = Operator::new("disks").crd(Disk::crd()).controller(controller());
    let mut cluster = Cluster::with(careless.clone()).await;
    cluster.create(disk("ada", 1000)).await;
    cluster.until("ada", |disk: &Disk| !disk.finalizers().is_empty()).await;
    cluster.stop("disks").await;
    cluster.run(careless.validates(Validation::new(validate))).await;
    let label = Patch::Merge(json!({ "metadata": { "labels": { "a": "b" } } }));
    assert!(disks(&cluster).patch("ada", &PatchParams::default(), &label).await.is_err());
    cluster.delete::<Disk>("ada").await;
    cluster.until_gone::<Disk>("ada").await;
}

#[tokio::test(start_paused = true)]
async fn a_rule_in_cel_is_part_of_the_schema_or_a_policy() {
    let cluster = Cluster::with(
        Operator::new("rules")
            .crd(Disk::crd())
            .rule::<Disk>(CelRule::new("self.spec.size > 0", "must be greater than zero").field(".spec.size"))
            .rule::<Disk>(CelRule::new("self.spec.size >= oldSelf.spec.size", "a disk does not shrink").as_policy())
            .rule::<Secret>(CelRule::new("!('plain' in self.data)", "no plain Secrets").field(".data")),
    )
    .await;
    let status = refusal(disks(&cluster).create(&PostParams::default(), &disk("ada", 0)).await);
    assert!(
        status.message.contains("spec.size: Invalid value: must be greater than zero"),
        "{}",
        status.message
    );
    cluster.create(disk("ada", 10)).await;
    let shrink = Patch::Merge(json!({ "spec": { "size": 9 } }));
    let status = refusal(disks(&cluster).patch("ada", &PatchParams::default(), &shrink).await);
    assert!(status.message.ends_with("denied request: a disk does not shrink"), "{}", status.message);
    let secret = |key: &str| -> Secret {
        serde_json::from_value(json!({ "metadata": { "name": "ada" }, "data": { key: "AA==" } })).unwrap()
    };
    let api: Api<Secret> = Api::default_namespaced(cluster.client());
    let status = refusal(api.create(&PostParams::default(), &secret("plain")).await);
    assert!(status.message.ends_with("denied request: data: no plain Secrets"), "{}", status.message);
    cluster.create(secret("fine")).await;
}

#[tokio::test(start_paused = true)]
async fn a_warning_reaches_the_client() {
    async fn warn(_: Arc<ConfigMap>, review: Review<ConfigMap>) -> Result<()> {
        review.warn(format!("{} is read by nobody", review.name()));
        Ok(())
    }
    let cluster = Cluster::with(Operator::new("warner").validates(Validation::new(warn))).await;
    let body = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "ada" } }).to_string();
    let request =
        http::Request::post("/api/v1/namespaces/default/configmaps").header("content-type", "application/json");
    let request = request.body(kube::client::Body::from(body.into_bytes())).unwrap();
    let response = cluster.client().send(request).await.unwrap();
    let warning = response.headers()["warning"].to_str().unwrap().to_owned();
    assert!(response.status() == 201 && warning.contains("ada is read by nobody"), "{warning}");
}
