// SPDX-License-Identifier: Apache-2.0
//! Requests an object that the bucket cannot have, and signs the request as the edge does.

use std::io::Read as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, anyhow};
use rusty_s3::{Credentials as Keys, S3Action as _, UrlStyle};
use ureq::http::Response;
use ureq::{Agent, Body};

use super::bucket_answer::BucketAnswer;
use crate::net::http;
use crate::origin::{Addressing, Bucket};
use crate::system::random;

/// The validity of a signed request.
const VALIDITY: Duration = Duration::from_secs(300);
/// Bound on the part of an error's body that is read, in bytes.
const MOST_BYTES: u64 = 4_096;

/// Sends the request to the bucket. `roots` has the CA certificates for an endpoint that speaks TLS.
///
/// # Errors
/// The bucket does not answer; the error has the reason.
pub fn ask(bucket: &Bucket, keys: &Keys, roots: Option<&Path>) -> anyhow::Result<BucketAnswer> {
    let agent = http::client_of_servers(roots).context("the CA certificates")?;
    let name = random::hex().context("random bits")?;
    let slash = if bucket.prefix.is_empty() { "" } else { "/" };
    let object = format!("{}{slash}.well-known/sluice-check-{name}", bucket.prefix);
    let url = signer(bucket)?
        .get_object(Some(keys), &object)
        .sign(VALIDITY);
    let response = get(&agent, url.as_str())
        .map_err(|error| anyhow!("no answer from {}: {error}", bucket.endpoint))?;
    Ok(answer(response))
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

/// NB: the URL has the key's ID, the token and a signature, so an error must not repeat it.
fn get(agent: &Agent, url: &str) -> Result<Response<Body>, String> {
    agent.get(url).call().map_err(|error| match error {
        ureq::Error::BadUri(_) => "its URL cannot be used".to_owned(),
        error => error.to_string(),
    })
}

fn answer(response: Response<Body>) -> BucketAnswer {
    let header = |name: &str| {
        let value = response.headers().get(name)?.to_str().ok()?;
        Some(value.to_owned())
    };
    let (date, region) = (header("date"), header("x-amz-bucket-region"));
    let status = response.status().as_u16();
    let mut body = Vec::new();
    // If the answer ends early, the part that has arrived is used.
    let _ = response
        .into_body()
        .into_reader()
        .take(MOST_BYTES)
        .read_to_end(&mut body);
    BucketAnswer {
        status,
        date,
        region,
        body: String::from_utf8_lossy(&body).into_owned(),
        now: SystemTime::now(),
    }
}
