//! The status of a pod as a kubelet writes it, from how far its containers are.

use super::run::{PodRun, Run, State, whole_second};
use crate::{node::Network, pod};
use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{
        ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus,
        HostIP, Pod, PodCondition, PodIP, PodStatus,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};

/// The status of a pod whose containers are as `run` says. It has an address once they have begun to start.
pub(super) fn of(pod: &Pod, run: &PodRun, network: &Network, address: Option<&str>, now: Timestamp) -> PodStatus {
    let mut status = begun(pod, network, now);
    let phase = run.phase();
    status.phase = Some(phase.into());
    if let Some(address) = address {
        status.pod_ip = Some(address.into());
        status.pod_ips = Some(vec![PodIP { ip: address.into() }]);
    }
    let container = |it: &Run, ready: bool| container(it, ready, pod);
    let ready = |it: &Run| it.is_ready(run.behaviour.of_container(&it.name), now);
    status.container_statuses = Some(run.main.iter().map(|it| container(it, ready(it))).collect());
    let init = run.init.iter().map(|it| {
        let done = matches!(&it.state, State::Exited(exited) if exited.exit_code == 0);
        container(it, if it.is_sidecar() { ready(it) } else { done })
    });
    status.init_container_statuses = (!run.init.is_empty()).then(|| init.collect());
    let unready: Vec<_> = run.main.iter().filter(|it| !ready(it)).map(|it| it.name.clone()).collect();
    let uninitialized = run.init.iter().filter(|it| match &it.state {
        State::Exited(exited) => exited.exit_code != 0,
        State::Running { .. } => !it.is_sidecar(),
        State::Waiting { .. } => true,
    });
    let progress = Progress {
        sandbox: address.is_some() && !matches!(phase, "Succeeded" | "Failed"),
        uninitialized: uninitialized.map(|it| it.name.clone()).collect(),
        unready,
    };
    set_conditions(pod, &mut status, &progress, &whole_second(now));
    status
}

/// A pod whose containers have ended, as they were told to.
pub(super) fn ended(pod: &Pod, network: &Network, now: Timestamp) -> PodStatus {
    let mut status = begun(pod, network, now);
    status.phase = Some("Succeeded".into());
    for status in status.container_statuses.iter_mut().flatten() {
        let state = status.state.clone().unwrap_or_default();
        if state.terminated.is_none() {
            let started_at = state.running.and_then(|running| running.started_at);
            status.state = Some(completed(started_at, whole_second(now)));
        }
        (status.ready, status.started) = (false, Some(false));
    }
    let unready = status.container_statuses.iter().flatten().map(|status| status.name.clone()).collect();
    let progress = Progress { sandbox: false, uninitialized: Vec::new(), unready };
    set_conditions(pod, &mut status, &progress, &whole_second(now));
    status
}

fn begun(pod: &Pod, network: &Network, now: Timestamp) -> PodStatus {
    let mut status = pod.status.clone().unwrap_or_default();
    status.observed_generation = pod.metadata.generation;
    status.start_time.get_or_insert_with(|| whole_second(now));
    status.host_ip = Some(network.address.to_string());
    status.host_ips = Some(vec![HostIP { ip: network.address.to_string() }]);
    status.nominated_node_name = None;
    status
}

fn container(run: &Run, ready: bool, pod: &Pod) -> ContainerStatus {
    let state = match &run.state {
        State::Waiting { reason, message, .. } => ContainerState {
            waiting: Some(ContainerStateWaiting { reason: Some((*reason).into()), message: message.clone() }),
            ..ContainerState::default()
        },
        State::Running { since } => ContainerState {
            running: Some(ContainerStateRunning { started_at: Some(whole_second(*since)) }),
            ..ContainerState::default()
        },
        State::Exited(exited) => ContainerState {
            terminated: Some(exited.clone()),
            ..ContainerState::default()
        },
    };
    let has_run = state.waiting.is_none() || run.last.is_some();
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    ContainerStatus {
        name: run.name.clone(),
        image: run.image.clone(),
        image_id: if has_run { run.image.clone() } else { String::new() },
        container_id: has_run.then(|| format!("flyball://{uid}-{}-{}", run.name, run.restarts)),
        ready,
        started: Some(state.running.is_some()),
        restart_count: run.restarts,
        last_state: Some(ContainerState { terminated: run.last.clone(), ..ContainerState::default() }),
        state: Some(state),
        ..ContainerStatus::default()
    }
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
    uninitialized: Vec<String>,
    unready: Vec<String>,
}

/// Writes the kubelet's conditions, and keeps those of others.
// pkg/kubelet/status/generate.go
fn set_conditions(pod: &Pod, status: &mut PodStatus, progress: &Progress, now: &Time) {
    let phase = status.phase.clone().unwrap_or_default();
    let unready = match (&*phase, &*progress.unready) {
        ("Succeeded", _) => Some(("PodCompleted", String::new())),
        ("Failed", _) => Some(("PodFailed", String::new())),
        (_, []) => None,
        (_, names) => Some(("ContainersNotReady", format!("containers with unready status: [{}]", names.join(" ")))),
    };
    let uninitialized = match (&*phase, &*progress.uninitialized) {
        ("Succeeded", _) => Some(("PodCompleted", String::new())),
        (_, []) => None,
        (_, names) => {
            let note = format!("containers with incomplete status: [{}]", names.join(" "));
            Some(("ContainersNotInitialized", note))
        }
    };
    let gates = unready.is_none().then(|| closed_gates(pod)).flatten();
    let gates = gates.map(|message| ("ReadinessGatesNotReady", message));
    let initialized = progress.uninitialized.is_empty();
    let ready = unready.is_none();
    let ours = [
        ("PodReadyToStartContainers", progress.sandbox, None),
        ("Initialized", initialized, uninitialized),
        ("Ready", ready && gates.is_none(), unready.clone().or(gates)),
        ("ContainersReady", ready, unready),
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

/// The readiness gates that are still closed.
fn closed_gates(pod: &Pod) -> Option<String> {
    let gates = pod.spec.clone().unwrap_or_default().readiness_gates;
    let closed = gates.into_iter().flatten().filter_map(|gate| {
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
    use crate::behaviour::Behaviour;
    use serde_json::{Value, json};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    fn pod(spec: Value, status: Option<PodStatus>) -> Pod {
        let mut full = json!({ "containers": [{ "name": "web", "image": "web:1" }] });
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

    fn status_at(pod: &Pod, second: i64) -> PodStatus {
        let mut run = PodRun::of(pod, Behaviour::default(), at(0));
        run.advance(pod, at(second), &mut Vec::new());
        let address = (second > 0).then_some("10.244.0.2");
        of(pod, &run, &Network::of(0), address, at(second))
    }

    #[test]
    fn a_pod_is_created_and_then_runs() {
        let created = status_at(&pod(json!({}), None), 0);
        assert_eq!(created.phase.as_deref(), Some("Pending"));
        let expected = [
            "PodReadyToStartContainers=False",
            "Initialized=True",
            "Ready=False containers with unready status: [web]",
            "ContainersReady=False containers with unready status: [web]",
            "PodScheduled=True",
        ];
        assert_eq!(conditions(&created), expected);
        let ready = status_at(&pod(json!({}), Some(created)), 1);
        assert_eq!((ready.phase.as_deref(), ready.pod_ip.as_deref()), (Some("Running"), Some("10.244.0.2")));
        assert!(conditions(&ready).iter().all(|condition| condition.ends_with("=True")));
        let since: Vec<_> = ready.conditions.iter().flatten().map(|it| it.last_transition_time.clone()).collect();
        assert_eq!(since, [1, 0, 1, 1, 0].map(|second| Some(Time(at(second)))));
        assert_eq!(status_at(&pod(json!({}), Some(ready.clone())), 9), ready, "it stays so");
    }

    #[test]
    fn a_closed_gate_keeps_a_pod_from_being_ready() {
        let gated = pod(json!({ "readinessGates": [{ "conditionType": "example.dev/open" }] }), None);
        let status = status_at(&gated, 1);
        let expected = "Ready=False corresponding condition of pod readiness gate \"example.dev/open\" does not exist.";
        assert_eq!(conditions(&status)[2..4], [expected, "ContainersReady=True"]);
    }
}
