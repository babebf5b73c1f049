// SPDX-License-Identifier: Apache-2.0
//! The embedded demo: a MinIO on loopback with a small site in a private bucket.

mod bucket;
mod keys;
mod site;

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

use self::bucket::PrivateBucket;
use self::keys::Keys;
use crate::origin::{Addressing, BucketName, Endpoint, Origin};
use crate::settings::Settings;
use crate::system::child::Child;
use crate::system::private::{self, at};

const BUCKET: &str = "site";
const REGION: &str = "us-east-1";

/// A running MinIO that holds the demo's site, stopped when this is dropped.
pub struct Demo {
    /// MinIO.
    pub minio: Child,
    /// The bucket as an origin.
    pub origin: Origin,
    keys: Keys,
    /// NB: the lock on the data lasts as long as this file is open.
    _lock: File,
}

impl Demo {
    /// Starts MinIO and uploads the site.
    ///
    /// # Errors
    /// The MinIO binary is missing, or MinIO did not start or refused the site.
    pub fn start(settings: &Settings) -> anyhow::Result<Self> {
        let program = settings.locations.minio.as_ref().context(
            "SLUICE_ORIGIN: must be set to s3://BUCKET[/PREFIX], http://HOST[:PORT] or https://HOST[:PORT], \
             as SLUICE_MINIO names no MinIO for the demo",
        )?;
        let folder = settings.locations.state.join("minio");
        private::make_folder(&folder).map_err(at(&folder))?;
        let credentials = folder.join("credentials");
        let lock = private::lock(&credentials).map_err(at(&credentials))?;
        let mut lock = lock.with_context(|| {
            let reason =
                "another edge is running its demo in this folder; each edge needs a separate folder";
            format!("SLUICE_STATE={}: {reason}", folder.display())
        })?;
        let keys = Keys::load(&mut lock).map_err(at(&credentials))?;
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|free| free.local_addr());
        let port = free.context("a free port")?.port();
        let log = folder.join("minio.log");
        let mut minio = start_minio(program, &folder, &log, port, &keys)?;
        let origin = origin_on(port);
        let bucket = PrivateBucket::new(origin.endpoint(), &keys)?;
        bucket.create(&mut minio, &log)?;
        let mut objects = site::OBJECTS.iter();
        let uploaded = objects.try_for_each(|object| bucket.upload(object));
        let uploaded = uploaded.and_then(|()| bucket.upload_large());
        uploaded.context("MinIO refused the demo's site")?;
        Ok(Self {
            minio,
            origin,
            keys,
            _lock: lock,
        })
    }

    /// An origin like that of a running demo.
    pub fn example_origin() -> Origin {
        origin_on(9000)
    }

    /// The variables with which Envoy signs requests to the bucket.
    pub fn credentials(&self) -> [(&'static str, &str); 2] {
        [
            ("AWS_ACCESS_KEY_ID", &self.keys.id),
            ("AWS_SECRET_ACCESS_KEY", &self.keys.secret),
        ]
    }
}

/// The demo's bucket in a MinIO on this port.
fn origin_on(port: u16) -> Origin {
    let endpoint = Endpoint {
        tls: false,
        host: Ipv4Addr::LOCALHOST.to_string(),
        port,
    };
    let bucket = BucketName {
        name: BUCKET.into(),
        prefix: String::new(),
    };
    Origin::Bucket(bucket.at(endpoint, REGION, Addressing::Path))
}

fn start_minio(
    program: &Path,
    folder: &Path,
    log: &Path,
    port: u16,
    keys: &Keys,
) -> anyhow::Result<Child> {
    let output = private::create(log).map_err(at(log))?;
    let certificates = folder.join("certs");
    private::make_folder(&certificates).map_err(at(&certificates))?;
    let mut command = Command::new(program);
    // NB: the files of the user's own MinIO, such as its certificates, must not be found.
    command.env_clear().env("HOME", folder);
    command.env("MINIO_ROOT_USER", &keys.id);
    command.env("MINIO_ROOT_PASSWORD", &keys.secret);
    // No console, and no requests to MinIO's makers.
    command.envs([
        ("MINIO_BROWSER", "off"),
        ("MINIO_UPDATE", "off"),
        ("MINIO_CALLHOME_ENABLE", "off"),
    ]);
    command.args(["server", "--quiet", "--certs-dir"]);
    command.arg(certificates);
    command.args(["--address", &format!("127.0.0.1:{port}")]);
    command.arg(folder.join("data"));
    command.stderr(output.try_clone().map_err(at(log))?);
    command.stdout(output);
    Child::spawn(&mut command).with_context(|| format!("SLUICE_MINIO={}", program.display()))
}
