// SPDX-License-Identifier: Apache-2.0
//! The two ways in for purges: the listener with its token, and topics of Amazon SNS.

use std::net::SocketAddr;

use sluice_core::policy::purge::TokenHash;

use super::environment::Environment;
use crate::origin::Endpoint;
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
    /// Reads `PURGE_…`.
    pub fn read(env: &mut Environment<'_>) -> Option<Self> {
        const SHORTEST: usize = 16;
        let token = env.set("PURGE_TOKEN");
        let visible = |text: &String| text.bytes().all(|byte| byte.is_ascii_graphic());
        let good = token
            .as_ref()
            .is_none_or(|token| token.len() >= SHORTEST && visible(token));
        if !good {
            // NB: a secret; the error must not show it.
            let accepted = "must be at least 16 visible ASCII characters without spaces";
            env.refuse("PURGE_TOKEN", None, accepted);
        }
        let address = env.socket_address("PURGE_BIND", "PURGE_PORT");
        Some(Self {
            token: token.map(|token| TokenHash::of(token.as_bytes())),
            address: address?,
        })
    }
}

/// Reads `SNS_…`. `None`: SNS is not used, or there is a problem.
pub fn read_sns(env: &mut Environment<'_>) -> Option<Sns> {
    let topics = env.parse("SNS_TOPICS", Topic::ACCEPTED, |text| {
        text.split(',').map(str::trim).map(Topic::parse).collect()
    });
    let proxy = env.parse("SNS_PROXY", "http://HOST[:PORT]", |text| {
        Endpoint::parse(text).filter(|proxy| !proxy.tls)
    });
    let is_set = env.set("SNS_TOPICS").is_some();
    if proxy.is_some() && !is_set {
        env.refuse("SNS_PROXY", None, "must be unset, or SNS_TOPICS be set");
    }
    if let Some(origin) = env
        .set("ORIGIN")
        .filter(|origin| is_set && !origin.starts_with("s3://"))
    {
        let accepted =
            "s3://BUCKET[/PREFIX], or SNS_TOPICS to be unset: only a bucket has notifications";
        env.refuse("ORIGIN", Some(origin), accepted);
    }
    Some(Sns {
        topics: topics?,
        proxy,
    })
}
