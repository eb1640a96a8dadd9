//! A real control plane on loopback: etcd and kube-apiserver, and kube-controller-manager where asked for.
//! Where the programs come from is `binaries`; how they are kept from outliving us is `process`.

mod binaries;
mod build;
mod certificates;
mod error;
mod etcd;
mod kubeconfig;
mod process;

pub use binaries::{Binaries, cache_directory};
pub(crate) use build::require_go;
pub use error::Error;
pub use etcd::{Etcd, Setting};
pub use kubeconfig::Access;

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::time::{Duration, Instant};

use certificates::Certificates;

pub(crate) use process::{Process, exists};

/// How long the control plane may take to become ready.
const READY_WITHIN: Duration = Duration::from_secs(90);

/// A running control plane; it ends, and its data goes, when this is dropped or the process that holds it dies.
pub struct Reference {
    /// A member of `system:masters`.
    pub admin: Access,
    /// A user that no role is bound to.
    pub restricted: Access,
    // Dropped in this order: whoever talks to another goes first, the directory last.
    controllers: Option<Process>,
    apiserver: Process,
    etcd: Process,
    again: Again,
    directory: tempfile::TempDir,
}

/// What kube-apiserver is started with, again if need be.
struct Again {
    binaries: Binaries,
    port: u16,
    etcd_port: u16,
    audit: Audit,
}

/// What a control plane is started with; [`Reference::start`] takes the defaults.
#[derive(Debug, Default)]
pub struct Setup {
    /// The port kube-apiserver serves on; a free one by default.
    pub port: Option<u16>,
    /// Whether kube-controller-manager runs too.
    pub controllers: Controllers,
    /// What kube-apiserver writes into `audit.log`.
    pub audit: Audit,
}

/// What kube-apiserver writes down of what it is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Audit {
    /// Nothing.
    #[default]
    Off,
    /// Every write of Leases and ConfigMaps in `default`, with its answer.
    Leadership,
    /// That there was a write in `default`, of anything but Leases and Events.
    Writes,
}

impl Audit {
    fn policy(self) -> Option<&'static str> {
        match self {
            Audit::Off => None,
            Audit::Leadership => Some(LEADERSHIP),
            Audit::Writes => Some(WRITES),
        }
    }
}

/// The policy of [`Audit::Writes`].
const WRITES: &str = r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived", "ResponseStarted"], "rules": [
  {"level": "None", "resources": [{"group": "coordination.k8s.io"}, {"group": "events.k8s.io"}, {"group": "", "resources": ["events"]}]},
  {"level": "Metadata", "verbs": ["create", "update", "patch", "delete", "deletecollection"], "namespaces": ["default"]},
  {"level": "None"}]}
"#;

/// The policy of [`Audit::Leadership`].
const LEADERSHIP: &str = r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived", "ResponseStarted"], "rules": [
  {"level": "RequestResponse", "verbs": ["create", "update", "patch"], "namespaces": ["default"], "resources": [
    {"group": "", "resources": ["configmaps"]}, {"group": "coordination.k8s.io", "resources": ["leases"]}]},
  {"level": "None"}]}
"#;

/// Whether kube-controller-manager runs beside kube-apiserver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Controllers {
    /// Nobody collects garbage, deletes namespaces or makes pods.
    #[default]
    Absent,
    /// Every controller that is on by default.
    Running,
}

impl Reference {
    /// Starts etcd and kube-apiserver and waits until they are ready.
    pub async fn start() -> Result<Self, Error> {
        Self::start_with(Setup::default()).await
    }

    /// Starts etcd, kube-apiserver and kube-controller-manager.
    pub async fn with_controllers() -> Result<Self, Error> {
        Self::start_with(Setup { controllers: Controllers::Running, ..Setup::default() }).await
    }

    /// Starts what `setup` says; the programs are built first if this machine has none.
    pub async fn start_with(setup: Setup) -> Result<Self, Error> {
        if let Some(port) = setup.port {
            require_free(port)?;
        }
        let binaries = tokio::task::spawn_blocking(Binaries::find_or_build)
            .await
            .expect("finding binaries never panics")?;
        if setup.controllers == Controllers::Running {
            binaries.require_controllers()?;
        }
        let mut started = Self::start_from(&binaries, &setup).await;
        // A free port is free only until somebody else takes it.
        while setup.port.is_none() && matches!(&started, Err(error) if error.is_lost_port()) {
            started = Self::start_from(&binaries, &setup).await;
        }
        started
    }

    async fn start_from(binaries: &Binaries, setup: &Setup) -> Result<Self, Error> {
        let [port, client_port, peer_port] = free_ports()?;
        let port = setup.port.unwrap_or(port);
        require_free(port)?;
        let directory = tempfile::Builder::new()
            .prefix("flyball-reference-")
            .tempdir()
            .map_err(Error::Directory)?;
        let path = directory.path();
        let certificates = Certificates::write(path)?;
        let admin = Access::write(path, "admin", port, &certificates.ca, &certificates.admin).await?;
        let restricted = Access::write(path, "restricted", port, &certificates.ca, &certificates.restricted).await?;

        let etcd = start_etcd(binaries, path, client_port, peer_port)?;
        let again = Again {
            binaries: binaries.clone(),
            port,
            etcd_port: client_port,
            audit: setup.audit,
        };
        let apiserver = start_apiserver(path, &again)?;
        let mut reference = Self {
            admin,
            restricted,
            controllers: None,
            apiserver,
            etcd,
            again,
            directory,
        };
        reference.wait_until_ready().await?;
        if setup.controllers == Controllers::Running {
            reference.controllers = Some(start_controllers(binaries, reference.directory.path())?);
        }
        Ok(reference)
    }

    /// Kills kube-apiserver, and starts it again on what etcd has.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.apiserver.stop().map_err(Error::Directory)?;
        self.apiserver = start_apiserver(self.directory.path(), &self.again)?;
        Ok(())
    }

    /// Where the running programs keep their data and logs (`etcd.log`, `kube-apiserver.log`, …).
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The running programs by name, with their process ids.
    pub fn processes(&self) -> Vec<(&'static str, u32)> {
        self.all().filter_map(|process| Some((process.name, process.pid()?))).collect()
    }

    /// The process ids of everything that was started.
    pub(crate) fn pids(&self) -> Vec<u32> {
        self.all().flat_map(|process| [Some(process.keeper()), process.pid()]).flatten().collect()
    }

    fn all(&self) -> impl Iterator<Item = &Process> {
        [Some(&self.etcd), Some(&self.apiserver), self.controllers.as_ref()].into_iter().flatten()
    }

    async fn wait_until_ready(&mut self) -> Result<(), Error> {
        let client = self.admin.client()?;
        let started = Instant::now();
        loop {
            self.etcd.check()?;
            self.apiserver.check()?;
            let request = http::Request::get("/readyz").body(Vec::new()).expect("a constant request");
            let answer = client.request_text(request).await;
            match answer {
                Ok(text) if text == "ok" && self.bootstrapped(&client).await => return Ok(()),
                _ if started.elapsed() > READY_WITHIN => {
                    return Err(Error::NotReady {
                        seconds: READY_WITHIN.as_secs(),
                        log: self.apiserver.log_tail(),
                    });
                }
                _ => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    /// Whether the namespaces that every cluster has are there: `/readyz` may say `ok` a moment before.
    async fn bootstrapped(&self, client: &kube::Client) -> bool {
        let services = kube::Api::<k8s_openapi::api::core::v1::Service>::namespaced(client.clone(), "default");
        let namespaces = kube::Api::<k8s_openapi::api::core::v1::Namespace>::all(client.clone());
        let namespaces = namespaces.list(&kube::api::ListParams::default()).await;
        services.get("kubernetes").await.is_ok() && namespaces.is_ok_and(|list| list.items.len() >= 4)
    }
}

fn start_etcd(binaries: &Binaries, directory: &Path, client_port: u16, peer_port: u16) -> Result<Process, Error> {
    let client = format!("http://127.0.0.1:{client_port}");
    let peer = format!("http://127.0.0.1:{peer_port}");
    let arguments = [
        format!("--data-dir={}", directory.join("etcd").display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
    ];
    Process::start("etcd", &binaries.etcd, directory, &arguments)
}

fn start_apiserver(directory: &Path, again: &Again) -> Result<Process, Error> {
    let Again { binaries, port, etcd_port, audit } = again;
    let file = |name: &str| directory.join(name).display().to_string();
    let mut arguments = vec![
        format!("--etcd-servers=http://127.0.0.1:{etcd_port}"),
        "--bind-address=127.0.0.1".into(),
        "--advertise-address=127.0.0.1".into(),
        format!("--secure-port={port}"),
        format!("--cert-dir={}", file("certificates")),
        format!("--tls-cert-file={}", file("server.crt")),
        format!("--tls-private-key-file={}", file("server.key")),
        format!("--client-ca-file={}", file("ca.crt")),
        "--authorization-mode=RBAC".into(),
        "--enable-admission-plugins=ServiceAccount".into(),
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local".into(),
        format!("--service-account-key-file={}", file("service-account.pub")),
        format!("--service-account-signing-key-file={}", file("service-account.key")),
        "--service-cluster-ip-range=10.0.0.0/24".into(),
        "--allow-privileged=true".into(),
        "--endpoint-reconciler-type=none".into(),
    ];
    if let Some(policy) = audit.policy() {
        std::fs::write(directory.join("audit.policy"), policy).map_err(Error::Directory)?;
        arguments.push(format!("--audit-policy-file={}", file("audit.policy")));
        arguments.push(format!("--audit-log-path={}", file("audit.log")));
    }
    Process::start("kube-apiserver", &binaries.kube_apiserver, directory, &arguments)
}

fn start_controllers(binaries: &Binaries, directory: &Path) -> Result<Process, Error> {
    let file = |name: &str| directory.join(name).display().to_string();
    let arguments = [
        format!("--kubeconfig={}", file("admin.kubeconfig")),
        format!("--root-ca-file={}", file("ca.crt")),
        format!("--service-account-private-key-file={}", file("service-account.key")),
        "--bind-address=127.0.0.1".into(),
        "--secure-port=0".into(),
        "--leader-elect=false".into(),
    ];
    Process::start("kube-controller-manager", &binaries.kube_controller_manager, directory, &arguments)
}

/// Some free ports; all are held until all are known, so that they differ.
fn free_ports<const N: usize>() -> Result<[u16; N], Error> {
    let bind = |_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Error::NoFreePort);
    let held = (0..N).map(bind).collect::<Result<Vec<_>, _>>()?;
    let mut ports = [0; N];
    for (port, listener) in ports.iter_mut().zip(&held) {
        *port = listener.local_addr().map_err(Error::NoFreePort)?.port();
    }
    Ok(ports)
}

fn require_free(port: u16) -> Result<(), Error> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .map(drop)
        .map_err(|source| Error::PortInUse { port, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_occupied_port_is_one_clear_sentence() {
        let occupied = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = occupied.local_addr().unwrap().port();

        let error = Reference::start_with(Setup { port: Some(port), ..Setup::default() }).await.err().unwrap();

        let expected = format!(
            "port {port} on 127.0.0.1 is in use by another process: stop it, or leave the port out to get a free one"
        );
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn free_ports_differ() {
        let [first, second, third] = free_ports().unwrap();
        assert!(first != second && second != third && first != third);
    }
}
