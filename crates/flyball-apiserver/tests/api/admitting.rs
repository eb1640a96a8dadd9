//! The built-in admission plugins.

use crate::ask::Server;
use flyball_apiserver::ServerOptions;
use flyball_store::Store;
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/default/pods";

fn pod(name: &str, spec: Value) -> Value {
    let mut pod = json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "a:1"}]}});
    for (field, value) in spec.as_object().unwrap() {
        pod["spec"][field] = value.clone();
    }
    pod
}

async fn refusal(server: &Server, path: &str, object: Value) -> String {
    let answer = server.post(path, object).await;
    assert_eq!(answer.code, 403, "{}", answer.body);
    answer.body["message"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_pod_gets_the_token_of_its_account() {
    let server = Server::start().await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    server
        .post(
            accounts,
            json!({"metadata": {"name": "robot"}, "imagePullSecrets": [{"name": "registry"}]}),
        )
        .await;

    let created = server.post(PODS, pod("a", json!({"serviceAccountName": "robot"}))).await.body;

    let volume = &created["spec"]["volumes"][0];
    let name = volume["name"].as_str().unwrap();
    assert!(name.starts_with("kube-api-access-"), "{name}");
    assert_eq!(volume["projected"]["sources"][0]["serviceAccountToken"]["expirationSeconds"], 3607);
    assert_eq!(volume["projected"]["sources"][1]["configMap"]["name"], "kube-root-ca.crt");
    let mount = json!([{"name": name, "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}]);
    assert_eq!(created["spec"]["containers"][0]["volumeMounts"], mount);
    assert_eq!(created["spec"]["imagePullSecrets"], json!([{"name": "registry"}]));
    let automount = json!({"serviceAccountName": "robot", "automountServiceAccountToken": false});
    let without = server.post(PODS, pod("b", automount)).await.body;
    assert_eq!(without["spec"].get("volumes"), None);
}

#[tokio::test(start_paused = true)]
async fn a_pod_needs_an_account_unless_the_plugin_is_disabled() {
    let server = Server::start().await;
    server.post("/api/v1/namespaces", json!({"metadata": {"name": "bare"}})).await;
    let message = refusal(&server, "/api/v1/namespaces/bare/pods", pod("a", json!({}))).await;
    let missing = "error looking up service account bare/default: serviceaccount \"default\" not found";
    assert_eq!(message, format!("pods \"a\" is forbidden: {missing}"));

    let disabled = vec!["ServiceAccount".to_owned()];
    let options = ServerOptions {
        disabled_admission_plugins: disabled,
        ..ServerOptions::default()
    };
    let server = Server::with(Store::memory(), options).await;
    server.post("/api/v1/namespaces", json!({"metadata": {"name": "bare"}})).await;
    assert_eq!(server.post("/api/v1/namespaces/bare/pods", pod("a", json!({}))).await.code, 201);

    let mandatory = ServerOptions {
        disabled_admission_plugins: vec!["EscalationCheck".into()],
        ..ServerOptions::default()
    };
    assert!(mandatory.start(Store::memory()).await.is_err());
    let unknown = ServerOptions {
        disabled_admission_plugins: vec!["Nothing".into()],
        ..ServerOptions::default()
    };
    let refused = unknown.start(Store::memory()).await.err().unwrap();
    assert_eq!(refused.message, "unknown admission plugin \"Nothing\"");
}

#[tokio::test(start_paused = true)]
async fn an_account_that_appears_a_moment_later_is_found() {
    let server = Server::start().await;
    server.post("/api/v1/namespaces", json!({"metadata": {"name": "new"}})).await;
    let later = server.clone();
    let account = tokio::spawn(async move {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        later.account("new").await;
    });

    assert_eq!(server.post("/api/v1/namespaces/new/pods", pod("a", json!({}))).await.code, 201);
    account.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_account_may_limit_the_secrets_of_its_pods() {
    let server = Server::start().await;
    let annotations = json!({"kubernetes.io/enforce-mountable-secrets": "true"});
    let account = json!({"metadata": {"name": "strict", "annotations": annotations}, "secrets": [{"name": "known"}],
        "automountServiceAccountToken": false});
    server.post("/api/v1/namespaces/default/serviceaccounts", account).await;
    let mount = |secret: &str| {
        let volumes = json!([{"name": "v", "secret": {"secretName": secret}}]);
        pod(secret, json!({"serviceAccountName": "strict", "volumes": volumes}))
    };

    let message = refusal(&server, PODS, mount("other")).await;

    let why = "volume with secret.secretName=\"other\" is not allowed because service account strict does not reference \
        that secret";
    assert_eq!(message, format!("pods \"other\" is forbidden: {why}"));
    assert_eq!(server.post(PODS, mount("known")).await.code, 201);
}

#[tokio::test(start_paused = true)]
async fn priorities_come_from_classes() {
    let server = Server::start().await;
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    let usual = json!({"metadata": {"name": "usual"}, "value": 7, "globalDefault": true, "preemptionPolicy": "Never"});
    assert_eq!(server.post(classes, usual).await.code, 201);

    let created = server.post(PODS, pod("a", json!({}))).await.body;
    assert_eq!(created["spec"]["priority"], 7);
    assert_eq!(created["spec"]["priorityClassName"], "usual");
    assert_eq!(created["spec"]["preemptionPolicy"], "Never");
    let critical = pod("b", json!({"priorityClassName": "system-node-critical"}));
    assert_eq!(server.post(PODS, critical).await.body["spec"]["priority"], 2_000_001_000);
    let message = refusal(&server, PODS, pod("c", json!({"priority": 8}))).await;
    assert!(
        message.contains("the integer value of priority (8) must not be provided in pod spec"),
        "{message}"
    );
    let second = json!({"metadata": {"name": "second"}, "value": 8, "globalDefault": true});
    let message = refusal(&server, classes, second).await;
    assert!(
        message.ends_with("PriorityClass usual is already marked as default. Only one default can exist"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn classes_of_storage_and_of_ingresses_have_defaults() {
    let server = Server::start().await;
    let annotations = json!({"storageclass.kubernetes.io/is-default-class": "true"});
    let class = json!({"metadata": {"name": "fast", "annotations": annotations}, "provisioner": "p",
        "allowVolumeExpansion": true});
    server.post("/apis/storage.k8s.io/v1/storageclasses", class).await;
    let annotations = json!({"ingressclass.kubernetes.io/is-default-class": "true"});
    let class =
        json!({"metadata": {"name": "front", "annotations": annotations}, "spec": {"controller": "example.com/x"}});
    server.post("/apis/networking.k8s.io/v1/ingressclasses", class).await;

    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let mut claim = server.post(claims, json!({"metadata": {"name": "c"}, "spec": spec})).await.body;
    assert_eq!(claim["spec"]["storageClassName"], "fast");
    assert_eq!(claim["metadata"]["finalizers"], json!(["kubernetes.io/pvc-protection"]));
    let backend = json!({"service": {"name": "s", "port": {"number": 80}}});
    let ingress = json!({"metadata": {"name": "i"}, "spec": {"defaultBackend": backend}});
    let ingress = server.post("/apis/networking.k8s.io/v1/namespaces/default/ingresses", ingress).await.body;
    assert_eq!(ingress["spec"]["ingressClassName"], "front");

    claim["spec"]["resources"]["requests"]["storage"] = "2Gi".into();
    let refused = server.put(&format!("{claims}/c"), claim).await;
    assert_eq!(refused.code, 422, "an unbound claim does not change: {}", refused.body);
}

#[tokio::test(start_paused = true)]
async fn runtime_classes_add_overhead_and_scheduling() {
    let server = Server::start().await;
    let scheduling = json!({"nodeSelector": {"vm": "yes"}, "tolerations": [{"key": "vm", "operator": "Exists"}]});
    let class = json!({"metadata": {"name": "vm"}, "handler": "vm", "overhead": {"podFixed": {"cpu": "250m"}},
        "scheduling": scheduling});
    let classes = "/apis/node.k8s.io/v1/runtimeclasses";
    assert_eq!(server.post(classes, class).await.code, 201);

    let created = server.post(PODS, pod("a", json!({"runtimeClassName": "vm"}))).await.body;

    assert_eq!(created["spec"]["overhead"], json!({"cpu": "250m"}));
    assert_eq!(created["spec"]["nodeSelector"], json!({"vm": "yes"}));
    assert_eq!(created["spec"]["tolerations"].as_array().unwrap().len(), 3);
    let message = refusal(&server, PODS, pod("b", json!({"runtimeClassName": "none"}))).await;
    assert_eq!(message, "pods \"b\" is forbidden: pod rejected: RuntimeClass \"none\" not found");
    let conflicting = pod("c", json!({"runtimeClassName": "vm", "nodeSelector": {"vm": "no"}}));
    let message = refusal(&server, PODS, conflicting).await;
    assert!(
        message.contains("runtimeClass.scheduling.nodeSelector[vm] = yes; pod.spec.nodeSelector[vm] = no"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_bound_pod_gets_the_zone_of_its_node() {
    let server = Server::start().await;
    let labels = json!({"topology.kubernetes.io/zone": "z", "other": "o"});
    server.post("/api/v1/nodes", json!({"metadata": {"name": "n", "labels": labels}})).await;
    server.post(PODS, pod("a", json!({}))).await;

    let binding = json!({"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}});
    assert_eq!(server.post(&format!("{PODS}/a/binding"), binding).await.code, 201);

    let bound = server.get(&format!("{PODS}/a")).await.body;
    assert_eq!(bound["metadata"]["labels"], json!({"topology.kubernetes.io/zone": "z"}));
}

#[tokio::test(start_paused = true)]
async fn nobody_asks_for_a_certificate_of_the_masters() {
    let server = Server::start().await;
    let path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let request = |organization: &str| {
        use base64::prelude::{BASE64_STANDARD, Engine};
        let mut params = rcgen::CertificateParams::default();
        params.distinguished_name.push(rcgen::DnType::OrganizationName, organization);
        let key = rcgen::KeyPair::generate().unwrap();
        let pem = params.serialize_request(&key).unwrap().pem().unwrap();
        let spec = json!({"signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"],
            "request": BASE64_STANDARD.encode(pem)});
        json!({"metadata": {"generateName": "r"}, "spec": spec})
    };

    let message = refusal(&server, path, request("system:masters")).await;

    assert!(message.ends_with("signer with system:masters group is not allowed"), "{message}");
    assert_eq!(server.post(path, request("developers")).await.code, 201);
}

#[tokio::test(start_paused = true)]
async fn pods_meet_the_standard_of_their_namespace() {
    let server = Server::start().await;
    let labels =
        json!({"pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/warn": "restricted"});
    server
        .post("/api/v1/namespaces", json!({"metadata": {"name": "safe", "labels": labels}}))
        .await;
    server.account("safe").await;
    let pods = "/api/v1/namespaces/safe/pods";

    let message = refusal(&server, pods, pod("a", json!({"hostNetwork": true}))).await;
    let detail = "violates PodSecurity \"baseline:latest\": host namespaces (hostNetwork=true)";
    assert_eq!(message, format!("pods \"a\" is forbidden: {detail}"));

    let warned = server.post(pods, pod("b", json!({}))).await;
    assert_eq!(warned.code, 201);
    let warning = warned.headers["warning"].to_str().unwrap();
    assert!(warning.contains("would violate PodSecurity"), "{warning}");

    let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    let stricter = server
        .patch("merge-patch+json", "/api/v1/namespaces/safe", json!({"metadata": {"labels": labels}}))
        .await;
    let warnings: Vec<&str> = stricter.headers.get_all("warning").iter().map(|one| one.to_str().unwrap()).collect();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(
        warnings[1].contains("b: allowPrivilegeEscalation != false, unrestricted capabilities"),
        "{warnings:?}"
    );
}
