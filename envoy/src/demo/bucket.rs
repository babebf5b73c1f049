// SPDX-License-Identifier: Apache-2.0
//! The demo's bucket, which the entry point creates and fills.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use rusty_s3::{Credentials, S3Action as _, UrlStyle};
use ureq::Agent;

use super::keys::Keys;
use super::site::{self, LARGE, LARGE_BYTES, Object};
use super::{BUCKET, REGION};
use crate::net::http;
use crate::origin::Endpoint;
use crate::system::child::Child;

/// Bound on the time in which MinIO must become ready.
const START_PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);
/// The validity of a signed request.
const VALIDITY: Duration = Duration::from_secs(60);

/// The demo's bucket. It is private, so that requests to it must be signed.
pub struct PrivateBucket {
    client: Agent,
    bucket: rusty_s3::Bucket,
    credentials: Credentials,
}

impl PrivateBucket {
    /// The bucket at MinIO's endpoint.
    ///
    /// # Errors
    /// The endpoint makes no valid URL.
    pub fn new(endpoint: &Endpoint, keys: &Keys) -> anyhow::Result<Self> {
        let url = endpoint.to_string().parse()?;
        Ok(Self {
            client: http::client(),
            bucket: rusty_s3::Bucket::new(url, UrlStyle::Path, BUCKET, REGION)?,
            credentials: Credentials::new(keys.id.as_str(), keys.secret.as_str()),
        })
    }

    /// Creates the bucket as soon as MinIO is ready. The bucket may exist already (409).
    ///
    /// # Errors
    /// MinIO has ended or has not become ready; `log` is its log.
    pub fn create(&self, minio: &mut Child, log: &Path) -> anyhow::Result<()> {
        let start = Instant::now();
        while start.elapsed() < START_PATIENCE && minio.exited().is_none() {
            let url = self.bucket.create_bucket(&self.credentials).sign(VALIDITY);
            let status = self.put(url.as_str(), "application/xml", b"");
            if matches!(status, Ok(200 | 409)) {
                return Ok(());
            }
            std::thread::sleep(POLL);
        }
        bail!("MinIO did not start; it says why in {}", log.display())
    }

    /// Uploads an object to the bucket.
    ///
    /// # Errors
    /// MinIO refuses the object.
    pub fn upload(&self, object: &Object) -> anyhow::Result<()> {
        self.upload_body(object.key, object.media_type, object.body)
    }

    /// Uploads the large object, unless the bucket has it from an earlier start.
    ///
    /// # Errors
    /// MinIO refuses the object.
    pub fn upload_large(&self) -> anyhow::Result<()> {
        let head = self.bucket.head_object(Some(&self.credentials), LARGE);
        let found = self.client.head(head.sign(VALIDITY).as_str()).call();
        let found = found.context(LARGE)?;
        let length = found.headers().get("content-length");
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        if found.status() == 200 && length == Some(LARGE_BYTES) {
            return Ok(());
        }
        self.upload_body(LARGE, "application/octet-stream", site::large().as_bytes())
    }

    fn upload_body(&self, key: &str, media_type: &str, body: &[u8]) -> anyhow::Result<()> {
        let put = self.bucket.put_object(Some(&self.credentials), key);
        let url = put.sign(VALIDITY);
        let status = self
            .put(url.as_str(), media_type, body)
            .context(key.to_owned())?;
        ensure!(status == 200, "{key}: status {status}");
        Ok(())
    }

    fn put(&self, url: &str, media_type: &str, body: &[u8]) -> Result<u16, ureq::Error> {
        let request = self.client.put(url).content_type(media_type);
        Ok(request.send(body)?.status().as_u16())
    }
}
