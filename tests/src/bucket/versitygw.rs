// SPDX-License-Identifier: Apache-2.0
//! VersityGW: S3 over a folder. It reads the protocol differently than MinIO.

use super::Bucket;
use super::role::Role;
use super::server::{Launch, S3Server};
use crate::machine::tool::built;
use std::path::PathBuf;
use std::process::Command;
use tokio::sync::OnceCell;

/// The binary: `SLUICE_VERSITYGW`, else the one that the Makefile has built.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn binary() -> PathBuf {
    built(
        "VersityGW",
        "SLUICE_VERSITYGW",
        ".sluice/bin/versitygw",
        "test",
    )
}

/// The VersityGW that all tests of this process share; each test creates its own buckets in it.
pub async fn shared() -> &'static S3Server {
    static SHARED: OnceCell<S3Server> = OnceCell::const_new();
    SHARED.get_or_init(async || start(&[]).await).await
}

/// A VersityGW with further settings, for one test. It ends with the process.
pub async fn own(settings: &[(&str, &str)]) -> &'static S3Server {
    Box::leak(Box::new(start(settings).await))
}

/// Starts a VersityGW with further settings.
///
/// # Panics
/// When it does not come up.
pub async fn start(settings: &[(&str, &str)]) -> S3Server {
    S3Server::start(Launch {
        name: "VersityGW",
        health: "/health",
        command: &|folder, address, keys| {
            let (data, accounts) = (folder.join("data"), folder.join("accounts"));
            for folder in [&data, &accounts] {
                std::fs::create_dir_all(folder).unwrap();
            }
            let mut command = Command::new(binary());
            command
                .args(["--health", "/health", "--port", &address.to_string()])
                .arg("--iam-dir")
                .arg(accounts)
                .arg("posix")
                .arg(data)
                .env_clear()
                .env("ROOT_ACCESS_KEY_ID", &keys.access_key)
                .env("ROOT_SECRET_ACCESS_KEY", &keys.secret_key)
                .envs(settings.iter().copied());
            command
        },
    })
    .await
}

/// A user of that bucket's server that may read its objects, but not list it.
///
/// # Panics
/// When the server refuses.
pub async fn not_listing(bucket: &Bucket) -> Role {
    let user = Role {
        access_key_id: format!("reader-of-{}", bucket.name()),
        secret_access_key: "readers-secret".to_owned(),
        session_token: String::new(),
    };
    let server = bucket.server();
    let mut command = Command::new(binary());
    command
        .args(["admin", "--access", &server.access_key])
        .args(["--secret", &server.secret_key])
        .args(["--endpoint-url", &format!("http://{}", server.address())])
        .args(["create-user", "--role", "user"])
        .args(["--access", &user.access_key_id])
        .args(["--secret", &user.secret_access_key]);
    let output = tokio::task::spawn_blocking(move || command.output());
    let output = output.await.unwrap().unwrap();
    assert!(output.status.success(), "{output:?}");
    bucket.let_read(&user.access_key_id).await;
    user
}
