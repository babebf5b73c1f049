// SPDX-License-Identifier: Apache-2.0
//! MinIO.

use super::server::{Launch, S3Server};
use crate::machine::tool::built;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use tokio::sync::OnceCell;

/// The binary: `SLUICE_MINIO`, else the one that the Makefile has built.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn binary() -> PathBuf {
    built("MinIO", "SLUICE_MINIO", ".sluice/bin/minio", "test")
}

/// The MinIO that all tests of this process share; each test creates its own buckets in it.
pub async fn shared() -> &'static S3Server {
    static SHARED: OnceCell<S3Server> = OnceCell::const_new();
    SHARED.get_or_init(async || start(&[]).await).await
}

/// A MinIO that sends the events of buckets with [`Bucket::notify`](super::Bucket::notify) to the edge with this
/// listener for purges and this token. It ends with the process.
pub async fn notifying(purges: SocketAddr, token: &str) -> &'static S3Server {
    let endpoint = format!("http://{purges}/s3");
    let webhook = [
        ("MINIO_NOTIFY_WEBHOOK_ENABLE_EDGE", "on"),
        ("MINIO_NOTIFY_WEBHOOK_ENDPOINT_EDGE", &endpoint),
        ("MINIO_NOTIFY_WEBHOOK_AUTH_TOKEN_EDGE", token),
    ];
    own(&webhook).await
}

/// A MinIO with further settings, for one test. It ends with the process.
pub async fn own(settings: &[(&str, &str)]) -> &'static S3Server {
    Box::leak(Box::new(start(settings).await))
}

/// Starts a MinIO with further settings.
///
/// # Panics
/// When it does not come up.
pub async fn start(settings: &[(&str, &str)]) -> S3Server {
    S3Server::start(Launch {
        name: "MinIO",
        health: "/minio/health/live",
        command: &|folder, address, keys| {
            let mut command = Command::new(binary());
            command
                .args(["server", "--quiet", "--address", &address.to_string()])
                .arg(folder.join("data"))
                .env_clear()
                .env("MINIO_ROOT_USER", &keys.access_key)
                .env("MINIO_ROOT_PASSWORD", &keys.secret_key)
                .env("MINIO_BROWSER", "off")
                .env("MINIO_UPDATE", "off")
                .envs(settings.iter().copied());
            command
        },
    })
    .await
}
