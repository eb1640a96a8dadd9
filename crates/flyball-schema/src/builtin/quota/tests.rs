//! Charges of quotas, case by case.

use super::*;
use serde_json::json;

const PODS: Resource<'static> = Resource { group: "", plural: "pods" };

fn quota(hard: Value, used: Value) -> Value {
    json!({"metadata": {"name": "q"}, "spec": {"hard": hard}, "status": {"hard": hard, "used": used}})
}

fn pod(resources: Value) -> Value {
    json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "resources": resources}]}})
}

fn create<'a>(resource: Resource<'a>, object: &'a Value) -> Write<'a> {
    Write {
        resource,
        subresource: None,
        object,
        old: None,
        now: Timestamp::UNIX_EPOCH,
    }
}

#[test]
fn a_pod_is_charged_for_what_the_quota_restricts() {
    let quota = quota(json!({"pods": "2", "requests.cpu": "1"}), json!({"pods": "1", "requests.cpu": "250m"}));
    let pod = pod(json!({"requests": {"cpu": "500m", "memory": "1Gi"}}));

    let charged = charge(&[quota], &create(PODS, &pod));

    assert_eq!(charged, Ok(vec![Some(json!({"pods": "2", "requests.cpu": "750m"}))]));
}

#[test]
fn a_pod_that_exceeds_a_quota_is_refused() {
    let quota = quota(json!({"pods": "2", "requests.cpu": "1"}), json!({"pods": "1", "requests.cpu": "750m"}));
    let pod = pod(json!({"requests": {"cpu": "500m"}}));

    let why = "exceeded quota: q, requested: requests.cpu=500m, used: requests.cpu=750m, limited: requests.cpu=1";
    assert_eq!(charge(&[quota], &create(PODS, &pod)), Err(why.to_owned()));
}

#[test]
fn containers_declare_what_a_quota_restricts() {
    let quota = quota(json!({"limits.cpu": "2", "memory": "1Gi"}), json!({}));

    let why = "failed quota: q: must specify limits.cpu for: c; memory for: c";
    assert_eq!(charge(&[quota], &create(PODS, &pod(json!({})))), Err(why.to_owned()));
}

#[test]
fn a_quota_whose_usage_is_unknown_refuses() {
    let quota = quota(json!({"pods": "2", "count/pods": "3"}), json!({"pods": "1"}));

    let why = "status unknown for quota: q, resources: count/pods,pods";
    assert_eq!(charge(&[quota], &create(PODS, &pod(json!({})))), Err(why.to_owned()));
}

#[test]
fn an_update_is_charged_for_the_difference() {
    let services = Resource { group: "", plural: "services" };
    let service = |kind: &str| json!({"spec": {"type": kind, "ports": [{"port": 1}, {"port": 2}]}});
    let quota = quota(
        json!({"services.nodeports": "2", "services": "1"}),
        json!({"services.nodeports": "0", "services": "1"}),
    );
    let (old, new) = (service("ClusterIP"), service("NodePort"));

    let write = Write { old: Some(&old), ..create(services, &new) };

    assert!(write.is_measured());
    assert_eq!(
        charge(&[quota], &write),
        Ok(vec![Some(json!({"services": "1", "services.nodeports": "2"}))])
    );
}

#[test]
fn scopes_select_pods() {
    let pod = pod(json!({"requests": {"cpu": "1"}}));
    let mut urgent = pod.clone();
    urgent["spec"]["priorityClassName"] = "urgent".into();
    urgent["spec"]["activeDeadlineSeconds"] = 5.into();
    let selector = |operator: &str, values: &[&str]| {
        let requirement = json!({"scopeName": "PriorityClass", "operator": operator, "values": values});
        json!({"spec": {"scopeSelector": {"matchExpressions": [requirement]}}})
    };
    let scopes = |scope: &str| json!({"spec": {"scopes": [scope]}});
    for (quota, plain, special) in [
        (scopes("BestEffort"), false, false),
        (scopes("NotBestEffort"), true, true),
        (scopes("Terminating"), false, true),
        (scopes("NotTerminating"), true, false),
        (scopes("PriorityClass"), false, true),
        (selector("In", &["urgent", "other"]), false, true),
        (selector("NotIn", &["urgent"]), true, false),
        (selector("DoesNotExist", &[]), true, false),
    ] {
        let found = (includes(PODS, &quota, &pod), includes(PODS, &quota, &urgent));
        assert_eq!(found, (plain, special), "{quota}");
    }
}

#[test]
fn objects_of_any_kind_are_counted() {
    let widgets = Resource { group: "example.com", plural: "widgets" };
    let quota = quota(json!({"count/widgets.example.com": "1"}), json!({"count/widgets.example.com": "1"}));

    let why = "exceeded quota: q, requested: count/widgets.example.com=1, used: count/widgets.example.com=1, \
        limited: count/widgets.example.com=1";
    assert_eq!(charge(&[quota], &create(widgets, &json!({}))), Err(why.to_owned()));
}

#[test]
fn claims_are_charged_to_their_class_in_whole_bytes() {
    let claims = Resource { group: "", plural: "persistentvolumeclaims" };
    let requests = json!({"requests": {"storage": "1500m"}});
    let claim = json!({"spec": {"storageClassName": "gold", "resources": requests}});

    let used = usage(claims, &claim, Timestamp::UNIX_EPOCH);

    let expected = json!({
        "count/persistentvolumeclaims": "1",
        "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
        "gold.storageclass.storage.k8s.io/requests.storage": "2",
        "persistentvolumeclaims": "1",
        "requests.storage": "2",
    });
    assert_eq!(to_value(&used), expected);
}
