//! What `kubectl get` shows of objects: the cells of the kinds whose columns are more than a field each.

use flyball_schema::print::{CustomColumn, Include, Meta, Printer};
use serde_json::{Value, json};

const NOW: &str = "2026-11-15T21:30:00Z";

fn cells(printer: &Printer, mut object: Value) -> Value {
    object["metadata"] = json!({"name": "x", "creationTimestamp": "2026-11-15T21:20:00Z"});
    row(printer, object, Include::None)["cells"].clone()
}

fn row(printer: &Printer, object: Value, include: Include) -> Value {
    let now = NOW.parse().expect("a time");
    let table = printer.table(vec![object], json!({}), (Meta::V1, include), now);
    table["rows"][0].clone()
}

#[test]
fn a_pod_is_one_line() {
    let pods = Printer::built_in("", "Pod");
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
    let services = Printer::built_in("", "Service");
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
    let deployments = Printer::built_in("apps", "Deployment");
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
    assert_eq!(cells(&Printer::built_in("", "Event"), old), expected);
    assert_eq!(cells(&Printer::built_in("events.k8s.io", "Event"), new), expected);
}

#[test]
fn a_custom_resource_has_its_own_columns() {
    let column = |name: &str, kind: &str, json_path: &str| CustomColumn {
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
    let widgets = Printer::custom(&columns);
    let spec = json!({"size": 3, "load": 1.5, "since": "2026-11-15T20:30:00Z", "tags": ["a", "b"]});

    let line = cells(
        &widgets,
        json!({"spec": spec, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
    );

    assert_eq!(line, json!(["x", 3, 1.5, "60m", "[\"a\",\"b\"]", "True", null, null]));
    let table = widgets.table(vec![], json!({}), (Meta::V1, Include::None), NOW.parse().unwrap());
    assert_eq!(
        table["columnDefinitions"][1]["description"],
        "Custom resource definition column (in JSONPath format): .spec.size"
    );
}

#[test]
fn a_node_shows_whether_it_takes_pods() {
    let nodes = Printer::built_in("", "Node");
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
    let jobs = Printer::built_in("batch", "Job");
    let line = |spec: Value, status: Value| cells(&jobs, json!({"spec": spec, "status": status}));

    let running = line(json!({"completions": 3}), json!({"succeeded": 1, "startTime": "2026-11-15T21:29:00Z"}));
    assert_eq!(running.as_array().unwrap()[1..4], [json!("Running"), json!("1/3"), json!("60s")]);
    let complete = json!([{"type": "Complete", "status": "True"}]);
    let times =
        json!({"startTime": "2026-11-15T21:00:00Z", "completionTime": "2026-11-15T21:00:07Z", "conditions": complete});
    let done = line(json!({"parallelism": 2}), times);
    assert_eq!(done.as_array().unwrap()[1..4], [json!("Complete"), json!("0/1 of 2"), json!("7s")]);
}

#[test]
fn other_kinds_show_name_and_time() {
    let line = cells(&Printer::built_in("apiextensions.k8s.io", "CustomResourceDefinition"), json!({}));

    assert_eq!(line, json!(["x", "2026-11-15T21:20:00Z"]));
}

#[test]
fn a_row_carries_as_much_of_its_object_as_was_asked() {
    let pods = Printer::built_in("", "Pod");
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "status": {"phase": "Succeeded"}});
    let row = |include| row(&pods, pod.clone(), include);

    assert_eq!(row(Include::None)["object"], Value::Null);
    assert_eq!(row(Include::Object)["object"], pod);
    let metadata = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "p"}});
    assert_eq!(row(Include::Metadata)["object"], metadata);
    assert_eq!(row(Include::None)["conditions"][0]["type"], "Completed");
}
