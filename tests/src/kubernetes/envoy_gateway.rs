// SPDX-License-Identifier: Apache-2.0
//! The controller of Envoy Gateway, and an Envoy that it configures. The controller reads the objects of the cluster,
//! and starts no proxies, so the test starts one.

use crate::client::Client;
use crate::machine::process::Process;
use crate::machine::tool::{self, folder, tool};
use crate::mesh::cluster::Cluster;
use crate::{PATIENCE, eventually};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// The port of the controller's server for Envoys, and its name in their configuration.
const XDS_PORT: u16 = 18_000;
const XDS: &str = "xds";
/// The namespace of the controller.
const SYSTEM: &str = "envoy-gateway-system";
/// The address of the test in the network of the controller, and the port of the API server there.
const NODE: &str = "10.2.0.1";
const API_PORT: u16 = 8_001;
/// Adds a link to that network.
const ADD_LINK: &str = "ip link add node type veth peer name controller && ip address add 10.2.0.1/24 dev node && \
                        ip link set node up";
/// Starts the controller as soon as it has its end of the link. The controller has a separate network, because it
/// listens on port 8080 of all addresses, as the edge does in each pod.
const ENTER: &str = "
set -eu
until ip link set controller up 2>/dev/null; do
    sleep 0.05
done
ip link set lo up
ip address add 10.2.0.2/24 dev controller
export KUBECONFIG=/kubeconfig HOME=/tmp ENVOY_GATEWAY_NAMESPACE=envoy-gateway-system
exec unshare --root \"$1\" /envoy-gateway server --config-path /config.yaml
";
/// The port of the Gateway.
const PORT: u16 = 8_880;
/// The name of the Gateway.
pub const GATEWAY: &str = "gateway";

/// A running controller with its Envoy.
pub struct EnvoyGateway {
    // Declared before the folder, so that they end first.
    _proxy: Process,
    controller: Process,
    _api_server: Process,
    _root: TempDir,
}

impl EnvoyGateway {
    /// Starts the controller, and the Envoy of the Gateway in this namespace ([`define`]), which has a route.
    ///
    /// # Panics
    /// When the Gateway accepts no connections.
    pub async fn start(cluster: &Cluster, namespace: &str) -> Self {
        let root = TempDir::with_prefix("sluice-envoy-gateway-").unwrap();
        let address = [format!("--address={NODE}"), format!("--port={API_PORT}")];
        let proxy = ["proxy", "--accept-hosts=.*", &address[0], &address[1]];
        shell(ADD_LINK);
        let api_server = cluster.start_beside("kubectl", &proxy);
        let node = SocketAddr::new(NODE.parse().unwrap(), API_PORT);
        let is_there = async || Client::try_connect(node).await.is_ok();
        eventually("the API server for the controller", is_there).await;
        let controller = controller(cluster, root.path());
        let file = root.path().join("envoy.json");
        fs::write(
            &file,
            bootstrap(namespace, &root.path().join("proxy")).to_string(),
        )
        .unwrap();
        let mut envoy = Command::new(tool::envoy());
        envoy
            .env_clear()
            .args(["--use-dynamic-base-id", "--concurrency", "1", "-c"])
            .arg(file);
        let proxy = Process::start(envoy, &root.path().join("envoy.log")).unwrap();
        let gateway = Self {
            _proxy: proxy,
            controller,
            _api_server: api_server,
            _root: root,
        };
        let listens = async {
            while Client::try_connect(gateway.address()).await.is_err() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let listens = tokio::time::timeout(PATIENCE, listens).await;
        assert!(listens.is_ok(), "{}", gateway.log());
        gateway
    }

    /// The address of the Gateway.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(Ipv4Addr::LOCALHOST.into(), PORT)
    }

    /// The log of the controller.
    #[must_use]
    pub fn log(&self) -> String {
        self.controller.log()
    }
}

/// Creates the definitions of Envoy Gateway, its class and the Gateway.
///
/// # Panics
/// When the API server refuses one of them.
pub fn define(cluster: &Cluster, namespace: &str) {
    let definitions = folder("SLUICE_ENVOY_GATEWAY").join("definitions.yaml");
    cluster.apply(&fs::read_to_string(definitions).unwrap());
    cluster.kubectl(&["wait", "--for=condition=established", "crd", "--all"], "");
    let api = "gateway.networking.k8s.io/v1";
    let controller = "gateway.envoyproxy.io/gatewayclass-controller";
    let listener = json!({"name": "http", "protocol": "HTTP", "port": PORT});
    for object in [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}}),
        json!({
            "apiVersion": api, "kind": "GatewayClass", "metadata": {"name": "envoy"},
            "spec": {"controllerName": controller},
        }),
        json!({
            "apiVersion": api, "kind": "Gateway", "metadata": {"name": GATEWAY, "namespace": namespace},
            "spec": {"gatewayClassName": "envoy", "listeners": [listener]},
        }),
    ] {
        cluster.apply(&object.to_string());
    }
}

/// Starts the controller in a separate root folder, because it expects its certificates in `/certs`.
fn controller(cluster: &Cluster, root: &Path) -> Process {
    fs::create_dir(root.join("tmp")).unwrap();
    fs::copy(cluster.kubeconfig(), root.join("kubeconfig")).unwrap();
    let program = tool("SLUICE_ENVOY_GATEWAY", "envoy-gateway");
    fs::copy(program, root.join("envoy-gateway")).unwrap();
    let command = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.arg("--root").arg(root).arg("/envoy-gateway");
        command.args(arguments).env_clear().envs([
            ("KUBECONFIG", "/kubeconfig"),
            ("HOME", "/tmp"),
            ("ENVOY_GATEWAY_NAMESPACE", SYSTEM),
        ]);
        command
    };
    let made = command(&["certgen", "--disable-topology-injector"])
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    for (secret, folder) in [("envoy-gateway", "certs"), ("envoy", "proxy")] {
        let secret = cluster.object(SYSTEM, &format!("secret/{secret}"));
        fs::create_dir(root.join(folder)).unwrap();
        for (name, text) in secret["data"].as_object().unwrap() {
            let content = BASE64_STANDARD.decode(text.as_str().unwrap()).unwrap();
            fs::write(root.join(folder).join(name), content).unwrap();
        }
    }
    let none = json!({"disable": true});
    let watching = json!({"leaderElection": none});
    let configuration = json!({
        "apiVersion": "gateway.envoyproxy.io/v1alpha1", "kind": "EnvoyGateway",
        "gateway": {"controllerName": "gateway.envoyproxy.io/gatewayclass-controller"},
        // No `infrastructure`: the controller starts no proxies.
        "provider": {"type": "Custom", "custom": {"resource": {"type": "Kubernetes", "kubernetes": watching}}},
    });
    fs::write(root.join("config.yaml"), configuration.to_string()).unwrap();
    let api_server = format!(
        "apiVersion: v1\nkind: Config\nclusters: [{{name: test, cluster: {{server: \"http://{NODE}:{API_PORT}\"}}}}]\n\
         contexts: [{{name: test, context: {{cluster: test, user: \"\"}}}}]\ncurrent-context: test\n"
    );
    fs::write(root.join("kubeconfig"), api_server).unwrap();
    let mut server = Command::new("unshare");
    server
        .args(["--net", "sh", "-c", ENTER, "sh"])
        .arg(root)
        .env_clear();
    let log = root.join("controller.log");
    let process = Process::start_ending_by(libc::SIGKILL, server, &log).unwrap();
    shell(&format!("ip link set controller netns {}", process.pid()));
    process
}

/// Runs a command of a shell.
fn shell(command: &str) {
    let status = Command::new("sh").args(["-c", command]).status().unwrap();
    assert!(status.success(), "{command}");
}

/// The configuration of an Envoy that gets all else from the controller.
fn bootstrap(namespace: &str, certs: &Path) -> Value {
    let file = |name: &str| json!({"filename": certs.join(name)});
    let server =
        json!({"address": {"socket_address": {"address": "10.2.0.2", "port_value": XDS_PORT}}});
    let tls = json!({
        "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
        "sni": XDS,
        "common_tls_context": {
            "tls_params": {"tls_maximum_protocol_version": "TLSv1_3"},
            "tls_certificates": [{"certificate_chain": file("tls.crt"), "private_key": file("tls.key")}],
            "validation_context": {"trusted_ca": file("ca.crt")},
        },
    });
    let http2 = json!({
        "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
        "explicit_http_config": {"http2_protocol_options": {}},
    });
    let ads = json!({"ads": {}, "resource_api_version": "V3", "initial_fetch_timeout": "0s"});
    json!({
        // The controller knows an Envoy by its Gateway.
        "node": {"id": "proxy", "cluster": format!("{namespace}/{GATEWAY}")},
        "dynamic_resources": {
            "ads_config": {
                "api_type": "DELTA_GRPC", "transport_api_version": "V3", "set_node_on_first_message_only": true,
                "grpc_services": [{"envoy_grpc": {"cluster_name": XDS}}],
            },
            "lds_config": ads, "cds_config": ads,
        },
        "static_resources": {"clusters": [{
            "name": XDS, "type": "STATIC", "connect_timeout": "10s",
            "load_assignment": {"cluster_name": XDS, "endpoints": [{"lb_endpoints": [{"endpoint": server}]}]},
            "transport_socket": {"name": "tls", "typed_config": tls},
            "typed_extension_protocol_options": {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": http2},
        }]},
    })
}
