// SPDX-License-Identifier: Apache-2.0
//! The demo's bucket, which the entry point creates and fills.

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use rusty_s3::{Credentials, S3Action as _, UrlStyle};
use ureq::Agent;

use super::keys::Keys;
use super::site::Object;
use super::{BUCKET, DemoError, REGION};
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
    pub fn new(endpoint: &Endpoint, keys: &Keys) -> Result<Self, DemoError> {
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

    /// Creates the bucket as soon as MinIO is ready. The bucket may exist already (409).
    ///
    /// # Errors
    /// MinIO has ended or has not become ready; `log` is its log.
    pub fn create(&self, minio: &mut Child, log: &Path) -> Result<(), DemoError> {
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

    /// Uploads objects to the bucket.
    ///
    /// # Errors
    /// MinIO refuses one.
    pub fn upload(&self, objects: &[Object]) -> Result<(), DemoError> {
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
