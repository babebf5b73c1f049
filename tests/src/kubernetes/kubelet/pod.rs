// SPDX-License-Identifier: Apache-2.0
//! The life of one pod, from its binding to a node to its end.

use super::container::command;
use super::probes::Probes;
use super::status::Status;
use super::volumes::Volumes;
use super::{Host, Running, name_of};
use crate::machine::process::Process;
use serde_json::Value;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::sync::watch;

/// The time between two looks at a container.
const PERIOD: Duration = Duration::from_millis(50);
/// The time between two looks at the ConfigMaps and Secrets. That of the real kubelet is a minute.
const REFRESH: Duration = Duration::from_secs(1);
/// The time between the end of a container and its second start, and again for each later one.
const BACK_OFF: Duration = Duration::from_secs(10);

/// The reason why a container is not looked at any more.
enum End {
    /// The container has ended with this code.
    Exited(i32),
    /// The pod was deleted, and its container has ended.
    Deleted,
}

/// A process that does not outlive its pod.
struct Container(Process);

impl Drop for Container {
    fn drop(&mut self) {
        self.0.stop(Duration::ZERO);
    }
}

/// A pod that is bound to a node of this kubelet.
struct Pod {
    host: Arc<Host>,
    object: watch::Receiver<Value>,
    address: IpAddr,
    // Declared behind all that uses it.
    folder: TempDir,
}

/// Runs a pod to its end.
pub(super) async fn run(host: Arc<Host>, object: watch::Receiver<Value>) {
    let pod = Pod {
        address: host.address(),
        host,
        object,
        folder: TempDir::with_prefix("sluice-kubelet-").unwrap(),
    };
    let template = pod.object.borrow().clone();
    let mut status = Status::new(&template, pod.address);
    status.report(&pod.host).await;
    let making = Volumes::make(pod.host.api, &template, pod.folder.path());
    let mut volumes = tokio::select! {
        volumes = making => volumes,
        () = pod.is_deleted() => return pod.forget(&template).await,
    };
    let is_started_again = template["spec"]["restartPolicy"] == "Always";
    while let End::Exited(code) = pod
        .run_container(&template, &mut volumes, &mut status)
        .await
    {
        let log = std::fs::read_to_string(pod.log()).unwrap_or_default();
        status.ended(code, &log, !is_started_again);
        status.report(&pod.host).await;
        if !is_started_again {
            pod.is_deleted().await;
            break;
        }
        tokio::select! {
            () = tokio::time::sleep(BACK_OFF * status.restarts) => {}
            () = pod.is_deleted() => break,
        }
        status.restarts += 1;
    }
    pod.forget(&template).await;
}

impl Pod {
    fn log(&self) -> PathBuf {
        self.folder.path().join("..log")
    }

    /// Starts the container, and looks after it until it has ended.
    async fn run_container(
        &self,
        template: &Value,
        volumes: &mut Volumes,
        status: &mut Status,
    ) -> End {
        let name = name_of(template);
        let place = self.folder.path();
        let command = command(&self.host, template, self.address, volumes, place).await;
        let mut container = Container(Process::start(command, &self.log()).unwrap());
        let running = Running {
            pid: container.0.pid(),
            log: self.log(),
        };
        self.host.running.lock().unwrap().insert(name, running);
        status.runs();
        let mut probes = Probes::of(&template["spec"]["containers"][0], self.address);
        let mut refreshed = Instant::now();
        loop {
            if let Some(exit) = container.0.exited() {
                return End::Exited(code(exit));
            }
            if let Some(grace) = self.grace() {
                end(&self.host, &mut container, grace, &mut probes, status).await;
                return End::Deleted;
            }
            let findings = probes.turn().await;
            status.is_ready(findings.ready);
            status.report(&self.host).await;
            if findings.dead {
                let grace = template["spec"]["terminationGracePeriodSeconds"].as_u64();
                let grace = Duration::from_secs(grace.unwrap());
                end(&self.host, &mut container, grace, &mut probes, status).await;
            } else if refreshed.elapsed() >= REFRESH {
                volumes.update(self.host.api).await;
                refreshed = Instant::now();
            }
            tokio::time::sleep(PERIOD).await;
        }
    }

    /// The time that the container gets to end, if the pod is deleted. It is zero if the pod is gone.
    fn grace(&self) -> Option<Duration> {
        if self.object.has_changed().is_err() {
            return Some(Duration::ZERO);
        }
        let object = self.object.borrow();
        let about = &object["metadata"];
        about["deletionTimestamp"].as_str()?;
        let seconds = about["deletionGracePeriodSeconds"].as_u64();
        Some(Duration::from_secs(seconds.unwrap_or_default()))
    }

    /// Waits until the pod is deleted.
    async fn is_deleted(&self) {
        while self.grace().is_none() {
            tokio::time::sleep(PERIOD).await;
        }
    }

    /// Reports the end of the pod's last container, after which the API server forgets the pod.
    async fn forget(&self, template: &Value) {
        let name = name_of(template);
        let [namespace, pod] = &name;
        let uid = template["metadata"]["uid"].as_str().unwrap();
        let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}");
        self.host.api.delete(&path, uid).await;
        let mut running = self.host.running.lock().unwrap();
        // A StatefulSet may have another pod of this name.
        if running
            .get(&name)
            .is_some_and(|running| running.log == self.log())
        {
            running.remove(&name);
        }
    }
}

/// Asks the container to end, and ends it when its time is over. Meanwhile its readiness is reported.
async fn end(
    host: &Host,
    container: &mut Container,
    grace: Duration,
    probes: &mut Probes,
    status: &mut Status,
) {
    container.0.signal(libc::SIGTERM);
    let deadline = Instant::now() + grace;
    while container.0.exited().is_none() && Instant::now() < deadline {
        status.is_ready(probes.turn().await.ready);
        status.report(host).await;
        tokio::time::sleep(PERIOD).await;
    }
    container.0.stop(Duration::ZERO);
}

/// The exit code of a process; for one that a signal has ended, 128 and the number of the signal.
fn code(exit: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt as _;
    let by_signal = || 128 + exit.signal().unwrap_or_default();
    exit.code().unwrap_or_else(by_signal)
}
