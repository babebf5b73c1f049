// SPDX-License-Identifier: Apache-2.0
//! A policy with rules for clients, and requests under these rules.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use std::net::IpAddr;
use std::rc::Rc;

use serde_json::{Value, json};
use sluice_core::access::credentials::{PresentedSignatures, SignedCookies, SignedPath};
use sluice_core::access::decision::{AccessCheck, AccessDecision, AccessRequest, decide};
use sluice_core::access::grant::{Grant, GrantedResource};
use sluice_core::access::sealed_key::{KeyPlace, SealedKey};
use sluice_core::access::secrets::AccessSecrets;
use sluice_core::access::signing_key::SigningKey;
use sluice_core::access::token::PresentedToken;
use sluice_core::access::verified_links::{ReceivedLink, VerifiedLinks};
use sluice_core::hexadecimal;
use sluice_core::key::Target;
use sluice_core::key::secret::StoreSecret;
use sluice_core::policy::Policy;

use crate::support::documents::parse;

/// The secret of the store.
pub const SECRET: StoreSecret = StoreSecret::new([1, 2]);
/// The key `a`.
pub const KEY: &str = "the key a, with at least 32 bytes";
/// The key `b`.
pub const OTHER_KEY: &str = "the key b, which is another one, too";
/// The present time.
pub const NOW: u64 = 1_800_000_000;
/// The address of the client.
pub const ADDRESS: &str = "192.0.2.7";

/// The scheme `signed` with both keys, as the entry point seals them.
pub fn signed() -> Value {
    let sealed = |name: &str, key: &str| {
        let place = KeyPlace { site: "", name };
        let sealed = SealedKey::seal(&SECRET, &place, key.as_bytes());
        json!({ "sealed": sealed.to_string() })
    };
    json!({ "signed": { "keys": { "a": sealed("a", KEY), "b": sealed("b", OTHER_KEY) } } })
}

/// The policy of an HTTP origin with these rules and `sections`.
pub fn policy(access: Value, sections: Value) -> Policy {
    let mut document = json!({ "origin": { "kind": "http" }, "access": access });
    for (name, section) in sections.as_object().unwrap() {
        document[name] = section.clone();
    }
    parse(&document)
}

/// A request.
#[derive(Clone, Copy)]
pub struct Sent<'a> {
    pub method: &'a str,
    pub host: &'a str,
    pub path: &'a [u8],
    pub cookie: &'a str,
    pub authorization: Option<&'a str>,
    pub address: &'a str,
    pub now: u64,
}

/// A GET of this path.
pub const fn get(path: &str) -> Sent<'_> {
    Sent {
        method: "GET",
        host: "edge.test",
        path: path.as_bytes(),
        cookie: "",
        authorization: None,
        address: ADDRESS,
        now: NOW,
    }
}

impl Sent<'_> {
    /// The decision about the request.
    pub fn decide(&self, policy: &Policy) -> AccessDecision {
        self.decide_by(policy, SignedPath::of(self.path).map(Rc::new), false)
    }

    /// The decision about the request of a worker that has verified these links under the policy of this number.
    /// Remembers the link as EDGE does.
    pub fn decide_with(
        &self,
        policy: &Policy,
        number: u32,
        links: &mut VerifiedLinks,
    ) -> AccessDecision {
        let link = self.link(number);
        let known = link.and_then(|link| links.find(&link).cloned());
        let is_verified = known.is_some();
        let signed = known.or_else(|| SignedPath::of(self.path).map(Rc::new));
        let decision = self.decide_by(policy, signed.clone(), is_verified);
        let is_by_signature = matches!(
            &decision,
            AccessDecision::Admitted {
                check: AccessCheck::Signed,
                ..
            }
        );
        if let Some((link, signed)) = link.zip(signed)
            && is_by_signature
            && !is_verified
        {
            links.remember(&link, &signed);
        }
        decision
    }

    /// Whether the link is one of these.
    pub fn is_known(&self, number: u32, links: &VerifiedLinks) -> bool {
        self.link(number)
            .is_some_and(|link| links.find(&link).is_some())
    }

    fn link(&self, number: u32) -> Option<ReceivedLink<'_>> {
        ReceivedLink::of(number, self.method, self.target(self.path))
    }

    fn target<'a>(&'a self, path: &'a [u8]) -> Target<'a> {
        Target {
            scheme: Some("http"),
            authority: self.host.as_bytes(),
            path,
        }
    }

    fn decide_by(
        &self,
        policy: &Policy,
        signed: Option<Rc<SignedPath>>,
        is_verified: bool,
    ) -> AccessDecision {
        let cookies = SignedCookies::of([self.cookie.as_bytes()].into_iter(), &|_| false);
        let signatures = PresentedSignatures {
            path: signed.clone(),
            is_verified,
            cookies: cookies
                .map(|cookies| cookies.signatures)
                .unwrap_or_default(),
        };
        let lines = self.authorization.map(|line| line.as_bytes().to_vec());
        let lines: Vec<_> = lines.into_iter().collect();
        let token = PresentedToken::of(&lines, [self.cookie.as_bytes()].into_iter(), Some("token"));
        let path = signed.map_or(self.path.to_vec(), |signed| signed.rest.clone());
        let address: Option<IpAddr> = self.address.parse().ok();
        let request = AccessRequest {
            method: self.method,
            target: self.target(&path),
            signatures: &signatures,
            authorization: self.authorization.map(str::as_bytes),
            token: &token,
            address: &|| address,
            now: &|| self.now,
        };
        let secrets = AccessSecrets::open(policy, &SECRET).unwrap();
        decide(policy, policy.access.as_ref().unwrap(), &secrets, &request)
    }
}

/// A grant of this URL by the key `a` for the next minute.
pub const fn grant(url: &str) -> Grant<'_> {
    Grant {
        method: "GET",
        host: "edge.test",
        resource: GrantedResource::Url(url),
        not_before: None,
        expires: NOW + 60,
        from: None,
        key: "a",
    }
}

/// A grant of this prefix by the key `a` for the next minute.
pub const fn grant_prefix(prefix: &str) -> Grant<'_> {
    Grant {
        resource: GrantedResource::Prefix(prefix),
        ..grant("")
    }
}

/// The parameters of a grant with a signature by `key`.
pub fn parameters(grant: &Grant<'_>, key: &str) -> String {
    let key = SigningKey::new(key.as_bytes()).unwrap();
    let mut signature = String::new();
    hexadecimal::push(&mut signature, &key.sign(grant));
    let mut text = format!("sluice-key={}&sluice-expires={}", grant.key, grant.expires);
    if let Some(time) = grant.not_before {
        text += &format!("&sluice-not-before={time}");
    }
    if let Some(from) = grant.from {
        text += &format!("&sluice-from={from}");
    }
    if let GrantedResource::Prefix(prefix) = grant.resource {
        text += &format!("&sluice-prefix={prefix}");
    }
    text + "&sluice-signature=" + &signature
}
