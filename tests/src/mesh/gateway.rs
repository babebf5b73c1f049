// SPDX-License-Identifier: Apache-2.0
//! The gateway of `mesh/` in front of a private bucket, which it reaches over TLS.

use super::Mesh;
use super::istiod::ROOT_NAMESPACE;
use super::kustomize::{GATEWAYS_ROLES, Overlay};
use super::pod::{HEALTH_PORT, Place, Pod};
use super::tls_front::TlsFront;
use crate::bucket::server::S3Server;
use crate::bucket::{Bucket, REGION, minio};
use crate::client::{self, Response};
use crate::edge::tls::Certificate;
use crate::machine::ports::free_port;
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use tokio::sync::OnceCell;

/// The domain of the bucket's host.
pub(super) const DOMAIN: &str = "s3.test";
/// The container port for HTTP.
pub const HTTP_PORT: u16 = 8080;
/// The container port for HTTPS.
pub(super) const HTTPS_PORT: u16 = 8443;

/// A gateway that can be started.
#[must_use]
pub struct Builder {
    mesh: &'static Mesh,
    namespace: String,
    overlay: Overlay,
    binding: Binding,
    besides: Vec<Value>,
    place: Place,
    bucket: Bucket,
    front: TlsFront,
    certificate: Certificate,
}

/// How listeners are bound to the pod's address, because here a pod must not bind all addresses.
enum Binding {
    /// By Istio's Gateway.
    Servers,
    /// By a patch, because Kubernetes' Gateway has no field for it.
    Listeners,
}

/// A running gateway.
pub struct Gateway {
    /// Its only pod.
    pub pod: Pod,
    /// The bucket behind it.
    pub bucket: Bucket,
    /// The bucket's endpoint.
    pub front: TlsFront,
    /// The certificate for its HTTPS clients.
    pub certificate: Certificate,
    /// The overlay that was applied.
    pub overlay: Overlay,
    mesh: &'static Mesh,
}

/// MinIO with buckets' names in the host, like AWS.
pub(super) async fn minio() -> &'static S3Server {
    static SHARED: OnceCell<S3Server> = OnceCell::const_new();
    SHARED
        .get_or_init(async || minio::start(&[("MINIO_DOMAIN", DOMAIN)]).await)
        .await
}

impl Gateway {
    /// Builds a gateway in a separate namespace, in front of a bucket that it reaches over TLS at a host of its
    /// namespace.
    ///
    /// # Panics
    /// When no bucket can be created.
    pub async fn builder(namespace: &str) -> Builder {
        Self::builder_in(Mesh::shared().await, namespace, Place::new()).await
    }

    /// Builds a gateway of that control plane, at that place.
    pub async fn builder_in(mesh: &'static Mesh, namespace: &str, place: Place) -> Builder {
        let bucket = minio().await.bucket().await;
        let host = format!("{}.{DOMAIN}", bucket.name());
        let same_family = match place.address {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        };
        let address = SocketAddr::new(same_family, free_port());
        let front = TlsFront::start_at(address, &host, bucket.proxy().address());
        let overlay = Overlay::on("overlays/s3")
            .component("bucket-key")
            .setting("BUCKET_HOST", &host)
            .setting("BUCKET_AUTHORITY", &host);
        let mut builder = Self::before(mesh, namespace, place, bucket, front, overlay);
        builder.overlay = endpoint(builder.overlay, &builder.front);
        builder
    }

    /// Builds a gateway in front of a bucket in the cluster, reached without TLS, with its name in the path.
    pub async fn in_cluster(namespace: &str) -> Builder {
        let bucket = minio().await.bucket().await;
        let front = TlsFront::start("unused.test", bucket.proxy().address());
        let overlay = Overlay::on("overlays/minio").component("path-addressing");
        let mesh = Mesh::shared().await;
        let builder = Self::before(mesh, namespace, Place::new(), bucket, front, overlay);
        // In place of the Service, which has no controller here to give it endpoints.
        let service = json!({
            "apiVersion": "networking.istio.io/v1",
            "kind": "ServiceEntry",
            "metadata": {"name": "minio", "namespace": namespace},
            "spec": {
                "hosts": ["minio.minio.svc.cluster.local"],
                "exportTo": ["."],
                "location": "MESH_INTERNAL",
                "resolution": "STATIC",
                "ports": [{"number": 9000, "name": "http", "protocol": "HTTP"}],
                "endpoints": [{
                    "address": "127.0.0.1",
                    "ports": {"http": builder.bucket.proxy().address().port()},
                }],
            },
        });
        Builder {
            besides: vec![service],
            ..builder
        }
    }

    fn before(
        mesh: &'static Mesh,
        namespace: &str,
        place: Place,
        bucket: Bucket,
        front: TlsFront,
        overlay: Overlay,
    ) -> Builder {
        let overlay = overlay
            .namespace(namespace)
            .setting("GATEWAY", namespace)
            .setting("BUCKET", bucket.name())
            .setting("REGION", REGION);
        Builder {
            mesh,
            namespace: namespace.to_owned(),
            overlay: on_this_machine(overlay, &place),
            binding: Binding::Servers,
            besides: Vec::new(),
            place,
            bucket,
            front,
            certificate: Certificate::new(),
        }
    }

    /// Sends a GET over HTTP.
    pub async fn get(&self, target: &str) -> Response {
        client::get(self.http(), target).await
    }

    /// Asks until the store has `target`, and returns the hit. Until then requests wait for each other and share the
    /// response.
    pub async fn hit(&self, target: &str) -> Response {
        client::until_hit(self.http(), target).await
    }

    /// Host of the bucket.
    #[must_use]
    pub fn host(&self) -> String {
        format!("{}.{DOMAIN}", self.bucket.name())
    }

    /// Sends a request over HTTP.
    pub async fn send(&self, method: &str, target: &str, headers: &[(&str, &str)]) -> Response {
        client::send(self.http(), method, target, headers).await
    }

    /// Address for HTTP.
    #[must_use]
    pub const fn http(&self) -> SocketAddr {
        self.pod.at(HTTP_PORT)
    }

    /// Address for HTTPS.
    #[must_use]
    pub const fn https(&self) -> SocketAddr {
        self.pod.at(HTTPS_PORT)
    }

    /// Number of requests for the object that have reached the bucket.
    #[must_use]
    pub fn fetches(&self, key: &str) -> usize {
        self.bucket.requests().count(&format!("/{key}"))
    }

    /// Ends the pod's container and starts another one.
    pub async fn restart(&mut self) {
        self.pod.restart().await;
    }

    /// Applies further manifests in its namespace.
    pub fn apply(&self, manifests: &str) {
        self.mesh.cluster.apply(manifests);
    }

    /// The control plane.
    #[must_use]
    pub const fn mesh(&self) -> &'static Mesh {
        self.mesh
    }
}

impl Builder {
    /// Changes the overlay.
    pub fn with(self, change: impl FnOnce(Overlay) -> Overlay) -> Self {
        Self {
            overlay: change(self.overlay),
            ..self
        }
    }

    /// Takes the filter's module from this URL, which its agent fetches.
    pub fn module(mut self, url: &str) -> Self {
        let code = json!({"remote": {"http_uri": {"uri": url, "timeout": "30s", "cluster": "_"}}});
        self.place.fetches = true;
        self.with(|overlay| overlay.code(&GATEWAYS_ROLES, &code))
    }

    /// Takes the filter's module out of a volume, which has this file of the image or of the init container, as that
    /// component sets it.
    pub fn module_volume(mut self, component: &str, file: PathBuf) -> Self {
        self.place.module = Some(file);
        self.with(|overlay| overlay.own_code().component(component))
    }

    /// Makes the proxy report this version of Istio.
    pub fn istio_version(mut self, version: &str) -> Self {
        self.place.istio_version = Some(version.to_owned());
        self
    }

    /// Adds another object, which is applied before the pod starts.
    pub fn besides(mut self, object: Value) -> Self {
        self.besides.push(object);
        self
    }

    /// Uses Kubernetes' Gateway API.
    pub fn gateway_api(self) -> Self {
        Self {
            overlay: self.overlay.component("gateway-api"),
            binding: Binding::Listeners,
            ..self
        }
    }

    /// Applies the manifests, and starts a pod of the Deployment.
    ///
    /// # Panics
    /// When it does not become ready.
    pub async fn start(self) -> Gateway {
        let gateway = self.start_unready().await;
        gateway.pod.ready().await;
        gateway
    }

    /// Starts a pod that is not expected to become ready.
    pub async fn start_unready(mut self) -> Gateway {
        let address = self.place.address.to_string();
        match self.binding {
            Binding::Servers => {
                let bind = |server: usize| json!({"op": "add", "path": format!("/spec/servers/{server}/bind"), "value": address});
                self.overlay = self
                    .overlay
                    .patch("Gateway", "sluice", &json!([bind(0), bind(1)]));
            }
            Binding::Listeners => self.besides.push(bound(&self.namespace, &address)),
        }
        self.mesh.cluster.apply(&self.overlay.build());
        for object in &self.besides {
            self.mesh.cluster.apply(&object.to_string());
        }
        secrets(self.mesh, &self.namespace, &self.bucket, &self.certificate);
        let deployment = self
            .mesh
            .cluster
            .object(&self.namespace, "deployment/sluice-gateway");
        let template = &deployment["spec"]["template"];
        let pod = Pod::start(
            self.mesh,
            &self.namespace,
            "sluice-gateway-a",
            template,
            self.place,
        )
        .await;
        Gateway {
            pod,
            bucket: self.bucket,
            front: self.front,
            certificate: self.certificate,
            overlay: self.overlay,
            mesh: self.mesh,
        }
    }
}

/// Binds the gateway's listeners to the pod's address.
fn bound(namespace: &str, address: &str) -> Value {
    let listener = |port: u16| {
        json!({
            "applyTo": "LISTENER",
            "match": {"context": "GATEWAY", "listener": {"portNumber": port}},
            "patch": {"operation": "MERGE", "value": {"address": {"socket_address": {"address": address}}}},
        })
    };
    json!({
        "apiVersion": "networking.istio.io/v1alpha3",
        "kind": "EnvoyFilter",
        "metadata": {"name": "test-addresses", "namespace": namespace},
        "spec": {
            "workloadSelector": {"labels": {"istio": namespace}},
            "configPatches": [listener(HTTP_PORT), listener(HTTPS_PORT)],
        },
    })
}

pub(super) fn secrets(mesh: &Mesh, namespace: &str, bucket: &Bucket, certificate: &Certificate) {
    let key = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "sluice-bucket-key", "namespace": namespace},
        "stringData": {
            "AWS_ACCESS_KEY_ID": bucket.server().access_key,
            "AWS_SECRET_ACCESS_KEY": bucket.server().secret_key,
        },
    });
    mesh.cluster.apply(&key.to_string());
    let cache = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "sluice-cache", "namespace": namespace},
        "stringData": {"secret": "000102030405060708090a0b0c0d0e0f"},
    });
    mesh.cluster.apply(&cache.to_string());
    let read = |path| std::fs::read_to_string(path).unwrap();
    let tls = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": "sluice-tls", "namespace": namespace},
        "stringData": {"tls.crt": read(certificate.cert()), "tls.key": read(certificate.key())},
    });
    mesh.cluster.apply(&tls.to_string());
    debug_assert_ne!(namespace, ROOT_NAMESPACE);
}

/// Sets the address of the bucket on this machine.
pub(super) fn endpoint(overlay: Overlay, front: &TlsFront) -> Overlay {
    let ports = json!({"https": front.address().port()});
    overlay
        .patch(
            "ServiceEntry",
            "sluice-bucket",
            &json!([{
                "op": "add",
                "path": "/spec/endpoints",
                "value": [{"address": front.address().ip(), "ports": ports}],
            }]),
        )
        .patch(
            "DestinationRule",
            "sluice-bucket",
            &json!([{
                "op": "replace",
                "path": "/spec/trafficPolicy/tls/caCertificates",
                "value": front.ca_file(),
            }]),
        )
}

/// Sets the places of the module, the cache and the pod on this machine. All else is the same as in a cluster.
fn on_this_machine(overlay: Overlay, place: &Place) -> Overlay {
    let code = json!({"local": {"filename": crate::machine::tool::module()}});
    let health = "/spec/configPatches/0/patch/value/address/socket_address";
    let address = json!({"address": place.address, "port_value": HEALTH_PORT});
    overlay
        .code(&GATEWAYS_ROLES, &code)
        .store("cache_path", place.cache().display().to_string())
        .patch(
            "EnvoyFilter",
            "sluice-health",
            &json!([{"op": "replace", "path": health, "value": address}]),
        )
}
