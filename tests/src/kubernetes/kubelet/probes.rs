// SPDX-License-Identifier: Apache-2.0
//! The probes of a container.

use crate::client::is_healthy;
use serde_json::Value;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

/// A probe by HTTP.
struct Probe {
    target: SocketAddr,
    path: String,
    period: Duration,
    timeout: Duration,
    most_failures: u64,
    failures: u64,
    /// The result, which several failures or one success change.
    succeeds: bool,
    due: Instant,
}

impl Probe {
    /// The probe of this name, if the container has it.
    fn of(container: &Value, name: &str, address: IpAddr) -> Option<Self> {
        let probe = container[name].as_object()?;
        let about = &probe["httpGet"];
        let mut ports = container["ports"].as_array()?.iter();
        let port = ports.find(|port| port["name"] == about["port"])?["containerPort"].as_u64()?;
        let number = |field: &str| probe[field].as_u64().unwrap();
        Some(Self {
            target: SocketAddr::new(address, u16::try_from(port).unwrap()),
            path: about["path"].as_str()?.to_owned(),
            period: Duration::from_secs(number("periodSeconds")),
            timeout: Duration::from_secs(number("timeoutSeconds")),
            most_failures: number("failureThreshold"),
            failures: 0,
            succeeds: false,
            due: Instant::now(),
        })
    }

    /// Probes the container, if that is due. Returns whether it failed too often.
    async fn turn(&mut self) -> bool {
        if Instant::now() >= self.due {
            self.due = Instant::now() + self.period;
            let healthy = is_healthy(self.target, &self.path);
            if tokio::time::timeout(self.timeout, healthy).await == Ok(true) {
                (self.failures, self.succeeds) = (0, true);
            } else {
                self.failures += 1;
                self.succeeds &= self.failures < self.most_failures;
            }
        }
        self.failures >= self.most_failures
    }
}

/// The probes of a container that has been started.
pub(super) struct Probes {
    startup: Option<Probe>,
    readiness: Option<Probe>,
    liveness: Option<Probe>,
}

/// The results of the probes.
pub(super) struct Findings {
    /// Whether the container gets connections.
    pub(super) ready: bool,
    /// Whether the container has to be started again.
    pub(super) dead: bool,
}

impl Probes {
    pub(super) fn of(container: &Value, address: IpAddr) -> Self {
        let probe = |name| Probe::of(container, name, address);
        Self {
            startup: probe("startupProbe"),
            readiness: probe("readinessProbe"),
            liveness: probe("livenessProbe"),
        }
    }

    /// Runs the probes that are due. Readiness and liveness wait for the startup probe.
    pub(super) async fn turn(&mut self) -> Findings {
        if let Some(startup) = &mut self.startup
            && !startup.succeeds
        {
            let dead = startup.turn().await;
            if !startup.succeeds {
                return Findings { ready: false, dead };
            }
        }
        let ready = match &mut self.readiness {
            Some(readiness) => {
                readiness.turn().await;
                readiness.succeeds
            }
            None => true,
        };
        let dead = match &mut self.liveness {
            Some(liveness) => liveness.turn().await,
            None => false,
        };
        Findings { ready, dead }
    }
}
