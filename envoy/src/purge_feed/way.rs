// SPDX-License-Identifier: Apache-2.0
//! The ways to the object with the feed: signed requests of this process, and requests that Envoy signs.

use std::io::Read as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use sluice_core::policy::purge::FEED_NAME;
use sluice_core::purge::MAX_BYTES;

use crate::net::bucket_client::{BucketClient, Precondition};
use crate::net::unix_client::{self, Call};

/// Bound on the time between two parts of Envoy's answer. Envoy itself gives up earlier (`purge_feed.yaml.j2`).
const PATIENCE: Duration = Duration::from_secs(5);
/// Room for the head of Envoy's answer, in bytes, and for the marks of its chunks.
const HEAD_BYTES: u64 = 256 << 10;

/// The bucket's answer to a request for the feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedAnswer {
    /// The status code.
    pub status: u16,
    /// The entity tag.
    pub tag: Option<String>,
    /// The body, or so much of it that it is too long for a feed.
    pub body: Vec<u8>,
}

/// A way to read and replace the object with the feed.
pub trait FeedWay {
    /// Reads the object.
    ///
    /// # Errors
    /// The bucket does not answer.
    fn get(&self) -> anyhow::Result<FeedAnswer>;

    /// Replaces the object if the condition holds. Returns the status of the answer.
    ///
    /// # Errors
    /// The bucket does not answer.
    fn put(&self, condition: Precondition<'_>, text: &str) -> anyhow::Result<u16>;
}

impl FeedWay for BucketClient {
    fn get(&self) -> anyhow::Result<FeedAnswer> {
        let response = Self::get(self, FEED_NAME)?;
        let tag = response.headers().get("etag");
        let tag = tag.and_then(|tag| tag.to_str().ok()).map(str::to_owned);
        let status = response.status().as_u16();
        let mut body = Vec::new();
        let reader = response.into_body().into_reader();
        reader
            .take(MAX_BYTES as u64 + 1)
            .read_to_end(&mut body)
            .context("the feed could not be read")?;
        Ok(FeedAnswer { status, tag, body })
    }

    fn put(&self, condition: Precondition<'_>, text: &str) -> anyhow::Result<u16> {
        let response = Self::put(self, FEED_NAME, condition, text.as_bytes())?;
        Ok(response.status().as_u16())
    }
}

/// The way through Envoy, which has the credentials of the bucket: a listener on a Unix socket for this object alone.
#[derive(Clone, Debug)]
pub struct EnvoyWay {
    /// The socket.
    pub socket: PathBuf,
}

impl EnvoyWay {
    fn call(
        &self,
        method: &str,
        fields: &[(String, String)],
        body: &str,
    ) -> anyhow::Result<unix_client::Reply> {
        let target = format!("/{FEED_NAME}");
        let call = Call {
            method,
            fields,
            body,
            patience: PATIENCE,
            most_bytes: HEAD_BYTES + MAX_BYTES as u64,
            ..Call::get(&target)
        };
        let reply = unix_client::call(&self.socket, &call);
        reply.context("no whole answer by way of Envoy")
    }
}

impl FeedWay for EnvoyWay {
    fn get(&self) -> anyhow::Result<FeedAnswer> {
        let reply = self.call("GET", &[], "")?;
        Ok(FeedAnswer {
            status: reply.status.as_u16(),
            tag: reply.etag,
            body: reply.body.into_bytes(),
        })
    }

    fn put(&self, condition: Precondition<'_>, text: &str) -> anyhow::Result<u16> {
        let (name, value) = condition.header();
        let fields = [(name.to_owned(), value.to_owned())];
        Ok(self.call("PUT", &fields, text)?.status.as_u16())
    }
}
