//! `Table`: what `kubectl get` shows. Which columns a kind has and what stands in them; the kinds that users look at
//! most have columns of their own, custom resources have those of their definition, all others a name and a time.

mod admission;
mod age;
mod custom;
mod event;
mod job;
mod network;
mod node;
mod plain;
mod pod;
mod policy;
mod service;
mod storage;
mod workload;

use crate::negotiate::{Include, Meta};
use crate::registry::Kind;
use jiff::Timestamp;
use serde_json::{Value, json};

/// Prints objects of one kind.
pub struct Printer {
    columns: Vec<Value>,
    cells: Cells,
}

enum Cells {
    BuiltIn(fn(&Value, Timestamp) -> Vec<Value>),
    Each(&'static [Shown]),
    Custom(Vec<custom::Column>),
}

/// A column of a built-in kind.
struct Column {
    name: &'static str,
    kind: &'static str,
    description: &'static str,
    /// Shown by `-o wide` only.
    wide: bool,
}

/// A column and what stands in it.
type Shown = (Column, fn(&Value, Timestamp) -> Value);

impl Printer {
    /// The printer for a kind.
    pub fn of(kind: &Kind) -> Printer {
        if let Some(custom) = &kind.custom {
            let own = match &custom.columns[..] {
                [] => &[custom::default_column()],
                columns => columns,
            };
            let columns = std::iter::once(definition(&NAME)).chain(own.iter().map(custom::definition)).collect();
            let cells = Cells::Custom(own.iter().map(custom::Column::new).collect());
            return Printer { columns, cells };
        }
        if let Some(shown) = shown(&kind.resource.group, &kind.resource.kind) {
            return Printer {
                columns: shown.iter().map(|(column, _)| definition(column)).collect(),
                cells: Cells::Each(shown),
            };
        }
        let (columns, cells) = built_in(&kind.resource.group, &kind.resource.kind);
        Printer {
            columns: columns.iter().map(definition).collect(),
            cells: Cells::BuiltIn(cells),
        }
    }

    /// A table of these objects. `metadata` is that of the list, or of the one object.
    pub fn table(&self, objects: Vec<Value>, metadata: Value, shape: (Meta, Include), now: Timestamp) -> Value {
        let mut table = self.rows(objects, metadata, shape, now);
        table["columnDefinitions"] = Value::Array(self.columns.clone());
        table
    }

    /// The same without columns: a watch names them only once.
    pub fn rows(&self, objects: Vec<Value>, metadata: Value, shape: (Meta, Include), now: Timestamp) -> Value {
        let rows: Vec<Value> = objects.into_iter().map(|object| self.row(object, shape, now)).collect();
        let api_version = shape.0.api_version();
        json!({
            "kind": "Table", "apiVersion": api_version, "metadata": metadata, "columnDefinitions": null, "rows": rows
        })
    }

    fn row(&self, object: Value, (meta, include): (Meta, Include), now: Timestamp) -> Value {
        let mut row = json!({"cells": self.cells(&object, now)});
        if let Some(condition) = pod::completed(&object) {
            row["conditions"] = json!([condition]);
        }
        row["object"] = match include {
            Include::None => Value::Null,
            Include::Metadata => partial(object, meta),
            Include::Object => object,
        };
        row
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        match &self.cells {
            Cells::BuiltIn(cells) => cells(object, now),
            Cells::Each(shown) => shown.iter().map(|(_, cell)| cell(object, now)).collect(),
            Cells::Custom(columns) => {
                let cells = columns.iter().map(|column| column.cell(object, now));
                std::iter::once(json!(name(object))).chain(cells).collect()
            }
        }
    }
}

/// An object reduced to its metadata.
pub fn partial(mut object: Value, meta: Meta) -> Value {
    let mut metadata = object.get_mut("metadata").map(Value::take).unwrap_or_else(|| json!({}));
    if object["kind"] == "DaemonSet" {
        forget_template_generation(&mut metadata);
    }
    json!({"kind": "PartialObjectMetadata", "apiVersion": meta.api_version(), "metadata": metadata})
}

/// A DaemonSet's count of templates is a field of Go's own type, and an annotation only where the whole is shown.
fn forget_template_generation(metadata: &mut Value) {
    let annotations = metadata.get_mut("annotations").and_then(Value::as_object_mut);
    let is_empty = annotations.is_some_and(|annotations| {
        annotations.remove("deprecated.daemonset.template.generation");
        annotations.is_empty()
    });
    if let Some(members) = metadata.as_object_mut().filter(|_| is_empty) {
        members.remove("annotations");
    }
}

/// The columns of a built-in kind and how its cells are filled.
type BuiltIn = (&'static [Column], fn(&Value, Timestamp) -> Vec<Value>);

fn built_in(group: &str, kind: &str) -> BuiltIn {
    match (group, kind) {
        ("", "Pod") => (pod::COLUMNS, pod::cells),
        ("", "Service") => (service::COLUMNS, service::cells),
        ("", "Namespace") => (plain::NAMESPACE, plain::namespace),
        ("", "ConfigMap") => (plain::CONFIG_MAP, plain::config_map),
        ("" | "events.k8s.io", "Event") => (event::COLUMNS, event::cells),
        ("apps", "Deployment") => (workload::DEPLOYMENT, workload::deployment),
        ("apps", "ReplicaSet") => (workload::REPLICA_SET, workload::replica_set),
        ("apps", "StatefulSet") => (workload::STATEFUL_SET, workload::stateful_set),
        ("apps", "DaemonSet") => (workload::DAEMON_SET, workload::daemon_set),
        ("batch", "Job") => (job::COLUMNS, job::cells),
        ("", "Node") => (node::COLUMNS, node::cells),
        ("", "Secret") => (plain::SECRET, plain::secret),
        ("", "ServiceAccount") => (plain::SERVICE_ACCOUNT, plain::service_account),
        ("coordination.k8s.io", "Lease") => (plain::LEASE, plain::lease),
        _ => (plain::ANY, plain::any),
    }
}

/// Kinds that are shown column by column.
// pkg/printers/internalversion/printers.go
fn shown(group: &str, kind: &str) -> Option<&'static [Shown]> {
    Some(match (group, kind) {
        ("", "Endpoints") => network::ENDPOINTS,
        ("", "PersistentVolume") => storage::VOLUME,
        ("", "PersistentVolumeClaim") => storage::CLAIM,
        ("", "PodTemplate") => workload::POD_TEMPLATE,
        ("", "ReplicationController") => workload::REPLICATION_CONTROLLER,
        ("", "ResourceQuota") => policy::QUOTA,
        ("apps", "ControllerRevision") => policy::REVISION,
        ("autoscaling", "HorizontalPodAutoscaler") => policy::AUTOSCALER,
        ("batch", "CronJob") => job::CRON_JOB,
        ("certificates.k8s.io", "CertificateSigningRequest") => policy::SIGNING_REQUEST,
        ("discovery.k8s.io", "EndpointSlice") => network::ENDPOINT_SLICE,
        ("networking.k8s.io", "Ingress") => network::INGRESS,
        ("networking.k8s.io", "IngressClass") => network::INGRESS_CLASS,
        ("networking.k8s.io", "IPAddress") => network::IP_ADDRESS,
        ("networking.k8s.io", "NetworkPolicy") => network::NETWORK_POLICY,
        ("networking.k8s.io", "ServiceCIDR") => network::SERVICE_CIDR,
        ("node.k8s.io", "RuntimeClass") => storage::RUNTIME_CLASS,
        ("policy", "PodDisruptionBudget") => policy::BUDGET,
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => policy::BINDING,
        ("scheduling.k8s.io", "PriorityClass") => storage::PRIORITY_CLASS,
        _ => return shown_of_the_cluster(group, kind),
    })
}

/// The same of what administrators look at.
fn shown_of_the_cluster(group: &str, kind: &str) -> Option<&'static [Shown]> {
    const ADMISSION: &str = "admissionregistration.k8s.io";
    const FLOW: &str = "flowcontrol.apiserver.k8s.io";
    const STORAGE: &str = "storage.k8s.io";
    Some(match (group, kind) {
        (ADMISSION, "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration") => admission::WEBHOOKS,
        (ADMISSION, "ValidatingAdmissionPolicy") => admission::VALIDATING_POLICY,
        (ADMISSION, "MutatingAdmissionPolicy") => admission::MUTATING_POLICY,
        (ADMISSION, "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding") => admission::POLICY_BINDING,
        (FLOW, "FlowSchema") => admission::FLOW_SCHEMA,
        (FLOW, "PriorityLevelConfiguration") => admission::PRIORITY_LEVEL,
        ("resource.k8s.io", "DeviceClass" | "ResourceClaimTemplate") => admission::AGED_ONLY,
        ("resource.k8s.io", "ResourceClaim") => admission::RESOURCE_CLAIM,
        ("resource.k8s.io", "ResourceSlice") => admission::RESOURCE_SLICE,
        (STORAGE, "CSIDriver") => storage::CSI_DRIVER,
        (STORAGE, "CSINode") => storage::CSI_NODE,
        (STORAGE, "StorageClass") => storage::STORAGE_CLASS,
        (STORAGE, "VolumeAttachment") => storage::ATTACHMENT,
        (STORAGE, "VolumeAttributesClass") => storage::ATTRIBUTES,
        _ => return None,
    })
}

const NAMED: Shown = (NAME, |object, _| json!(name(object)));
const AGED: Shown = (AGE, age);

const NAME: Column = column("Name", "string", "The object's name, unique among its kind in a namespace.");
const AGE: Column = column("Age", "string", "How long ago the object was created.");

const fn column(name: &'static str, kind: &'static str, description: &'static str) -> Column {
    Column { name, kind, description, wide: false }
}

const fn wide(name: &'static str, kind: &'static str, description: &'static str) -> Column {
    Column { name, kind, description, wide: true }
}

fn definition(column: &Column) -> Value {
    let Column { name, kind, description, wide } = column;
    let format = if matches!(*name, "Name" | "Attacher") {
        "name"
    } else {
        ""
    };
    let priority = u8::from(*wide);
    json!({"name": name, "type": kind, "format": format, "description": description, "priority": priority})
}

fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

fn age(object: &Value, now: Timestamp) -> Value {
    json!(age::since(object.pointer("/metadata/creationTimestamp"), now))
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
}

fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The texts of a list.
fn joined(items: &[Value], between: &str) -> String {
    items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(between)
}

fn none() -> Value {
    json!("<none>")
}

/// A name, and whether its object is the one that is used by default.
fn default_name(object: &Value, annotation: &str) -> String {
    let annotations = object.pointer("/metadata/annotations");
    let is_default = annotations.is_some_and(|annotations| annotations[annotation] == "true");
    format!("{}{}", name(object), if is_default { " (default)" } else { "" })
}

/// `a=1,b=2`, or `<none>`.
fn labels(labels: Option<&Value>) -> String {
    let labels = labels.and_then(Value::as_object).into_iter().flatten();
    let labels = labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    or_none(&labels.collect::<Vec<_>>().join(",")).to_owned()
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "<none>" } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{self, Custom};
    use flyball_schema::kinds;

    const NOW: &str = "2026-11-15T21:30:00Z";

    fn kind(group: &str, version: &str, plural: &str, custom: Option<Custom>) -> Kind {
        let resource = kinds::builtin().resource(group, version, plural).unwrap().clone();
        match custom {
            Some(custom) => Kind::custom(resource, custom),
            None => Kind::built_in(resource),
        }
    }

    fn cells(kind: &Kind, mut object: Value) -> Value {
        object["metadata"] = json!({"name": "x", "creationTimestamp": "2026-11-15T21:20:00Z"});
        json!(Printer::of(kind).cells(&object, NOW.parse().unwrap()))
    }

    #[test]
    fn a_pod_is_one_line() {
        let pods = kind("", "v1", "pods", None);
        let container = |state: Value, ready: bool| json!({"state": state, "ready": ready, "restartCount": 0});
        let line = |status: Value| {
            let spec =
                json!({"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}, {"name": "j"}]});
            cells(&pods, json!({"spec": spec, "status": status}))
        };

        let none = "<none>";
        assert_eq!(
            line(json!({"phase": "Pending"})),
            json!(["x", "0/2", "Pending", "0", "10m", none, none, none, none])
        );
        let running = json!({
            "phase": "Running", "podIPs": [{"ip": "10.0.0.7"}],
            "containerStatuses": [container(json!({"running": {}}), true), container(json!({"running": {}}), false)]
        });
        assert_eq!(line(running), json!(["x", "1/2", "Running", "0", "10m", "10.0.0.7", none, none, none]));
        let crashing = json!({"phase": "Running", "containerStatuses": [{
            "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "restartCount": 4,
            "lastState": {"terminated": {"finishedAt": "2026-11-15T21:29:00Z"}}
        }]});
        assert_eq!(line(crashing)[2], "CrashLoopBackOff");
        let crashed = json!({"containerStatuses": [{"restartCount": 4, "lastState": {"terminated": {"finishedAt": "2026-11-15T21:29:00Z"}}}]});
        assert_eq!(line(crashed)[3], "4 (60s ago)");
        let initializing = json!({"phase": "Pending", "initContainerStatuses": [
            container(json!({"terminated": {"exitCode": 0}}), false), container(json!({"running": {}}), false)
        ]});
        assert_eq!(line(initializing)[2], "Init:1/2");
        let failed = json!({"phase": "Pending", "initContainerStatuses": [container(json!({"terminated": {"exitCode": 3}}), false)]});
        assert_eq!(line(failed)[2], "Init:ExitCode:3");
    }

    #[test]
    fn a_service_shows_where_it_can_be_reached() {
        let services = kind("", "v1", "services", None);
        let line = |spec: Value| cells(&services, json!({"spec": spec}));

        let ports = json!([{"port": 80, "protocol": "TCP"}, {"port": 443, "nodePort": 30443, "protocol": "TCP"}]);
        let cluster =
            json!({"type": "ClusterIP", "clusterIPs": ["10.0.0.1"], "ports": ports, "selector": {"b": "2", "a": "1"}});
        let expected = json!([
            "x",
            "ClusterIP",
            "10.0.0.1",
            "<none>",
            "80/TCP,443:30443/TCP",
            "10m",
            "a=1,b=2"
        ]);
        assert_eq!(line(cluster), expected);
        let external = json!({"type": "ExternalName", "externalName": "db.example.com"});
        assert_eq!(
            line(external),
            json!([
                "x",
                "ExternalName",
                "<none>",
                "db.example.com",
                "<none>",
                "10m",
                "<none>"
            ])
        );
        assert_eq!(line(json!({"type": "LoadBalancer", "externalIPs": ["1.2.3.4"]}))[3], "1.2.3.4");
        assert_eq!(line(json!({"type": "LoadBalancer"}))[3], "<pending>");
    }

    #[test]
    fn a_deployment_shows_its_replicas_and_selector() {
        let deployments = kind("apps", "v1", "deployments", None);
        let selector = json!({"matchLabels": {"app": "web"}, "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["front", "back"]}, {"key": "old", "operator": "DoesNotExist"}
        ]});
        let containers = json!([{"name": "a", "image": "i"}, {"name": "b", "image": "j"}]);
        let spec = json!({"replicas": 3, "selector": selector, "template": {"spec": {"containers": containers}}});

        let line = cells(&deployments, json!({"spec": spec, "status": {"readyReplicas": 2, "updatedReplicas": 1}}));

        assert_eq!(
            line,
            json!([
                "x",
                "2/3",
                1,
                0,
                "10m",
                "a,b",
                "i,j",
                "app=web,!old,tier in (back,front)"
            ])
        );
    }

    #[test]
    fn an_event_shows_when_and_what() {
        let old = json!({
            "type": "Normal", "reason": "Why", "message": " because\n", "involvedObject": {"kind": "Pod", "name": "p"},
            "firstTimestamp": "2026-11-15T21:00:00Z", "lastTimestamp": "2026-11-15T21:29:30Z", "count": 3,
            "source": {"component": "kubelet", "host": "n1"}
        });
        let new = json!({
            "type": "Normal", "reason": "Why", "note": "because", "regarding": {"kind": "Pod", "name": "p"},
            "eventTime": "2026-11-15T21:00:00.000000Z", "series": {"count": 3, "lastObservedTime": "2026-11-15T21:29:30.000000Z"},
            "reportingController": "kubelet", "reportingInstance": "n1"
        });

        let expected = json!([
            "30s",
            "Normal",
            "Why",
            "pod/p",
            "",
            "kubelet, n1",
            "because",
            "30m",
            3,
            "x"
        ]);
        assert_eq!(cells(&kind("", "v1", "events", None), old), expected);
        assert_eq!(cells(&kind("events.k8s.io", "v1", "events", None), new), expected);
    }

    #[test]
    fn a_custom_resource_has_its_own_columns() {
        let column = |name: &str, kind: &str, json_path: &str| registry::Column {
            name: name.into(),
            kind: kind.into(),
            format: String::new(),
            description: String::new(),
            priority: 0,
            json_path: json_path.into(),
        };
        let columns = vec![
            column("Size", "integer", ".spec.size"),
            column("Load", "number", ".spec.load"),
            column("Since", "date", ".spec.since"),
            column("Tags", "string", ".spec.tags"),
            column("Ready", "string", ".status.conditions[?(@.type==\"Ready\")].status"),
            column("Wrong", "boolean", ".spec.size"),
            column("Missing", "string", ".spec.missing"),
        ];
        let widgets = kind("", "v1", "pods", Some(Custom { columns, ..Custom::default() }));
        let spec = json!({"size": 3, "load": 1.5, "since": "2026-11-15T20:30:00Z", "tags": ["a", "b"]});

        let line = cells(
            &widgets,
            json!({"spec": spec, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
        );

        assert_eq!(line, json!(["x", 3, 1.5, "60m", "[\"a\",\"b\"]", "True", null, null]));
        assert_eq!(
            Printer::of(&widgets).columns[1]["description"],
            "Custom resource definition column (in JSONPath format): .spec.size"
        );
    }

    #[test]
    fn a_node_shows_whether_it_takes_pods() {
        let nodes = kind("", "v1", "nodes", None);
        let node = json!({
            "spec": {"unschedulable": true},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                "nodeInfo": {"kubeletVersion": "v1.36.4", "kernelVersion": "6.1", "architecture": "amd64"}
            }
        });

        let line = cells(&nodes, node);

        let (none, unknown) = ("<none>", "<unknown>");
        let wide = json!(["10.0.0.1", none, unknown, "6.1 (amd64)", unknown]);
        let short = json!(["x", "Ready,SchedulingDisabled", none, "10m", "v1.36.4"]);
        assert_eq!(line.as_array().unwrap()[..5], short.as_array().unwrap()[..]);
        assert_eq!(line.as_array().unwrap()[5..], wide.as_array().unwrap()[..]);
        assert_eq!(cells(&nodes, json!({}))[1], "Unknown");
    }

    #[test]
    fn a_job_shows_how_far_it_is() {
        let jobs = kind("batch", "v1", "jobs", None);
        let line = |spec: Value, status: Value| cells(&jobs, json!({"spec": spec, "status": status}));

        let running = line(json!({"completions": 3}), json!({"succeeded": 1, "startTime": "2026-11-15T21:29:00Z"}));
        assert_eq!(running.as_array().unwrap()[1..4], [json!("Running"), json!("1/3"), json!("60s")]);
        let complete = json!([{"type": "Complete", "status": "True"}]);
        let times = json!({"startTime": "2026-11-15T21:00:00Z", "completionTime": "2026-11-15T21:00:07Z", "conditions": complete});
        let done = line(json!({"parallelism": 2}), times);
        assert_eq!(done.as_array().unwrap()[1..4], [json!("Complete"), json!("0/1 of 2"), json!("7s")]);
    }

    #[test]
    fn other_kinds_show_name_and_time() {
        let line = cells(&kind("apiextensions.k8s.io", "v1", "customresourcedefinitions", None), json!({}));

        assert_eq!(line, json!(["x", "2026-11-15T21:20:00Z"]));
    }

    #[test]
    fn a_row_carries_as_much_of_its_object_as_was_asked() {
        let pods = kind("", "v1", "pods", None);
        let pod =
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "status": {"phase": "Succeeded"}});
        let row = |include| {
            let table =
                Printer::of(&pods).table(vec![pod.clone()], json!({}), (Meta::V1, include), NOW.parse().unwrap());
            table["rows"][0].clone()
        };

        assert_eq!(row(Include::None)["object"], Value::Null);
        assert_eq!(row(Include::Object)["object"], pod);
        let metadata =
            json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "p"}});
        assert_eq!(row(Include::Metadata)["object"], metadata);
        assert_eq!(row(Include::None)["conditions"][0]["type"], "Completed");
    }
}
