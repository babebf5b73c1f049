// SPDX-License-Identifier: Apache-2.0
//! A real S3 server, started for the tests.

use super::{Bucket, REGION};
use crate::bucket::proxy::Proxy;
use crate::client::{self, Client, Response};
use crate::machine::ports::{free_port, loopback};
use crate::machine::process::Process;
use crate::{PATIENCE, eventually};
use rusty_s3::{Bucket as Signer, Credentials, S3Action as _, UrlStyle};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tempfile::TempDir;

const FOLDER: &str = "sluice-s3-";

/// How a server is started.
pub(super) struct Launch<'a> {
    /// The server's name in messages.
    pub name: &'a str,
    /// The path that answers with status 200 when the server is up.
    pub health: &'a str,
    /// Makes the command, from the server's folder, its address and its owner's keys. Its environment has only
    /// `HOME`.
    pub command: &'a dyn Fn(&Path, SocketAddr, &Keys) -> Command,
}

/// The keys of a server's owner.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    pub access_key: String,
    pub secret_key: String,
}

/// A running S3 server.
pub struct S3Server {
    address: SocketAddr,
    /// The access key of its owner.
    pub access_key: String,
    /// The secret key of its owner.
    pub secret_key: String,
    // Declared before the folder, so that the process ends first.
    process: Process,
    _folder: TempDir,
}

impl S3Server {
    /// Starts a server.
    ///
    /// # Panics
    /// When it does not come up.
    pub(super) async fn start(launch: Launch<'_>) -> Self {
        sweep();
        let name = launch.name;
        let folder = TempDir::with_prefix(format!("{FOLDER}{}-", std::process::id())).unwrap();
        let keys = Keys {
            access_key: "sluice-test".to_owned(),
            secret_key: format!("secret-{}", std::process::id()),
        };
        for _ in 0..5 {
            let address = loopback(free_port());
            let mut command = (launch.command)(folder.path(), address, &keys);
            command.env("HOME", folder.path());
            let mut process = Process::start(command, &folder.path().join("server.log")).unwrap();
            let up = async {
                while !client::is_healthy(address, launch.health).await
                    && process.exited().is_none()
                {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            assert!(
                tokio::time::timeout(PATIENCE, up).await.is_ok(),
                "{name} does not start: {}",
                process.log()
            );
            if process.exited().is_none() {
                return Self {
                    address,
                    access_key: keys.access_key,
                    secret_key: keys.secret_key,
                    process,
                    _folder: folder,
                };
            }
        }
        panic!("{name} ends at once, five times");
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Log of the server so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.log()
    }

    pub(super) fn credentials(&self) -> Credentials {
        Credentials::new(&self.access_key, &self.secret_key)
    }

    pub(super) fn signer(&self, bucket: &str) -> Signer {
        let endpoint = format!("http://{}", self.address).parse().unwrap();
        Signer::new(endpoint, UrlStyle::Path, bucket.to_owned(), REGION).unwrap()
    }

    pub(super) async fn call(
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

    /// Creates a private bucket with a proxy in front of it.
    ///
    /// # Panics
    /// When the server refuses.
    pub async fn bucket(&'static self) -> Bucket {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("bucket-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let signer = self.signer(&name);
        let credentials = self.credentials();
        let url = signer
            .create_bucket(&credentials)
            .sign(Duration::from_secs(600));
        // MinIO reports that it is alive before it accepts requests.
        eventually(&format!("bucket {name}"), async || {
            self.call("PUT", url.as_str(), &[], b"").await.status == 200
        })
        .await;
        Bucket {
            server: self,
            name,
            proxy: Proxy::start(self.address),
        }
    }
}

/// Removes the leftovers of test processes that have ended, because a shared server is never dropped.
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
        if owner.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
