// SPDX-License-Identifier: Apache-2.0
//! The real MinIO, with private buckets.

use crate::bucket::proxy::Proxy;
use crate::client::{self, Client, Response};
use crate::http::body;
use crate::machine::ports::{free_port, loopback};
use crate::machine::process::Process;
use crate::machine::tool::built;
use crate::server::requests::Requests;
use crate::{PATIENCE, eventually};
use rusty_s3::{Bucket as Signer, Credentials, S3Action as _, UrlStyle};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::OnceCell;

/// The region that MinIO signs for.
pub const REGION: &str = "us-east-1";

const FOLDER: &str = "sluice-minio-";

/// A running MinIO.
pub struct Minio {
    address: SocketAddr,
    /// The access key of its owner.
    pub access_key: String,
    /// The secret key of its owner.
    pub secret_key: String,
    // Ends before its folder goes.
    process: Process,
    _folder: TempDir,
}

/// A private bucket, reached through a proxy that counts.
pub struct Bucket {
    minio: &'static Minio,
    name: String,
    proxy: Proxy,
}

/// The binary: `SLUICE_MINIO`, else the one that the Makefile has built.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn binary() -> PathBuf {
    built("MinIO", "SLUICE_MINIO", ".sluice/bin/minio", "test")
}

impl Minio {
    /// The MinIO that all tests of this process share; each has buckets of its own in it.
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<Minio> = OnceCell::const_new();
        SHARED.get_or_init(Self::start).await
    }

    /// One that tells an edge, whose listener for purges and token these are, what changes in the buckets that
    /// [`Bucket::notify`]. It ends with the process.
    pub async fn notifying(purges: SocketAddr, token: &str) -> &'static Self {
        let endpoint = format!("http://{purges}/s3");
        let webhook = [
            ("MINIO_NOTIFY_WEBHOOK_ENABLE_EDGE", "on"),
            ("MINIO_NOTIFY_WEBHOOK_ENDPOINT_EDGE", &endpoint),
            ("MINIO_NOTIFY_WEBHOOK_AUTH_TOKEN_EDGE", token),
        ];
        Box::leak(Box::new(Self::start_with(&webhook).await))
    }

    /// Starts one.
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts one with further settings.
    ///
    /// # Panics
    /// When it does not come up.
    pub async fn start_with(settings: &[(&str, &str)]) -> Self {
        sweep();
        let folder = TempDir::with_prefix(format!("{FOLDER}{}-", std::process::id())).unwrap();
        for _ in 0..5 {
            let address = loopback(free_port());
            let (access_key, secret_key) = (
                "sluice-test".to_owned(),
                format!("secret-{}", std::process::id()),
            );
            let mut command = Command::new(binary());
            command
                .args(["server", "--quiet", "--address", &address.to_string()])
                .arg(folder.path().join("data"))
                .env_clear()
                .env("HOME", folder.path())
                .env("MINIO_ROOT_USER", &access_key)
                .env("MINIO_ROOT_PASSWORD", &secret_key)
                .env("MINIO_BROWSER", "off")
                .env("MINIO_UPDATE", "off")
                .envs(settings.iter().copied());
            let mut process = Process::start(command, &folder.path().join("minio.log")).unwrap();
            let up = async {
                while !client::is_healthy(address, "/minio/health/live").await
                    && process.exited().is_none()
                {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            assert!(
                tokio::time::timeout(PATIENCE, up).await.is_ok(),
                "MinIO does not start: {}",
                process.log()
            );
            if process.exited().is_none() {
                return Self {
                    address,
                    access_key,
                    secret_key,
                    process,
                    _folder: folder,
                };
            }
        }
        panic!("MinIO ends at once, five times");
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it has logged.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.log()
    }

    fn credentials(&self) -> Credentials {
        Credentials::new(&self.access_key, &self.secret_key)
    }

    fn signer(&self, bucket: &str) -> Signer {
        let endpoint = format!("http://{}", self.address).parse().unwrap();
        Signer::new(endpoint, UrlStyle::Path, bucket.to_owned(), REGION).unwrap()
    }

    async fn call(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Response {
        let target = url
            .split_once("://")
            .and_then(|(_, rest)| rest.find('/').map(|at| &rest[at..]))
            .unwrap();
        let host = self.address.to_string();
        let length = body.len().to_string();
        let mut fields = vec![("host", host.as_str()), ("content-length", length.as_str())];
        fields.extend_from_slice(headers);
        let mut bytes = client::request(method, target, &fields);
        bytes.extend_from_slice(body);
        Client::connect(self.address).await.exchange(bytes).await
    }

    /// A new private bucket with a proxy before it.
    ///
    /// # Panics
    /// When MinIO refuses.
    pub async fn bucket(&'static self) -> Bucket {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("bucket-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let signer = self.signer(&name);
        let credentials = self.credentials();
        let url = signer
            .create_bucket(&credentials)
            .sign(Duration::from_secs(600));
        // It says that it lives before it takes requests.
        eventually(&format!("bucket {name}"), async || {
            self.call("PUT", url.as_str(), &[], b"").await.status == 200
        })
        .await;
        Bucket {
            minio: self,
            name,
            proxy: Proxy::start(self.address),
        }
    }
}

/// Removes what test processes that are gone have left: a shared MinIO is never dropped.
fn sweep() {
    for entry in std::fs::read_dir(std::env::temp_dir())
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = entry.file_name();
        let owner = name
            .to_str()
            .and_then(|name| name.strip_prefix(FOLDER)?.split('-').next());
        if owner.is_some_and(|pid| !std::path::Path::new("/proc").join(pid).exists()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

impl Bucket {
    /// A new private bucket in the shared MinIO.
    pub async fn new() -> Self {
        Minio::shared().await.bucket().await
    }

    /// Has MinIO tell the edge of everything that changes in it, see [`Minio::notifying`].
    ///
    /// # Panics
    /// When MinIO refuses.
    pub async fn notify(&self) {
        let signer = self.minio.signer(&self.name);
        let credentials = self.minio.credentials();
        let mut action = signer.create_bucket(&credentials);
        action.query_mut().insert("notification", "");
        let url = action.sign(Duration::from_secs(600));
        let configuration = "<NotificationConfiguration><QueueConfiguration>\
             <Event>s3:ObjectCreated:*</Event><Event>s3:ObjectRemoved:*</Event>\
             <Queue>arn:minio:sqs::EDGE:webhook</Queue>\
             </QueueConfiguration></NotificationConfiguration>";
        // MinIO is healthy before it knows whom it can notify.
        eventually("MinIO takes the edge as a target", async || {
            let body = configuration.as_bytes();
            let response = self.minio.call("PUT", url.as_str(), &[], body).await;
            assert!(matches!(response.status, 200 | 400), "{response}");
            response.status == 200
        })
        .await;
    }

    /// Lets everyone read its objects.
    ///
    /// # Panics
    /// When MinIO refuses.
    pub async fn publish(&self) {
        let signer = self.minio.signer(&self.name);
        let credentials = self.minio.credentials();
        let mut action = signer.create_bucket(&credentials);
        action.query_mut().insert("policy", "");
        let url = action.sign(Duration::from_secs(600));
        let policy = serde_json::json!({
            "Version": "2012-10-17",
            "Statement": [{
                "Effect": "Allow", "Principal": {"AWS": ["*"]}, "Action": ["s3:GetObject"],
                "Resource": [format!("arn:aws:s3:::{}/*", self.name)],
            }],
        });
        let content = policy.to_string();
        let response = self
            .minio
            .call("PUT", url.as_str(), &[], content.as_bytes());
        let response = response.await;
        assert!(matches!(response.status, 200 | 204), "{response}");
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The MinIO that it is in.
    #[must_use]
    pub const fn minio(&self) -> &'static Minio {
        self.minio
    }

    /// The endpoint that counts: `http://HOST:PORT` of the proxy.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.proxy.address())
    }

    /// The proxy, to hold requests.
    #[must_use]
    pub const fn proxy(&self) -> &Proxy {
        &self.proxy
    }

    /// The requests that came through the proxy.
    #[must_use]
    pub fn requests(&self) -> &Requests {
        self.proxy.requests()
    }

    /// How many requests came for the object `key`, as S3 encodes it.
    #[must_use]
    pub fn count(&self, key: &str) -> usize {
        self.requests().count(&self.target(key))
    }

    /// The target of an object: `/BUCKET/KEY`.
    #[must_use]
    pub fn target(&self, key: &str) -> String {
        format!("/{}/{key}", self.name)
    }

    /// Stores an object.
    ///
    /// # Panics
    /// When MinIO refuses.
    pub async fn put(&self, key: &str, headers: &[(&str, &str)], content: &[u8]) {
        let signer = self.minio.signer(&self.name);
        let credentials = self.minio.credentials();
        let mut action = signer.put_object(Some(&credentials), key);
        // S3 takes its own headers only where they are signed.
        for (name, value) in headers
            .iter()
            .filter(|(name, _)| name.starts_with("x-amz-"))
        {
            action
                .headers_mut()
                .insert((*name).to_owned(), (*value).to_owned());
        }
        let url = action.sign(Duration::from_secs(600));
        let response = self.minio.call("PUT", url.as_str(), headers, content).await;
        assert_eq!(response.status, 200, "{key}: {response}");
    }

    /// Stores a stamped body of `size` bytes; `version` is its sequence number, and the stamp's path is `/KEY`.
    pub async fn put_stamped(&self, key: &str, version: u64, size: usize) {
        self.put(key, &[], &body::make(&format!("/{key}"), version, size))
            .await;
    }

    /// Asks MinIO itself for an object, with the owner's signature.
    pub async fn get(&self, key: &str) -> Response {
        let signer = self.minio.signer(&self.name);
        let credentials = self.minio.credentials();
        let url = signer
            .get_object(Some(&credentials), key)
            .sign(Duration::from_secs(600));
        self.minio.call("GET", url.as_str(), &[], b"").await
    }

    /// Deletes an object.
    ///
    /// # Panics
    /// When MinIO refuses.
    pub async fn delete(&self, key: &str) {
        let signer = self.minio.signer(&self.name);
        let credentials = self.minio.credentials();
        let url = signer
            .delete_object(Some(&credentials), key)
            .sign(Duration::from_secs(600));
        let response = self.minio.call("DELETE", url.as_str(), &[], b"").await;
        assert_eq!(response.status, 204, "{key}: {response}");
    }

    /// Waits until `count` requests have come for the object.
    pub async fn wait_for_requests(&self, key: &str, count: usize) {
        eventually(&format!("{count} requests for {key}"), async || {
            self.count(key) >= count
        })
        .await;
    }
}
