// SPDX-License-Identifier: Apache-2.0
//! The embedded demo: a MinIO on loopback with a small site in a private bucket.

mod bucket;
mod error;
mod keys;
mod site;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Command, ExitStatus};

use self::bucket::PrivateBucket;
pub use self::error::DemoError;
use self::keys::Keys;
use crate::origin::{Addressing, BucketName, Endpoint, Origin};
use crate::settings::Settings;
use crate::system::child::Child;
use crate::system::private;

const BUCKET: &str = "site";
const REGION: &str = "us-east-1";

/// A running MinIO that holds the demo's site, stopped when this is dropped.
#[derive(Debug)]
pub struct Demo {
    minio: Child,
    origin: Origin,
    keys: Keys,
    /// NB: the lock on the data lasts as long as this file is open.
    _lock: File,
}

impl Demo {
    /// Starts MinIO and uploads the site.
    ///
    /// # Errors
    /// There is no MinIO, or MinIO did not start or refused the site.
    pub fn start(settings: &Settings) -> Result<Self, DemoError> {
        let program = settings
            .locations
            .minio
            .as_ref()
            .ok_or(DemoError::NoOrigin)?;
        let folder = settings.locations.state.join("minio");
        make_folder(&folder)?;
        let (keys, lock) = Keys::load(&folder)?;
        let port = free_port().map_err(|error| DemoError::Io("a free port".into(), error))?;
        let log = folder.join("minio.log");
        let mut minio = start_minio(program, &folder, &log, port, &keys)?;
        let endpoint = Endpoint {
            tls: false,
            host: Ipv4Addr::LOCALHOST.to_string(),
            port,
        };
        let bucket = PrivateBucket::new(&endpoint, &keys)?;
        bucket.create(&mut minio, &log)?;
        bucket.upload(site::OBJECTS)?;
        Ok(Self {
            minio,
            origin: origin_at(endpoint),
            keys,
            _lock: lock,
        })
    }

    /// An origin like that of a running demo.
    pub fn example_origin() -> Origin {
        origin_at(Endpoint {
            tls: false,
            host: Ipv4Addr::LOCALHOST.to_string(),
            port: 9000,
        })
    }

    /// The bucket as an origin.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The variables with which Envoy signs requests to the bucket.
    pub fn credentials(&self) -> BTreeMap<&'static str, &str> {
        BTreeMap::from([
            ("AWS_ACCESS_KEY_ID", self.keys.id.as_str()),
            ("AWS_SECRET_ACCESS_KEY", self.keys.secret.as_str()),
        ])
    }

    /// The status with which MinIO has ended, if it has.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        self.minio.exited()
    }
}

fn origin_at(endpoint: Endpoint) -> Origin {
    let bucket = BucketName {
        name: BUCKET.into(),
        prefix: String::new(),
    };
    Origin::Bucket(bucket.at(endpoint, REGION, Addressing::Path))
}

fn make_folder(path: &Path) -> Result<(), DemoError> {
    private::make_folder(path).map_err(|error| DemoError::Io(path.to_owned(), error))
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port())
}

fn start_minio(
    program: &Path,
    folder: &Path,
    log: &Path,
    port: u16,
    keys: &Keys,
) -> Result<Child, DemoError> {
    let failed = |error| DemoError::Io(log.to_owned(), error);
    let output = private::create(log).map_err(failed)?;
    let certificates = folder.join("certs");
    make_folder(&certificates)?;
    let mut command = Command::new(program);
    // NB: the files of the user's own MinIO, such as its certificates, must not be found.
    command.env_clear().env("HOME", folder);
    command.envs([
        ("MINIO_ROOT_USER", &keys.id),
        ("MINIO_ROOT_PASSWORD", &keys.secret),
    ]);
    // No console, and no requests to MinIO's makers.
    command.envs([
        ("MINIO_BROWSER", "off"),
        ("MINIO_UPDATE", "off"),
        ("MINIO_CALLHOME_ENABLE", "off"),
    ]);
    command
        .arg("server")
        .arg("--quiet")
        .arg("--certs-dir")
        .arg(certificates);
    command
        .args(["--address", &format!("127.0.0.1:{port}")])
        .arg(folder.join("data"));
    command
        .stderr(output.try_clone().map_err(failed)?)
        .stdout(output);
    Child::spawn(&mut command).map_err(|error| DemoError::Spawn(program.to_owned(), error))
}
