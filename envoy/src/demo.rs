// SPDX-License-Identifier: Apache-2.0
//! The embedded demo: a MinIO on loopback with a small site in a private bucket.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use rusty_s3::{Credentials, S3Action as _, UrlStyle};
use ureq::Agent;

use crate::child::Child;
use crate::demo_site::{self, Object};
use crate::http;
use crate::origin::{BucketName, Endpoint, Origin};
use crate::random;
use crate::settings::Settings;

const BUCKET: &str = "site";
const REGION: &str = "us-east-1";
const START_PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);
/// How long a signed request of the demo's own stays valid.
const VALIDITY: Duration = Duration::from_secs(60);

/// Why there is no demo.
#[derive(Debug)]
pub enum DemoError {
    /// Neither an origin nor a MinIO to stand in for one.
    NoOrigin,
    /// A file operation failed.
    Io(PathBuf, io::Error),
    /// Another edge runs its demo in the same state folder.
    InUse(PathBuf),
    /// MinIO did not start.
    Spawn(PathBuf, io::Error),
    /// MinIO ended before it was ready, or did not become ready.
    NotReady(PathBuf),
    /// MinIO refused the demo's site.
    Refused(String),
}

impl fmt::Display for DemoError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoOrigin => out.write_str(
                "ORIGIN: must be set to s3://BUCKET[/PREFIX], http://HOST[:PORT] or https://HOST[:PORT], \
                 as SLUICE_MINIO names no MinIO for the demo",
            ),
            Self::Io(path, error) => write!(out, "{}: {error}", path.display()),
            Self::InUse(path) => write!(
                out,
                "SLUICE_STATE={}: another edge is running its demo in this folder; each needs one of its own",
                path.display()
            ),
            Self::Spawn(path, error) => write!(out, "SLUICE_MINIO={}: {error}", path.display()),
            Self::NotReady(log) => write!(out, "MinIO did not start; it says why in {}", log.display()),
            Self::Refused(what) => write!(out, "MinIO refused the demo's site: {what}"),
        }
    }
}

impl std::error::Error for DemoError {}

/// A running MinIO that holds the demo's site, stopped when this is dropped.
#[derive(Debug)]
pub struct Demo {
    minio: Child,
    origin: Origin,
    keys: Keys,
    /// NB: the lock on the data lasts as long as this is open.
    _lock: File,
}

impl Demo {
    /// Starts MinIO and uploads the site.
    pub fn start(settings: &Settings) -> Result<Self, DemoError> {
        let program = settings
            .locations
            .minio
            .as_ref()
            .ok_or(DemoError::NoOrigin)?;
        let folder = settings.locations.state.join("minio");
        make_private_folder(&folder)?;
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
        bucket.upload(demo_site::OBJECTS)?;
        Ok(Self {
            minio,
            origin: origin_at(endpoint),
            keys,
            _lock: lock,
        })
    }

    /// The origin as it looks when the demo runs.
    pub fn example_origin() -> Origin {
        origin_at(Endpoint {
            tls: false,
            host: Ipv4Addr::LOCALHOST.to_string(),
            port: 9000,
        })
    }

    /// The bucket.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// What Envoy's environment needs for signing.
    pub fn credentials(&self) -> BTreeMap<&'static str, &str> {
        BTreeMap::from([
            ("AWS_ACCESS_KEY_ID", self.keys.id.as_str()),
            ("AWS_SECRET_ACCESS_KEY", self.keys.secret.as_str()),
        ])
    }

    /// How MinIO ended, if it has.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        self.minio.exited()
    }
}

fn origin_at(endpoint: Endpoint) -> Origin {
    let bucket = BucketName {
        name: BUCKET.into(),
        prefix: String::new(),
    };
    Origin::Bucket(bucket.at(endpoint, REGION))
}

/// MinIO's root credentials, generated once.
struct Keys {
    id: String,
    secret: String,
}

impl fmt::Debug for Keys {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Keys")
    }
}

impl Keys {
    /// Reads `folder`'s keys, or makes them; the file stays locked.
    fn load(folder: &Path) -> Result<(Self, File), DemoError> {
        let path = folder.join("credentials");
        let failed = |error| DemoError::Io(path.clone(), error);
        let open = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path);
        let mut file = open.map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(DemoError::InUse(folder.to_owned())),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        let keys = match text.trim_end().split_once(':') {
            Some((id, secret)) => Self {
                id: id.into(),
                secret: secret.into(),
            },
            None => {
                let keys = Self {
                    id: random::hex::<8>().map_err(failed)?,
                    secret: random::hex::<20>().map_err(failed)?,
                };
                file.rewind().map_err(failed)?;
                file.set_len(0).map_err(failed)?;
                writeln!(file, "{}:{}", keys.id, keys.secret).map_err(failed)?;
                keys
            }
        };
        Ok((keys, file))
    }
}

fn make_private_folder(path: &Path) -> Result<(), DemoError> {
    let made = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path);
    made.map_err(|error| DemoError::Io(path.to_owned(), error))
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
    let output = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(log)
        .map_err(failed)?;
    let certificates = folder.join("certs");
    make_private_folder(&certificates)?;
    let mut command = Command::new(program);
    // Nothing of the user's own MinIO, such as its certificates, is to be found.
    command.env_clear().env("HOME", folder);
    command.envs([
        ("MINIO_ROOT_USER", &keys.id),
        ("MINIO_ROOT_PASSWORD", &keys.secret),
    ]);
    // No console, no questions to its makers.
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

/// The bucket as its owner sees it: private, unless somebody says otherwise.
struct PrivateBucket {
    client: Agent,
    bucket: rusty_s3::Bucket,
    credentials: Credentials,
}

impl PrivateBucket {
    fn new(endpoint: &Endpoint, keys: &Keys) -> Result<Self, DemoError> {
        let refused = |what: &dyn fmt::Display| DemoError::Refused(what.to_string());
        let url = endpoint
            .to_string()
            .parse()
            .map_err(|error| refused(&error))?;
        let bucket = rusty_s3::Bucket::new(url, UrlStyle::Path, BUCKET, REGION)
            .map_err(|error| refused(&error))?;
        let credentials = Credentials::new(keys.id.as_str(), keys.secret.as_str());
        Ok(Self {
            client: http::client(),
            bucket,
            credentials,
        })
    }

    /// Makes the bucket as soon as MinIO is able to, or finds it there already (409).
    fn create(&self, minio: &mut Child, log: &Path) -> Result<(), DemoError> {
        let start = Instant::now();
        while start.elapsed() < START_PATIENCE && minio.exited().is_none() {
            let url = self.bucket.create_bucket(&self.credentials).sign(VALIDITY);
            if matches!(
                self.put(url.as_str(), "application/xml", b""),
                Ok(200 | 409)
            ) {
                return Ok(());
            }
            std::thread::sleep(POLL);
        }
        Err(DemoError::NotReady(log.to_owned()))
    }

    fn upload(&self, objects: &[Object]) -> Result<(), DemoError> {
        for Object {
            key,
            media_type,
            body,
        } in objects
        {
            let url = self
                .bucket
                .put_object(Some(&self.credentials), key)
                .sign(VALIDITY);
            match self.put(url.as_str(), media_type, body) {
                Ok(200) => {}
                Ok(status) => return Err(DemoError::Refused(format!("{key}: status {status}"))),
                Err(error) => return Err(DemoError::Refused(format!("{key}: {error}"))),
            }
        }
        Ok(())
    }

    fn put(&self, url: &str, media_type: &str, body: &[u8]) -> Result<u16, ureq::Error> {
        Ok(self
            .client
            .put(url)
            .content_type(media_type)
            .send(body)?
            .status()
            .as_u16())
    }
}
