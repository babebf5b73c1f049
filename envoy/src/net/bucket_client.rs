// SPDX-License-Identifier: Apache-2.0
//! Signed requests to a bucket. A request has its signature in its URL.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use rusty_s3::{Credentials as Keys, S3Action, UrlStyle};
use ureq::http::Response;
use ureq::{Agent, Body};

use super::{ca_bundle, http};
use crate::origin::{Addressing, Bucket};

/// The validity of a signed request.
const VALIDITY: Duration = Duration::from_secs(300);

/// A client of one bucket, with the keys of one user. Names of objects are those below the bucket's prefix.
pub struct BucketClient {
    agent: Agent,
    signer: rusty_s3::Bucket,
    keys: Keys,
    /// The prefix of every key, with its slash.
    prefix: String,
    /// The endpoint, for messages.
    endpoint: String,
}

/// The condition for a write (RFC 9110, section 13.1).
#[derive(Clone, Copy, Debug)]
pub enum Precondition<'a> {
    /// The object does not exist.
    IsMissing,
    /// The object has this entity tag.
    HasTag(&'a str),
}

impl Precondition<'_> {
    /// The name and the value of its field.
    pub const fn header(&self) -> (&'static str, &str) {
        match self {
            Self::IsMissing => ("if-none-match", "*"),
            Self::HasTag(tag) => ("if-match", tag),
        }
    }
}

impl BucketClient {
    /// Creates a client. An endpoint that speaks TLS is verified by the user's `chosen` file with CA certificates, or
    /// else by the system's.
    ///
    /// # Errors
    /// There are no certificates, they cannot be read, or the endpoint has no URL.
    pub fn new(bucket: &Bucket, keys: Keys, chosen: Option<&Path>) -> anyhow::Result<Self> {
        let endpoint = bucket.endpoint.to_string();
        let find = || ca_bundle::find(chosen, &endpoint);
        let roots = bucket.endpoint.tls.then(find).transpose()?;
        let slash = if bucket.prefix.is_empty() { "" } else { "/" };
        Ok(Self {
            agent: http::client_of_servers(roots.as_deref()).context("the CA certificates")?,
            signer: signer(bucket)?,
            keys,
            prefix: format!("{}{slash}", bucket.prefix),
            endpoint,
        })
    }

    /// Reads an object.
    ///
    /// # Errors
    /// The bucket does not answer; the error has the reason.
    pub fn get(&self, name: &str) -> anyhow::Result<Response<Body>> {
        let key = self.key(name);
        let url = signed(&self.signer.get_object(Some(&self.keys), &key));
        self.answer(self.agent.get(url).call())
    }

    /// Lists a page of the objects whose names begin with `beginning` (ListObjectsV2), at most 1,000. `token` is that of
    /// the page before. Servers encode the keys of the answer as in a form.
    ///
    /// # Errors
    /// The bucket does not answer; the error has the reason.
    pub fn list(&self, beginning: &str, token: Option<&str>) -> anyhow::Result<Response<Body>> {
        let mut action = self.signer.get_object(Some(&self.keys), "");
        let query = action.query_mut();
        query.insert("list-type", "2");
        query.insert("encoding-type", "url");
        query.insert("prefix", self.key(beginning));
        if let Some(token) = token {
            query.insert("continuation-token", token.to_owned());
        }
        self.answer(self.agent.get(signed(&action)).call())
    }

    /// Writes an object if the condition holds. The answer is 412, or 409 while another write runs, if it does not.
    ///
    /// # Errors
    /// The bucket does not answer; the error has the reason.
    pub fn put(
        &self,
        name: &str,
        condition: Precondition<'_>,
        content: &[u8],
    ) -> anyhow::Result<Response<Body>> {
        let key = self.key(name);
        let (header, value) = condition.header();
        let mut action = self.signer.put_object(Some(&self.keys), &key);
        action.headers_mut().insert(header, value);
        let request = self.agent.put(signed(&action)).header(header, value);
        self.answer(request.send(content))
    }

    /// Deletes an object.
    ///
    /// # Errors
    /// The bucket does not answer; the error has the reason.
    pub fn delete(&self, name: &str) -> anyhow::Result<Response<Body>> {
        let key = self.key(name);
        let url = signed(&self.signer.delete_object(Some(&self.keys), &key));
        self.answer(self.agent.delete(url).call())
    }

    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// NB: the URL has the key's ID, the token and a signature, so an error must not repeat it.
    fn answer(
        &self,
        result: Result<Response<Body>, ureq::Error>,
    ) -> anyhow::Result<Response<Body>> {
        result.map_err(|error| {
            let reason = match error {
                ureq::Error::BadUri(_) => "its URL cannot be used".to_owned(),
                error => error.to_string(),
            };
            anyhow!("no answer from {}: {reason}", self.endpoint)
        })
    }
}

fn signed<'a>(action: &impl S3Action<'a>) -> String {
    action.sign(VALIDITY).into()
}

fn signer(bucket: &Bucket) -> anyhow::Result<rusty_s3::Bucket> {
    let mut endpoint = bucket.endpoint.clone();
    let style = match bucket.addressing {
        Addressing::Path => UrlStyle::Path,
        Addressing::VirtualHost => {
            // The endpoint of such a bucket has the bucket's name in front, which the signer adds itself.
            let host = endpoint.host.strip_prefix(&format!("{}.", bucket.name));
            endpoint.host = host.unwrap_or(&endpoint.host).to_owned();
            UrlStyle::VirtualHost
        }
    };
    let url = endpoint.to_string().parse().context("the endpoint's URL")?;
    let signer = rusty_s3::Bucket::new(url, style, bucket.name.clone(), bucket.region.clone());
    signer.context("the bucket's URL")
}
