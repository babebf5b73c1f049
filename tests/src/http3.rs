// SPDX-License-Identifier: Apache-2.0
//! A client of HTTP/3: a second Envoy. It sends each request that it gets in cleartext to a server over QUIC.

use crate::PATIENCE;
use crate::client;
use crate::edge::log::tail;
use crate::edge::tls::Certificate;
use crate::machine::ports::{free_port, loopback};
use crate::machine::process::Process;
use crate::machine::tool::envoy;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// An Envoy whose only upstream protocol is HTTP/3.
pub struct Http3 {
    port: u16,
    process: Process,
    _folder: TempDir,
}

impl Http3 {
    /// Starts a client of the server at this UDP address, which must have the certificate as it is now. The connection
    /// stays open until the client ends.
    ///
    /// # Panics
    /// When no answer to `/healthz` comes.
    pub async fn start(server: SocketAddr, certificate: &Certificate) -> Self {
        let folder = TempDir::with_prefix("sluice-http3-").unwrap();
        let trusted = folder.path().join("trusted.pem");
        std::fs::copy(certificate.cert(), &trusted).unwrap();
        let port = free_port();
        let config = folder.path().join("envoy.json");
        let text = configuration(port, server, &trusted.display().to_string());
        std::fs::write(&config, text.to_string()).unwrap();
        let mut command = Command::new(envoy());
        command.args(["--disable-hot-restart", "--log-level", "warning"]);
        command.args(["--concurrency", "1", "-c"]).arg(config);
        let process = Process::start(command, &folder.path().join("envoy.log")).unwrap();
        let client = Self {
            port,
            process,
            _folder: folder,
        };
        client.come_up().await;
        client
    }

    async fn come_up(&self) {
        let up = async {
            while !client::is_healthy(self.address(), "/healthz").await {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let up = tokio::time::timeout(PATIENCE, up).await;
        up.unwrap_or_else(|_| panic!("no HTTP/3:\n{}", tail(&self.process.log(), 40)));
    }

    /// The address at which it takes requests in cleartext.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        loopback(self.port)
    }
}

fn configuration(port: u16, server: SocketAddr, trusted: &str) -> Value {
    const EXTENSIONS: &str = "type.googleapis.com/envoy.extensions";
    let address = |address: SocketAddr| json!({"socket_address": {"address": address.ip().to_string(), "port_value": address.port()}});
    let manager = json!({
        "@type": format!("{EXTENSIONS}.filters.network.http_connection_manager.v3.HttpConnectionManager"),
        "stat_prefix": "client",
        "server_header_transformation": "PASS_THROUGH",
        "scheme_header_transformation": {"scheme_to_overwrite": "https"},
        "max_request_headers_kb": 512,
        "common_http_protocol_options": {"max_headers_count": 1_000},
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [
            {"match": {"prefix": "/"}, "route": {"cluster": "server", "timeout": "0s"}},
        ]}]},
        "http_filters": [{"name": "router", "typed_config": {
            "@type": format!("{EXTENSIONS}.filters.http.router.v3.Router"),
            "suppress_envoy_headers": true,
        }}],
    });
    let quic = json!({
        "@type": format!("{EXTENSIONS}.transport_sockets.quic.v3.QuicUpstreamTransport"),
        "upstream_tls_context": {"sni": "edge.test", "common_tls_context": {
            "validation_context": {"trusted_ca": {"filename": trusted}},
        }},
    });
    let protocol = json!({
        "@type": format!("{EXTENSIONS}.upstreams.http.v3.HttpProtocolOptions"),
        "explicit_http_config": {"http3_protocol_options": {}},
        "common_http_protocol_options": {"max_headers_count": 1_000},
    });
    json!({"static_resources": {
        "listeners": [{"name": "client", "address": address(loopback(port)),
            "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}]}],
        "clusters": [{"name": "server", "connect_timeout": "5s",
            "load_assignment": {"cluster_name": "server", "endpoints": [{"lb_endpoints": [
                {"endpoint": {"address": address(server)}},
            ]}]},
            "transport_socket": {"name": "envoy.transport_sockets.quic", "typed_config": quic},
            "typed_extension_protocol_options": {
                "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": protocol,
            }}],
    }})
}
