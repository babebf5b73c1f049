// SPDX-License-Identifier: Apache-2.0
//! A guard in front of a registry, which admits only clients with the credentials.

use super::registry::Registry;
use crate::server::Server;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::TcpStream;

/// User and password of a reader.
const CREDENTIALS: &str = "reader:the-password-of-the-registry";

/// A guarded registry. Dropping it ends the guard.
pub struct Guard {
    server: Server,
}

impl Guard {
    /// Starts a guard in front of the registry.
    #[must_use]
    pub fn before(registry: &Registry) -> Self {
        let target = registry.address();
        let server = Server::start("registry-guard", move |client, _| admit(client, target));
        Self { server }
    }

    /// Name of the filter's image of that digest in the mesh, through this guard.
    #[must_use]
    pub fn url(&self, digest: &str) -> String {
        format!("oci://{}/sluice/filter@{digest}", self.server.address())
    }

    /// The Secret of that namespace that `kubectl create secret docker-registry` would make of the credentials.
    #[must_use]
    pub fn secret(&self, namespace: &str, name: &str) -> Value {
        let host = self.server.address().to_string();
        let config = json!({"auths": {host: {"auth": BASE64_STANDARD.encode(CREDENTIALS)}}});
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/dockerconfigjson",
            "metadata": {"name": name, "namespace": namespace},
            "stringData": {".dockerconfigjson": config.to_string()},
        })
    }
}

/// Forwards the connection if its first request has the credentials, and otherwise answers with status 401.
async fn admit(mut client: TcpStream, target: SocketAddr) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if client.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
        if !head[0].is_ascii_uppercase() {
            // Clients of a registry try TLS first. They receive the error that a server of Go sends for TLS on a
            // cleartext port.
            return client.write_all(b"HTTP/1.0 400 Bad Request\r\n\r\n").await;
        }
    }
    let wanted = format!("basic {}", BASE64_STANDARD.encode(CREDENTIALS)).to_lowercase();
    let said = String::from_utf8_lossy(&head).to_lowercase();
    let given = said
        .lines()
        .find_map(|line| line.strip_prefix("authorization: "));
    if given != Some(&wanted) {
        // Like ECR's realm: Istio's agent refuses a realm that is not the URL of a public host.
        let refusal = "HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Basic realm=\"https://registry.example.com/\"\r\n\
                       connection: close\r\ncontent-length: 0\r\n\r\n";
        return client.write_all(refusal.as_bytes()).await;
    }
    let mut registry = TcpStream::connect(target).await?;
    registry.write_all(&head).await?;
    copy_bidirectional(&mut client, &mut registry).await?;
    Ok(())
}
