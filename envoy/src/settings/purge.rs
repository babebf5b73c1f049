// SPDX-License-Identifier: Apache-2.0
//! The two ways to purge: the listener with its token, and topics of Amazon SNS.

use std::net::SocketAddr;

use sluice_core::policy::purge::TokenHash;

use super::environment::Environment;
use crate::origin::Endpoint;
use crate::sites::{ACCEPTED_TOKEN, hash_of_token};
use crate::sns::{Sns, Topic};

/// The listener for purges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PurgeListener {
    /// The hash of the token that a purge must carry; the token itself is not kept.
    pub token: Option<TokenHash>,
    /// The listener's address.
    pub address: SocketAddr,
}

impl PurgeListener {
    /// Reads `SLUICE_PURGE_…`.
    pub fn read(env: &mut Environment<'_>) -> Option<Self> {
        let secret = env.secret("SLUICE_PURGE_TOKEN");
        let token = secret
            .as_ref()
            .and_then(|secret| hash_of_token(&secret.text));
        if secret.is_some() && token.is_none() {
            env.refuse("SLUICE_PURGE_TOKEN", None, ACCEPTED_TOKEN);
        }
        let address = env.socket_address("SLUICE_PURGE_BIND", "SLUICE_PURGE_PORT");
        Some(Self {
            token,
            address: address?,
        })
    }
}

/// Reads `SLUICE_SNS_…`. `None`: SNS is not used, or there is a problem.
pub fn read_sns(env: &mut Environment<'_>) -> Option<Sns> {
    let topics = env.parse("SLUICE_SNS_TOPICS", Topic::ACCEPTED, |text| {
        text.split(',').map(str::trim).map(Topic::parse).collect()
    });
    let proxy = env.parse("SLUICE_SNS_PROXY", "http://HOST[:PORT]", |text| {
        Endpoint::parse(text).filter(|proxy| !proxy.tls)
    });
    let is_set = env.set("SLUICE_SNS_TOPICS").is_some();
    if proxy.is_some() && !is_set {
        env.refuse(
            "SLUICE_SNS_PROXY",
            None,
            "must be unset, or SLUICE_SNS_TOPICS be set",
        );
    }
    if let Some(origin) = env
        .set("SLUICE_ORIGIN")
        .filter(|origin| is_set && !origin.starts_with("s3://"))
    {
        let accepted = "s3://BUCKET[/PREFIX], or SLUICE_SNS_TOPICS to be unset: only a bucket has notifications";
        env.refuse("SLUICE_ORIGIN", Some(origin), accepted);
    }
    Some(Sns {
        topics: topics?,
        proxy,
    })
}

/// Reads `SLUICE_PURGE_FEED_WRITE`. `listens`: whether there is a listener for purges.
pub fn read_feed_write(env: &mut Environment<'_>, listens: bool) -> Option<bool> {
    let writes = env.switch(FEED_WRITE)?;
    if writes && !listens {
        let accepted = "off, or SLUICE_PURGE_TOKEN or SLUICE_SNS_TOPICS to be set: without them there is no purge to write";
        let given = env.set(FEED_WRITE);
        env.refuse(FEED_WRITE, given, accepted);
        return None;
    }
    Some(writes)
}

/// The setting that lets an edge write its purges to the purge feed.
pub const FEED_WRITE: &str = "SLUICE_PURGE_FEED_WRITE";
