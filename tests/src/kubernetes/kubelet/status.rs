// SPDX-License-Identifier: Apache-2.0
//! The reports of the kubelet about its nodes and pods.

use super::Host;
use serde_json::{Value, json};
use std::net::IpAddr;

/// The most bytes of a log that are the message of a container's end.
const MESSAGE: usize = 2_048;

/// The current time, as the API has it.
pub(super) fn now() -> String {
    let now = jiff::Timestamp::now();
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The status of a node with room for all pods of a test, whose logs are served on this port.
pub(super) fn of_node(port: u16) -> Value {
    let room = json!({"cpu": "64", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "110"});
    let now = now();
    let ready = json!({
        "type": "Ready", "status": "True", "reason": "KubeletReady",
        "lastHeartbeatTime": now, "lastTransitionTime": now,
    });
    json!({"status": {
        "capacity": room, "allocatable": room, "conditions": [ready],
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    }})
}

/// The status of a pod with one container.
pub(super) struct Status {
    path: String,
    container: Value,
    address: IpAddr,
    begun: String,
    /// How often the container was started again.
    pub(super) restarts: u32,
    ready: (bool, String),
    state: Value,
    last: Value,
    phase: &'static str,
    reported: Value,
}

impl Status {
    pub(super) fn new(pod: &Value, address: IpAddr) -> Self {
        let [namespace, name] = super::name_of(pod);
        Self {
            path: format!("/api/v1/namespaces/{namespace}/pods/{name}/status"),
            container: pod["spec"]["containers"][0].clone(),
            address,
            begun: now(),
            restarts: 0,
            ready: (false, now()),
            state: json!({"waiting": {"reason": "ContainerCreating"}}),
            last: json!({}),
            phase: "Pending",
            reported: Value::Null,
        }
    }

    /// Notes that the container runs.
    pub(super) fn runs(&mut self) {
        self.phase = "Running";
        let former = std::mem::replace(&mut self.state, json!({"running": {"startedAt": now()}}));
        if former["terminated"].is_object() {
            self.last = former;
        }
    }

    /// Notes whether the pod is ready.
    pub(super) fn is_ready(&mut self, ready: bool) {
        if ready != self.ready.0 {
            self.ready = (ready, now());
        }
    }

    /// Notes that the container has ended with this code, for good if its pod is never started again.
    pub(super) fn ended(&mut self, code: i32, log: &str, is_final: bool) {
        self.is_ready(false);
        let start = log.len().saturating_sub(MESSAGE);
        let start = (start..=log.len()).find(|&at| log.is_char_boundary(at));
        let fails = code != 0;
        let (reason, message) = match fails {
            true => ("Error", &log[start.unwrap_or_default()..]),
            false => ("Completed", ""),
        };
        self.state = json!({"terminated": {
            "exitCode": code, "reason": reason, "message": message, "finishedAt": now(),
        }});
        if is_final {
            self.phase = if fails { "Failed" } else { "Succeeded" };
        }
    }

    /// Reports the status if it has changed.
    pub(super) async fn report(&mut self, host: &Host) {
        let status = self.object();
        if status != self.reported {
            host.api.patch(&self.path, &status).await;
            self.reported = status;
        }
    }

    fn object(&self) -> Value {
        let (ready, since) = &self.ready;
        let state = |is: bool| if is { "True" } else { "False" };
        let conditions = [
            ("Initialized", true),
            ("ContainersReady", *ready),
            ("Ready", *ready),
        ];
        let conditions = conditions.map(
            |(kind, is)| json!({"type": kind, "status": state(is), "lastTransitionTime": since}),
        );
        json!({"status": {
            "phase": self.phase, "startTime": self.begun, "hostIP": "127.0.0.1",
            "podIP": self.address, "podIPs": [{"ip": self.address}], "conditions": conditions,
            "containerStatuses": [{
                "name": self.container["name"], "image": self.container["image"], "imageID": "",
                "ready": ready, "started": ready, "restartCount": self.restarts,
                "state": self.state, "lastState": self.last,
            }],
        }})
    }
}
