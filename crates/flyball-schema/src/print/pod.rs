//! Pods: one word for everything that may be going on in their containers.
// pkg/printers/internalversion/printers.go, `printPod`

use super::column::{AGE, Column, NAME, age, column, list, name, number, or_none, text, wide};
use jiff::Timestamp;
use serde_json::{Value, json};

pub(super) const COLUMNS: &[Column] = &[
    NAME,
    column("Ready", "string", "Containers that are ready, of those there are."),
    column("Status", "string", "What the pod and its containers are doing."),
    column("Restarts", "string", "How often containers were restarted, and when last."),
    AGE,
    wide("IP", "string", "The pod's address."),
    wide("Node", "string", "The node that runs it."),
    wide("Nominated Node", "string", "The node where it waits for room."),
    wide("Readiness Gates", "string", "Readiness gates that are open, of those there are."),
];

pub(super) fn cells(pod: &Value, now: Timestamp) -> Vec<Value> {
    let summary = Summary::of(pod);
    let address = list(pod, "/status/podIPs").first().map_or("", |address| text(address, "/ip"));
    vec![
        json!(name(pod)),
        json!(format!("{}/{}", summary.ready, summary.containers)),
        json!(summary.reason),
        json!(restarts(&summary.restarts, now)),
        age(pod, now),
        json!(or_none(address)),
        json!(or_none(text(pod, "/spec/nodeName"))),
        json!(or_none(text(pod, "/status/nominatedNodeName"))),
        json!(readiness_gates(pod)),
    ]
}

/// The condition of a row whose pod will do no more.
pub(super) fn completed(object: &Value) -> Option<Value> {
    if object["kind"] != "Pod" || object["apiVersion"] != "v1" {
        return None;
    }
    let (reason, message) = match text(object, "/status/phase") {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!({"type": "Completed", "status": "True", "reason": reason, "message": message}))
}

struct Summary {
    ready: usize,
    containers: usize,
    reason: String,
    restarts: Restarts,
}

/// How often containers were restarted, and when the last one ended before that.
#[derive(Default)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, status: &Value) {
        self.count = self.count.saturating_add(number(status, "/restartCount"));
        let finished = text(status, "/lastState/terminated/finishedAt").parse().ok();
        self.last = self.last.max(finished);
    }
}

impl Summary {
    fn of(pod: &Value) -> Summary {
        let sidecars = list(pod, "/spec/initContainers")
            .iter()
            .filter(|container| restarts_always(container))
            .count();
        let mut summary = Summary {
            ready: 0,
            containers: list(pod, "/spec/containers").len() + sidecars,
            reason: phase(pod),
            restarts: Restarts::default(),
        };
        if !summary.initialize(pod) || condition(pod, "Initialized") == "True" {
            summary.run(pod);
        }
        if !text(pod, "/metadata/deletionTimestamp").is_empty() {
            let ended = matches!(text(pod, "/status/phase"), "Succeeded" | "Failed");
            match text(pod, "/status/reason") {
                "NodeLost" => summary.reason = "Unknown".into(),
                _ if !ended => summary.reason = "Terminating".into(),
                _ => {}
            }
        }
        summary
    }

    /// Follows the init containers up to the one that is not done; says whether there is such a one.
    fn initialize(&mut self, pod: &Value) -> bool {
        let containers = list(pod, "/spec/initContainers");
        for (index, status) in list(pod, "/status/initContainerStatuses").iter().enumerate() {
            self.restarts.add(status);
            let exit_code = status.pointer("/state/terminated").map(|_| number(status, "/state/terminated/exitCode"));
            let sidecar = is_sidecar(pod, status);
            let waiting = text(status, "/state/waiting/reason");
            if exit_code == Some(0) {
                continue;
            }
            if sidecar && status["started"] == true {
                self.ready += usize::from(status["ready"] == true);
                continue;
            }
            self.reason = match exit_code {
                Some(_) => format!("Init:{}", termination(status)),
                None if !waiting.is_empty() && waiting != "PodInitializing" => format!("Init:{waiting}"),
                None => format!("Init:{index}/{}", containers.len()),
            };
            return true;
        }
        false
    }

    /// Follows the containers proper.
    fn run(&mut self, pod: &Value) {
        self.restarts = Restarts::default();
        for status in list(pod, "/status/initContainerStatuses").iter().filter(|status| is_sidecar(pod, status)) {
            self.restarts.add(status);
        }
        let (mut running, mut failure) = (false, None);
        for status in list(pod, "/status/containerStatuses").iter().rev() {
            self.restarts.add(status);
            let waiting = text(status, "/state/waiting/reason");
            if !waiting.is_empty() {
                self.reason = waiting.to_owned();
            } else if status.pointer("/state/terminated").is_some() {
                self.reason = termination(status);
                if number(status, "/state/terminated/exitCode") != 0 {
                    failure = Some(self.reason.clone());
                }
            } else if status["ready"] == true && status.pointer("/state/running").is_some() {
                running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" {
            self.reason = match failure {
                _ if running && condition(pod, "Ready") == "True" => "Running".into(),
                Some(failure) => failure,
                None if running => "NotReady".into(),
                None => "Completed".into(),
            };
        }
    }
}

fn phase(pod: &Value) -> String {
    let gated = |condition: &Value| condition["type"] == "PodScheduled" && condition["reason"] == "SchedulingGated";
    if list(pod, "/status/conditions").iter().any(gated) {
        return "SchedulingGated".into();
    }
    match text(pod, "/status/reason") {
        "" => text(pod, "/status/phase").to_owned(),
        reason => reason.to_owned(),
    }
}

fn termination(status: &Value) -> String {
    let terminated = &status["state"]["terminated"];
    match (text(terminated, "/reason"), number(terminated, "/signal")) {
        ("", 0) => format!("ExitCode:{}", number(terminated, "/exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn condition<'a>(pod: &'a Value, kind: &str) -> &'a str {
    let mut conditions = list(pod, "/status/conditions").iter();
    conditions
        .find(|condition| condition["type"] == kind)
        .map_or("", |condition| text(condition, "/status"))
}

fn restarts_always(container: &Value) -> bool {
    container["restartPolicy"] == "Always"
}

fn is_sidecar(pod: &Value, status: &Value) -> bool {
    let mut containers = list(pod, "/spec/initContainers").iter();
    containers.any(|container| container["name"] == status["name"] && restarts_always(container))
}

fn restarts(restarts: &Restarts, now: Timestamp) -> String {
    match (restarts.count, restarts.last) {
        (0, _) | (_, None) => restarts.count.to_string(),
        (count, Some(last)) => format!("{count} ({} ago)", super::age::human(now.duration_since(last).as_secs())),
    }
}

fn readiness_gates(pod: &Value) -> String {
    let gates = list(pod, "/spec/readinessGates");
    let open = gates.iter().filter(|gate| condition(pod, text(gate, "/conditionType")) == "True").count();
    match gates.len() {
        0 => "<none>".into(),
        all => format!("{open}/{all}"),
    }
}
