//! The life of a pod's containers over time: started, ready, exited, backed off, started again. Pure: time is an argument.

use super::backoff::{MIN_BACKOFF, after, earlier, go_seconds, next_backoff};
use crate::behaviour::{Behaviour, Exit};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::core::v1::{Container, ContainerState, ContainerStateTerminated, ContainerStatus, Pod, PodSpec},
    apimachinery::pkg::apis::meta::v1::Time,
};
use std::time::Duration;

/// How long it takes to fetch an image and start containers, unless the behaviour says otherwise.
const STARTUP: Duration = Duration::from_millis(500);
/// A container that ran this long begins with the first wait again.
const BACKOFF_RESET: Duration = Duration::from_secs(600);

/// The containers of one pod.
#[derive(Clone, Debug)]
pub(super) struct PodRun {
    pub(super) uid: Option<String>,
    /// Since when the kubelet knows the pod.
    pub(super) since: Timestamp,
    pub(super) behaviour: Behaviour,
    pub(super) init: Vec<Run>,
    pub(super) main: Vec<Run>,
}

/// One container.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) name: String,
    pub(super) image: String,
    pub(super) state: State,
    pub(super) restarts: i32,
    pub(super) last: Option<ContainerStateTerminated>,
    backoff: Option<Duration>,
    ready_delay: Duration,
    restarts_on: RestartsOn,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum State {
    Waiting {
        reason: &'static str,
        message: Option<String>,
        until: Option<Timestamp>,
    },
    Running {
        since: Timestamp,
    },
    Exited(ContainerStateTerminated),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RestartsOn {
    Any,
    Failure,
    Nothing,
}

/// Something to publish about a container: whether it is a warning, its reason and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Notice {
    pub(super) container: String,
    pub(super) is_warning: bool,
    pub(super) reason: &'static str,
    pub(super) note: String,
}

const CREATING: &str = "ContainerCreating";
const INITIALIZING: &str = "PodInitializing";
const CRASH_LOOP: &str = "CrashLoopBackOff";
const PULL_FAILED: &str = "ErrImagePull";
const PULL_BACKOFF: &str = "ImagePullBackOff";

impl PodRun {
    /// A pod as its status says that it is: new, or as it was when this process started.
    pub(super) fn of(pod: &Pod, behaviour: Behaviour, now: Timestamp) -> PodRun {
        let empty = PodSpec::default();
        let spec = pod.spec.as_ref().unwrap_or(&empty);
        let status = pod.status.as_ref();
        let known = |statuses: Option<&Vec<ContainerStatus>>, name: &str| {
            statuses.into_iter().flatten().find(|status| status.name == name).cloned()
        };
        let (init, main) = (
            status.and_then(|status| status.init_container_statuses.as_ref()),
            status.and_then(|status| status.container_statuses.as_ref()),
        );
        let waiting = if spec.init_containers.iter().flatten().next().is_some() {
            INITIALIZING
        } else {
            CREATING
        };
        let run = |container: &Container, known: Option<ContainerStatus>, is_init: bool| {
            let delay = behaviour
                .of_container(&container.name)
                .ready_after
                .unwrap_or_else(|| probe_delay(container));
            Run::of(container, known, waiting, delay, restarts_on(spec, container, is_init))
        };
        PodRun {
            uid: pod.metadata.uid.clone(),
            since: status.and_then(|status| status.start_time.as_ref()).map_or(now, |time| time.0),
            init: spec
                .init_containers
                .iter()
                .flatten()
                .map(|container| run(container, known(init, &container.name), true))
                .collect(),
            main: spec
                .containers
                .iter()
                .map(|container| run(container, known(main, &container.name), false))
                .collect(),
            behaviour,
        }
    }

    /// Brings all containers to where they are at this time; says when to look again.
    pub(super) fn advance(&mut self, pod: &Pod, now: Timestamp, notices: &mut Vec<Notice>) -> Option<Timestamp> {
        let start = after(self.since, self.behaviour.start_after.unwrap_or(STARTUP));
        if now < start {
            return Some(start);
        }
        let mut next = None;
        let PodRun { init, main, behaviour, .. } = self;
        for run in init {
            let mut behaviour = behaviour.containers.get(&run.name).cloned().unwrap_or_default();
            if run.restarts_on != RestartsOn::Any && behaviour.exit.is_none() {
                behaviour.exit = Some(Exit::default());
            }
            earlier(&mut next, run.advance(pod, &behaviour, now, notices));
            if !run.lets_others_start() {
                return next;
            }
        }
        for run in main {
            earlier(&mut next, run.advance(pod, behaviour.of_container(&run.name), now, notices));
        }
        next
    }

    /// Whether every init container has done its part.
    pub(super) fn is_initialized(&self) -> bool {
        self.init.iter().all(|run| run.lets_others_start())
    }

    /// The pod's phase.
    // pkg/kubelet/kubelet_pods.go, getPhase
    pub(super) fn phase(&self) -> &'static str {
        if self.init.iter().any(Run::has_failed_for_good) {
            return "Failed";
        }
        let has_begun = |run: &Run| !matches!(run.state, State::Waiting { .. }) || run.last.is_some();
        if !self.is_initialized() || !self.main.iter().all(has_begun) {
            return "Pending";
        }
        let ended = |run: &Run| matches!(run.state, State::Exited(_)) && !run.will_restart();
        if !self.main.iter().all(ended) {
            return "Running";
        }
        if self.main.iter().any(Run::has_failed_for_good) {
            "Failed"
        } else {
            "Succeeded"
        }
    }

    /// All containers were killed with their machine.
    pub(super) fn kill(&mut self, now: Timestamp) {
        for run in self.main.iter_mut().chain(&mut self.init) {
            if let State::Running { since } = run.state {
                run.state = State::Exited(terminated(255, Some("Unknown"), None, since, now));
            }
        }
    }
}

impl Run {
    fn of(
        container: &Container,
        known: Option<ContainerStatus>,
        waiting: &'static str,
        ready_delay: Duration,
        restarts_on: RestartsOn,
    ) -> Run {
        let state = known.as_ref().and_then(|known| known.state.clone()).unwrap_or_default();
        let waiting = State::Waiting { reason: waiting, message: None, until: None };
        let state = match state {
            ContainerState { running: Some(running), .. } => {
                running.started_at.map_or(waiting, |since| State::Running { since: since.0 })
            }
            ContainerState { terminated: Some(terminated), .. } => State::Exited(terminated),
            _ => known
                .as_ref()
                .and_then(|known| known.last_state.as_ref()?.terminated.clone())
                .map_or(waiting, State::Exited),
        };
        Run {
            name: container.name.clone(),
            image: container.image.clone().unwrap_or_default(),
            state,
            restarts: known.as_ref().map_or(0, |known| known.restart_count),
            last: known.and_then(|known| known.last_state?.terminated),
            backoff: None,
            ready_delay,
            restarts_on,
        }
    }

    fn advance(
        &mut self,
        pod: &Pod,
        behaviour: &Behaviour,
        now: Timestamp,
        notices: &mut Vec<Notice>,
    ) -> Option<Timestamp> {
        // Each turn takes time except the first start and the first restart, so this ends.
        loop {
            let (state, next) = match self.state.clone() {
                State::Waiting { until: Some(until), .. } if now < until => return Some(until),
                State::Waiting { reason: CRASH_LOOP, .. } => (self.restart(now, notices), None),
                State::Waiting { reason, until, .. } => match &behaviour.pull_error {
                    Some(error) => self.fail_pull(reason, until, error, now, notices),
                    None => (self.start(now, notices), None),
                },
                State::Running { since } => match self.end(behaviour, since, now, notices) {
                    Ok(ended) => (ended, None),
                    Err(next) => return next,
                },
                State::Exited(_) if !self.will_restart() => return None,
                State::Exited(exited) => match self.back_off(pod, exited, now, notices) {
                    Some(waiting) => (waiting, None),
                    None => (self.restart(now, notices), None),
                },
            };
            self.state = state;
            if next.is_some() {
                return next;
            }
        }
    }

    fn start(&mut self, now: Timestamp, notices: &mut Vec<Notice>) -> State {
        let pulled = format!(
            "Container image {:?} already present on machine and can be accessed by the pod",
            self.image
        );
        for (reason, note) in [
            ("Pulled", pulled),
            ("Created", "Container created".into()),
            ("Started", "Container started".into()),
        ] {
            notices.push(self.notice(reason, note));
        }
        State::Running { since: now }
    }

    fn restart(&mut self, now: Timestamp, notices: &mut Vec<Notice>) -> State {
        if let State::Exited(exited) = &self.state {
            self.last = Some(exited.clone());
        }
        self.restarts += 1;
        self.start(now, notices)
    }

    /// An image that cannot be pulled is tried again and again.
    fn fail_pull(
        &mut self,
        reason: &str,
        until: Option<Timestamp>,
        error: &str,
        now: Timestamp,
        notices: &mut Vec<Notice>,
    ) -> (State, Option<Timestamp>) {
        let image = &self.image;
        if reason == PULL_FAILED && until.is_some_and(|until| now >= until) {
            let note = format!("Back-off pulling image {image:?}");
            notices.push(self.notice("BackOff", note.clone()));
            notices.push(self.warning("Failed", format!("Error: {PULL_BACKOFF}")));
            let backoff = next_backoff(self.backoff);
            self.backoff = Some(backoff);
            let until = after(now, backoff);
            let message = Some(format!("{note}: {PULL_FAILED}: {error}"));
            return (State::Waiting { reason: PULL_BACKOFF, message, until: Some(until) }, Some(until));
        }
        notices.push(self.notice("Pulling", format!("Pulling image {image:?}")));
        notices.push(self.warning("Failed", format!("Failed to pull image {image:?}: {error}")));
        notices.push(self.warning("Failed", format!("Error: {PULL_FAILED}")));
        let until = after(now, Duration::from_secs(1));
        (
            State::Waiting {
                reason: PULL_FAILED,
                message: Some(error.into()),
                until: Some(until),
            },
            Some(until),
        )
    }

    /// The end of a running container, or when to look again.
    fn end(
        &self,
        behaviour: &Behaviour,
        since: Timestamp,
        now: Timestamp,
        notices: &mut Vec<Notice>,
    ) -> Result<State, Option<Timestamp>> {
        if behaviour.unhealthy_after.is_some_and(|limit| after(since, limit) <= now) {
            notices.push(self.warning("Unhealthy", "Liveness probe failed: simulated".into()));
            let note = format!("Container {} failed liveness probe, will be restarted", self.name);
            notices.push(self.notice("Killing", note));
            return Ok(State::Exited(terminated(137, Some("Error"), None, since, now)));
        }
        let exit = behaviour.exit.as_ref();
        let exit = exit.filter(|exit| exit.times.is_none_or(|times| i64::from(self.restarts) < i64::from(times)));
        if let Some(exit) = exit.filter(|exit| after(since, exit.after) <= now) {
            let ended = terminated(exit.code, exit.reason.as_deref(), exit.message.clone(), since, now);
            return Ok(State::Exited(ended));
        }
        let mut next = None;
        earlier(&mut next, exit.map(|exit| after(since, exit.after)));
        earlier(&mut next, behaviour.unhealthy_after.map(|limit| after(since, limit)));
        earlier(&mut next, Some(after(since, self.ready_delay)).filter(|at| *at > now));
        let edges = behaviour.unready.iter().flat_map(|window| [Some(window.from), window.until]);
        for edge in edges.flatten().map(|edge| after(since, edge)).filter(|at| *at > now) {
            earlier(&mut next, Some(edge));
        }
        Err(next)
    }

    /// The wait before a container that has exited is started again; none for the first time.
    // pkg/kubelet/kuberuntime/kuberuntime_manager.go, doBackOff
    fn back_off(
        &mut self,
        pod: &Pod,
        exited: ContainerStateTerminated,
        now: Timestamp,
        notices: &mut Vec<Notice>,
    ) -> Option<State> {
        let ran = match (&exited.started_at, &exited.finished_at) {
            (Some(Time(from)), Some(Time(to))) => to.duration_since(*from),
            _ => SignedDuration::ZERO,
        };
        if ran >= SignedDuration::try_from(BACKOFF_RESET).unwrap_or(SignedDuration::MAX) {
            self.backoff = None;
        }
        let finished = exited.finished_at.as_ref().map_or(now, |time| time.0);
        let Some(backoff) = self.backoff else {
            self.backoff = Some(MIN_BACKOFF);
            return None;
        };
        self.backoff = Some(next_backoff(Some(backoff)));
        let until = after(finished, backoff);
        if until <= now {
            return None;
        }
        let meta = &pod.metadata;
        let full_name = format!(
            "{}_{}({})",
            meta.name.as_deref().unwrap_or_default(),
            meta.namespace.as_deref().unwrap_or_default(),
            meta.uid.as_deref().unwrap_or_default()
        );
        let name = &self.name;
        notices
            .push(self.warning("BackOff", format!("Back-off restarting failed container {name} in pod {full_name}")));
        let seconds = go_seconds(backoff);
        let message = format!("back-off {seconds} restarting failed container={name} pod={full_name}");
        self.last = Some(exited);
        Some(State::Waiting {
            reason: CRASH_LOOP,
            message: Some(message),
            until: Some(until),
        })
    }

    /// Whether a container is running and its readiness probe succeeds.
    pub(super) fn is_ready(&self, behaviour: &Behaviour, now: Timestamp) -> bool {
        let State::Running { since } = self.state else {
            return false;
        };
        let failing = |from: Duration, until: Option<Duration>| {
            after(since, from) <= now && until.is_none_or(|until| now < after(since, until))
        };
        now >= after(since, self.ready_delay)
            && !behaviour.unready.iter().any(|window| failing(window.from, window.until))
    }

    /// Whether an init container has succeeded, or runs beside the others.
    fn lets_others_start(&self) -> bool {
        match &self.state {
            State::Exited(exited) => exited.exit_code == 0 || self.is_sidecar(),
            State::Running { .. } => self.is_sidecar(),
            State::Waiting { .. } => self.is_sidecar() && self.last.is_some(),
        }
    }

    /// Whether this is an init container that runs beside the others.
    pub(super) fn is_sidecar(&self) -> bool {
        self.restarts_on == RestartsOn::Any
    }

    fn will_restart(&self) -> bool {
        match &self.state {
            State::Exited(exited) => match self.restarts_on {
                RestartsOn::Any => true,
                RestartsOn::Failure => exited.exit_code != 0,
                RestartsOn::Nothing => false,
            },
            _ => false,
        }
    }

    fn has_failed_for_good(&self) -> bool {
        matches!(&self.state, State::Exited(exited) if exited.exit_code != 0) && !self.will_restart()
    }

    fn notice(&self, reason: &'static str, note: String) -> Notice {
        Notice {
            container: self.name.clone(),
            is_warning: false,
            reason,
            note,
        }
    }

    fn warning(&self, reason: &'static str, note: String) -> Notice {
        Notice { is_warning: true, ..self.notice(reason, note) }
    }
}

fn restarts_on(spec: &PodSpec, container: &Container, is_init: bool) -> RestartsOn {
    let own = container.restart_policy.as_deref();
    match own.or(spec.restart_policy.as_deref()) {
        Some("Never") => RestartsOn::Nothing,
        Some("OnFailure") => RestartsOn::Failure,
        // An init container that succeeds is not started again, unless it is a sidecar.
        _ if is_init && own != Some("Always") => RestartsOn::Failure,
        _ => RestartsOn::Any,
    }
}

/// How long a container's probes make it wait before it can be ready.
fn probe_delay(container: &Container) -> Duration {
    let probes = [&container.startup_probe, &container.readiness_probe];
    let seconds = probes.into_iter().flatten().filter_map(|probe| probe.initial_delay_seconds).max();
    Duration::from_secs(seconds.unwrap_or_default().max(0) as u64)
}

fn terminated(
    code: i32,
    reason: Option<&str>,
    message: Option<String>,
    since: Timestamp,
    now: Timestamp,
) -> ContainerStateTerminated {
    let usual = if code == 0 { "Completed" } else { "Error" };
    ContainerStateTerminated {
        exit_code: code,
        reason: Some(reason.unwrap_or(usual).into()),
        message,
        started_at: Some(whole_second(since)),
        finished_at: Some(whole_second(now)),
        ..ContainerStateTerminated::default()
    }
}

/// A time as statuses have it.
pub(super) fn whole_second(time: Timestamp) -> Time {
    Time(Timestamp::from_second(time.as_second()).unwrap_or(time))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    fn pod(spec: Value) -> Pod {
        let mut full = json!({ "containers": [{ "name": "c", "image": "web:1" }] });
        full.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let metadata = json!({ "name": "a", "namespace": "default", "uid": "u" });
        serde_json::from_value(json!({ "metadata": metadata, "spec": full })).unwrap()
    }

    /// Runs a pod for so many seconds; its phase, the restarts of its container and its states.
    fn run(spec: Value, behaviour: &str, seconds: i64) -> (PodRun, Vec<Notice>) {
        let pod = pod(spec);
        let mut run = PodRun::of(&pod, behaviour.parse().unwrap(), at(0));
        let mut notices = Vec::new();
        let mut now = at(0);
        while let Some(next) = run.advance(&pod, now, &mut notices).filter(|next| *next <= at(seconds)) {
            assert!(next > now, "time stands still at {now}");
            now = next;
        }
        (run, notices)
    }

    #[test]
    fn a_crash_loop_waits_longer_each_time() {
        let restarts = |seconds| run(json!({}), "exit: { code: 1, after: 1s }", seconds).0.main[0].restarts;
        assert_eq!([2, 3, 11, 13, 32, 34].map(restarts), [1, 1, 1, 2, 2, 3]);
        let (looping, notices) = run(json!({}), "exit: { code: 1, after: 1s }", 5);
        let State::Waiting { reason: CRASH_LOOP, message, .. } = &looping.main[0].state else {
            panic!("{looping:?}");
        };
        assert_eq!(message.as_deref(), Some("back-off 10s restarting failed container=c pod=a_default(u)"));
        assert_eq!(looping.phase(), "Running");
        let backed_off = notices.iter().filter(|notice| notice.reason == "BackOff").count();
        assert_eq!(backed_off, 1);
    }

    #[test]
    fn containers_that_are_not_started_again_end_the_pod() {
        let phase = |policy: &str, code: i32| {
            let behaviour = format!("exit: {{ code: {code}, after: 1s }}");
            run(json!({ "restartPolicy": policy }), &behaviour, 5).0.phase()
        };
        assert_eq!(phase("Never", 0), "Succeeded");
        assert_eq!(phase("Never", 3), "Failed");
        assert_eq!(phase("OnFailure", 0), "Succeeded");
        assert_eq!(phase("OnFailure", 3), "Running");
        assert_eq!(phase("Always", 0), "Running");
    }

    #[test]
    fn a_container_may_recover_after_some_exits() {
        let (run, _) = run(json!({}), "exit: { code: 1, after: 1s, times: 2 }", 1000);
        assert_eq!((run.main[0].restarts, run.phase()), (2, "Running"));
        assert!(run.main[0].is_ready(&run.behaviour, at(1000)));
    }

    #[test]
    fn an_image_that_cannot_be_pulled_keeps_a_pod_pending() {
        let (run, notices) = run(json!({}), "pullError: no such tag", 5);
        let State::Waiting { reason, message, .. } = &run.main[0].state else {
            panic!("{run:?}");
        };
        let expected = "Back-off pulling image \"web:1\": ErrImagePull: no such tag";
        assert_eq!((*reason, message.as_deref()), (PULL_BACKOFF, Some(expected)));
        assert_eq!(run.phase(), "Pending");
        let notes: Vec<_> = notices.iter().map(|notice| notice.note.as_str()).collect();
        assert_eq!(
            notes[..3],
            [
                "Pulling image \"web:1\"",
                "Failed to pull image \"web:1\": no such tag",
                "Error: ErrImagePull"
            ]
        );
    }

    #[test]
    fn init_containers_run_one_after_the_other() {
        let init = json!([{ "name": "first" }, { "name": "beside", "restartPolicy": "Always" }, { "name": "last" }]);
        let (started, _) = run(json!({ "initContainers": init }), "containers: { last: { exit: { after: 10s } } }", 5);
        assert_eq!((started.phase(), started.is_initialized()), ("Pending", false));
        assert!(
            matches!(started.init[0].state, State::Exited(_)) && matches!(started.init[1].state, State::Running { .. })
        );
        let (done, _) = run(json!({ "initContainers": init }), "containers: { last: { exit: { after: 10s } } }", 11);
        assert_eq!((done.phase(), done.is_initialized()), ("Running", true));
        let failing = "containers: { first: { exit: { code: 1 } } }";
        let (failed, _) = run(json!({ "initContainers": init, "restartPolicy": "Never" }), failing, 5);
        assert_eq!(failed.phase(), "Failed");
    }

    #[test]
    fn probes_fail_for_a_while() {
        let (run, _) = run(json!({}), "unready: [{ from: 10s, until: 20s }]", 100);
        let ready = [5, 15, 25].map(|second| run.main[0].is_ready(&run.behaviour, at(second)));
        assert_eq!(ready, [true, false, true]);
    }
}
