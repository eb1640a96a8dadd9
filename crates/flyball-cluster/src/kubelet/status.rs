//! The status of a pod at each stage of its life, as a kubelet would write it.

use crate::{node, pod};
use k8s_openapi::{
    api::core::v1::{
        Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
        ContainerStatus, HostIP, Pod, PodCondition, PodIP, PodSpec, PodStatus,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};

/// Whether the kubelet has seen the pod.
pub(super) fn is_begun(pod: &Pod) -> bool {
    pod.status.as_ref().is_some_and(|status| status.start_time.is_some())
}

/// Whether the pod's containers run.
pub(super) fn is_running(pod: &Pod) -> bool {
    pod::phase(pod) == "Running"
}

/// A pod whose images are being fetched.
pub(super) fn creating(pod: &Pod, now: &Time) -> PodStatus {
    let mut status = begun(pod, now);
    let waiting = |reason: &str| ContainerState {
        waiting: Some(ContainerStateWaiting { reason: Some(reason.into()), message: None }),
        ..ContainerState::default()
    };
    let spec = spec(pod);
    let reason = if spec.init_containers.iter().flatten().next().is_some() {
        "PodInitializing"
    } else {
        "ContainerCreating"
    };
    status.phase = Some("Pending".into());
    status.container_statuses = Some(spec.containers.iter().map(|it| container(it, waiting(reason), false)).collect());
    set_conditions(
        pod,
        &mut status,
        Progress {
            sandbox: false,
            initialized: reason == "ContainerCreating",
            ready: false,
        },
        now,
    );
    status
}

/// A pod whose containers run, and are ready or not yet.
pub(super) fn running(pod: &Pod, address: &str, ready: bool, now: &Time) -> PodStatus {
    let mut status = begun(pod, now);
    let known = pod
        .status
        .as_ref()
        .and_then(|status| status.container_statuses.clone())
        .unwrap_or_default();
    let started_at = |name: &str| {
        let known = known.iter().find(|known| known.name == name)?;
        known.state.as_ref()?.running.as_ref()?.started_at.clone()
    };
    let running = |name: &str| ContainerState {
        running: Some(ContainerStateRunning { started_at: started_at(name).or_else(|| Some(now.clone())) }),
        ..ContainerState::default()
    };
    let spec = spec(pod);
    status.phase = Some("Running".into());
    status.pod_ip = Some(address.into());
    status.pod_ips = Some(vec![PodIP { ip: address.into() }]);
    let statuses = spec.containers.iter().map(|it| container(it, running(&it.name), ready));
    status.container_statuses = Some(statuses.collect());
    status.init_container_statuses = spec.init_containers.map(|containers| {
        containers
            .iter()
            .map(|it| initialized(it, running(&it.name), &status.start_time))
            .collect()
    });
    set_conditions(pod, &mut status, Progress { sandbox: true, initialized: true, ready }, now);
    status
}

/// A pod whose containers have ended, as they were told to.
pub(super) fn ended(pod: &Pod, now: &Time) -> PodStatus {
    let mut status = begun(pod, now);
    status.phase = Some("Succeeded".into());
    for status in status.container_statuses.iter_mut().flatten() {
        let started_at = status.state.as_ref().and_then(|state| state.running.as_ref()?.started_at.clone());
        status.state = Some(completed(started_at, now.clone()));
        (status.ready, status.started) = (false, Some(false));
    }
    set_conditions(pod, &mut status, Progress { sandbox: false, initialized: true, ready: false }, now);
    status
}

fn begun(pod: &Pod, now: &Time) -> PodStatus {
    let mut status = pod.status.clone().unwrap_or_default();
    status.observed_generation = pod.metadata.generation;
    status.start_time.get_or_insert_with(|| now.clone());
    status.host_ip = Some(node::ADDRESS.into());
    status.host_ips = Some(vec![HostIP { ip: node::ADDRESS.into() }]);
    status
}

fn spec(pod: &Pod) -> PodSpec {
    pod.spec.clone().unwrap_or_default()
}

fn container(container: &Container, state: ContainerState, ready: bool) -> ContainerStatus {
    let is_running = state.running.is_some();
    let image = container.image.clone().unwrap_or_default();
    ContainerStatus {
        name: container.name.clone(),
        image_id: if is_running { image.clone() } else { String::new() },
        container_id: is_running.then(|| format!("flyball://{}", container.name)),
        image,
        ready,
        started: Some(is_running),
        state: Some(state),
        last_state: Some(ContainerState::default()),
        ..ContainerStatus::default()
    }
}

/// An init container has run to its end, unless it is one that stays beside the others.
fn initialized(it: &Container, running: ContainerState, since: &Option<Time>) -> ContainerStatus {
    if it.restart_policy.as_deref() == Some("Always") {
        return container(it, running, true);
    }
    let end = since.clone().unwrap_or(Time(jiff::Timestamp::UNIX_EPOCH));
    let mut status = container(it, running, true);
    (status.state, status.started) = (Some(completed(since.clone(), end)), Some(false));
    status
}

fn completed(started_at: Option<Time>, finished_at: Time) -> ContainerState {
    ContainerState {
        terminated: Some(ContainerStateTerminated {
            exit_code: 0,
            reason: Some("Completed".into()),
            started_at,
            finished_at: Some(finished_at),
            ..ContainerStateTerminated::default()
        }),
        ..ContainerState::default()
    }
}

/// How far a pod has come.
struct Progress {
    sandbox: bool,
    initialized: bool,
    ready: bool,
}

/// Writes the kubelet's conditions, and keeps those of others.
// pkg/kubelet/status/generate.go
fn set_conditions(pod: &Pod, status: &mut PodStatus, progress: Progress, now: &Time) {
    let ended = status.phase.as_deref() == Some("Succeeded");
    let names: Vec<_> = spec(pod).containers.into_iter().map(|container| container.name).collect();
    let unready = match (progress.ready, ended) {
        (true, _) => None,
        (false, true) => Some(("PodCompleted", String::new())),
        (false, false) => {
            Some(("ContainersNotReady", format!("containers with unready status: [{}]", names.join(" "))))
        }
    };
    let gates = unready.is_none().then(|| closed_gates(pod)).flatten();
    let gates = gates.map(|message| ("ReadinessGatesNotReady", message));
    let uninitialized = (!progress.initialized).then(|| ("ContainersNotInitialized", String::new()));
    let ours = [
        ("PodReadyToStartContainers", progress.sandbox, None),
        ("Initialized", progress.initialized, uninitialized),
        ("Ready", progress.ready && gates.is_none(), unready.clone().or(gates)),
        ("ContainersReady", progress.ready, unready),
        ("PodScheduled", true, None),
    ];
    let known = status.conditions.take().unwrap_or_default();
    let is_ours = |condition: &PodCondition| ours.iter().any(|(type_, ..)| condition.type_ == *type_);
    let others = known.iter().filter(|condition| !is_ours(condition)).cloned();
    let conditions = ours
        .iter()
        .map(|(type_, holds, why)| condition(pod, &known, type_, *holds, why.as_ref(), now));
    status.conditions = Some(conditions.chain(others).collect());
}

fn condition(
    pod: &Pod,
    known: &[PodCondition],
    type_: &str,
    holds: bool,
    why: Option<&(&str, String)>,
    now: &Time,
) -> PodCondition {
    let status = if holds { "True" } else { "False" };
    let known = known.iter().find(|known| known.type_ == type_ && known.status == status);
    let since = known.and_then(|known| known.last_transition_time.clone());
    PodCondition {
        type_: type_.into(),
        status: status.into(),
        reason: why.map(|(reason, _)| (*reason).into()),
        message: why.map(|(_, message)| message.clone()).filter(|message| !message.is_empty()),
        last_transition_time: since.or_else(|| Some(now.clone())),
        observed_generation: pod.metadata.generation,
        ..PodCondition::default()
    }
}

/// What readiness gates somebody has yet to open.
fn closed_gates(pod: &Pod) -> Option<String> {
    let closed = spec(pod).readiness_gates.into_iter().flatten().filter_map(|gate| {
        let gate = gate.condition_type;
        match pod::condition(pod, &gate).map(|condition| condition.status.clone()) {
            None => Some(format!("corresponding condition of pod readiness gate {gate:?} does not exist.")),
            Some(status) if status != "True" => {
                Some(format!("the status of pod readiness gate {gate:?} is not \"True\", but {status}"))
            }
            Some(_) => None,
        }
    });
    let closed: Vec<_> = closed.collect();
    (!closed.is_empty()).then(|| closed.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn at(second: i64) -> Time {
        Time(jiff::Timestamp::from_second(second).unwrap())
    }

    fn pod(spec: Value, status: Option<PodStatus>) -> Pod {
        let mut full = json!({ "nodeName": node::NAME, "containers": [{ "name": "web", "image": "web:1" }] });
        full.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let metadata = json!({ "name": "a", "namespace": "default", "generation": 1 });
        let mut pod: Pod = serde_json::from_value(json!({ "metadata": metadata, "spec": full })).unwrap();
        pod.status = status;
        pod
    }

    fn conditions(status: &PodStatus) -> Vec<String> {
        let conditions = status.conditions.iter().flatten();
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        conditions
            .map(|it| format!("{}={} {}", it.type_, it.status, text(&it.message)).trim_end().to_owned())
            .collect()
    }

    #[test]
    fn a_pod_is_created_and_then_runs() {
        let created = creating(&pod(json!({}), None), &at(1));
        assert_eq!(created.phase.as_deref(), Some("Pending"));
        let expected = [
            "PodReadyToStartContainers=False",
            "Initialized=True",
            "Ready=False containers with unready status: [web]",
            "ContainersReady=False containers with unready status: [web]",
            "PodScheduled=True",
        ];
        assert_eq!(conditions(&created), expected);
        let ready = running(&pod(json!({}), Some(created)), "10.244.0.2", true, &at(2));
        assert_eq!((ready.phase.as_deref(), ready.pod_ip.as_deref()), (Some("Running"), Some("10.244.0.2")));
        assert!(conditions(&ready).iter().all(|condition| condition.ends_with("=True")));
        let since: Vec<_> = ready.conditions.iter().flatten().map(|it| it.last_transition_time.clone()).collect();
        assert_eq!(since, [2, 1, 2, 2, 1].map(|second| Some(at(second))));
        assert_eq!(
            running(&pod(json!({}), Some(ready.clone())), "10.244.0.2", true, &at(9)),
            ready,
            "it stays so"
        );
    }

    #[test]
    fn a_gate_that_nobody_opened_keeps_a_pod_from_being_ready() {
        let gated = pod(json!({ "readinessGates": [{ "conditionType": "example.dev/open" }] }), None);
        let status = running(&gated, "10.244.0.2", true, &at(1));
        let expected = "Ready=False corresponding condition of pod readiness gate \"example.dev/open\" does not exist.";
        assert_eq!(conditions(&status)[2..4], [expected, "ContainersReady=True"]);
    }

    #[test]
    fn init_containers_have_run_and_sidecars_stay() {
        let init = json!([{ "name": "first" }, { "name": "beside", "restartPolicy": "Always" }]);
        let status = running(&pod(json!({ "initContainers": init }), None), "10.244.0.2", true, &at(1));
        let states: Vec<_> = status.init_container_statuses.unwrap().into_iter().filter_map(|it| it.state).collect();
        assert!(states[0].terminated.is_some() && states[1].running.is_some());
    }
}
