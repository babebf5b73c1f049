// SPDX-License-Identifier: Apache-2.0
//! The API server over cleartext HTTP, through `kubectl proxy`: a kubelet asks it ten times a second.

use crate::client::{Client, Response, request};
use crate::eventually;
use crate::machine::ports::{free_port, loopback};
use crate::machine::process::Process;
use crate::mesh::cluster::Cluster;
use serde_json::{Value, json};
use std::net::SocketAddr;

/// A way to the API server, for any thread.
#[derive(Clone, Copy, Debug)]
pub struct Api(SocketAddr);

/// Opens a way to the API server, which is closed when the process is dropped.
pub async fn open(cluster: &Cluster) -> (Process, Api) {
    let port = free_port();
    let process = cluster.start_beside("kubectl", &["proxy", &format!("--port={port}")]);
    let api = Api(loopback(port));
    eventually("kubectl proxy", async || {
        api.get("/version").await.is_some()
    })
    .await;
    (process, api)
}

impl Api {
    /// The object or the list at this path. `None`: it is not there, or the API server does not answer.
    pub async fn get(self, path: &str) -> Option<Value> {
        let response = self.call("GET", path, None).await?;
        (response.status == 200).then(|| serde_json::from_slice(&response.body).unwrap())
    }

    /// The objects of the list at this path.
    pub async fn list(self, path: &str) -> Option<Vec<Value>> {
        let mut list = self.get(path).await?;
        match list["items"].take() {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Merges `patch` into the object at this path, which may be gone.
    ///
    /// # Panics
    /// When the API server refuses the patch.
    pub async fn patch(self, path: &str, patch: &Value) {
        let kind = "application/strategic-merge-patch+json";
        let response = self.call("PATCH", path, Some((kind, patch))).await;
        let is_fine = response
            .as_ref()
            .is_none_or(|response| matches!(response.status, 200 | 404));
        assert!(is_fine, "{path}: {response:?}");
    }

    /// Deletes the object at this path at once, if it still has this uid.
    pub async fn delete(self, path: &str, uid: &str) {
        let options = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": uid}});
        self.call("DELETE", path, Some(("application/json", &options)))
            .await;
    }

    async fn call(
        self,
        method: &str,
        path: &str,
        body: Option<(&str, &Value)>,
    ) -> Option<Response> {
        let mut client = Client::try_connect(self.0).await.ok()?;
        // `kubectl proxy` serves only this machine.
        let host = ("host", "localhost");
        let bytes = match body {
            None => request(method, path, &[host]),
            Some((kind, value)) => {
                let text = value.to_string();
                let length = text.len().to_string();
                let fields = [host, ("content-type", kind), ("content-length", &length)];
                let mut bytes = request(method, path, &fields);
                bytes.extend_from_slice(text.as_bytes());
                bytes
            }
        };
        client.try_exchange(bytes).await.ok()
    }
}
