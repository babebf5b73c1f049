// SPDX-License-Identifier: Apache-2.0
//! Requests an object that the bucket cannot have, and signs the request as the edge does.

use std::io::Read as _;
use std::time::SystemTime;

use anyhow::Context as _;
use ureq::Body;
use ureq::http::Response;

use super::bucket_answer::BucketAnswer;
use crate::net::bucket_client::BucketClient;
use crate::system::random;

/// Bound on the part of an error's body that is read, in bytes.
const MOST_BYTES: u64 = 4_096;

/// Sends the request to the bucket.
///
/// # Errors
/// The bucket does not answer; the error has the reason.
pub fn ask(client: &BucketClient) -> anyhow::Result<BucketAnswer> {
    let name = random::hex().context("random bits")?;
    let response = client.get(&format!(".well-known/sluice-check-{name}"))?;
    Ok(answer(response))
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
