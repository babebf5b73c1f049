// SPDX-License-Identifier: Apache-2.0
//! Access in EDGE: whether the client of a request may read the site. EDGE decides right behind the choice of the
//! site, in front of everything that knows an object.

use std::net::{IpAddr, SocketAddr};

use sluice_core::access::credentials::{PresentedSignatures, SignedCookies, SignedPath};
use sluice_core::access::decision::{
    AccessCheck, AccessDecision, AccessRefusal, AccessRequest, decide,
};
use sluice_core::admission::is_preflight;
use sluice_core::host::HostError;
use sluice_core::http::syntax::field_value::FieldValue;
use sluice_core::internal_headers::ORIGINAL_PATH_HEADER;
use sluice_core::key::Rejection;
use sluice_core::metrics::Metric;

use super::{Edge, Refusal, State};
use crate::request::account::{tell_access, tell_signing_key};
use crate::worker::Worker;
use sluice_host::headers::{Headers, serialize};
use sluice_host::{Host, Map};

/// The address of the client with its port, which the trusted proxies have given.
const SOURCE_ADDRESS: &str = "source\0address";

/// The signatures of a request, and the request without them.
#[derive(Default)]
pub(super) struct TakenSignatures {
    /// The signatures.
    signatures: PresentedSignatures,
    /// The headers without them; `None` if there were none.
    pub headers: Option<Headers>,
    /// The path for logs, if it has signatures.
    shown_path: Option<Vec<u8>>,
}

impl Edge {
    /// Takes the signatures out of a client's request, if the site has signed URLs. So neither the key, nor the origin
    /// nor a log has them.
    pub(super) fn take_signatures(
        &self,
        host: &dyn Host,
        headers: &Headers,
    ) -> Result<TakenSignatures, HostError> {
        let Some(taken) = self.find_signatures(headers) else {
            return Ok(TakenSignatures::default());
        };
        let (without, path) = (taken.headers.as_ref(), taken.shown_path.as_ref());
        if let (Some(shown), Some(without)) = (path, without) {
            host.set_header(Map::Request, ORIGINAL_PATH_HEADER, shown)?;
            host.set_header(Map::Request, ":path", without.target().path)?;
        }
        if let Some(without) = without.filter(|_| !taken.signatures.cookies.is_empty()) {
            host.remove_header(Map::Request, "cookie")?;
            if let Some(cookies) = without.get("cookie") {
                host.set_header(Map::Request, "cookie", cookies.bytes())?;
            }
        }
        Ok(taken)
    }

    /// Sets the path for logs again, which the path for the store has replaced.
    pub(super) fn keep_shown_path(
        &self,
        host: &dyn Host,
        taken: &TakenSignatures,
    ) -> Result<(), HostError> {
        match &taken.shown_path {
            Some(shown) if !matches!(self.state, State::Answered { .. }) => {
                host.set_header(Map::Request, ORIGINAL_PATH_HEADER, shown)
            }
            _ => Ok(()),
        }
    }

    /// The signatures of a request with these headers; `None` if there are none, or the site has no signed URLs.
    pub(super) fn find_signatures(&self, headers: &Headers) -> Option<TakenSignatures> {
        self.policy.policy.access.as_ref()?.signed()?;
        let path = SignedPath::of(headers.target().path);
        let lines = headers.fields().filter(|(name, _)| *name == b"cookie");
        let cookies = SignedCookies::of(lines.map(|(_, value)| value));
        if path.is_none() && cookies.is_none() {
            return None;
        }
        let headers = without_signatures(headers, path.as_ref(), cookies.as_ref());
        let (query, shown_path) = match path {
            Some(path) => (Some(path.signature), Some(path.shown)),
            None => (None, None),
        };
        let cookies = cookies.map(|cookies| cookies.signatures);
        Some(TakenSignatures {
            signatures: PresentedSignatures {
                query,
                cookies: cookies.unwrap_or_default(),
            },
            headers: Some(headers),
            shown_path,
        })
    }

    /// Refuses a client's request, unless its client may read the site. `headers` are those without signatures. A
    /// preflight that EDGE answers itself is not checked.
    pub(super) fn check_access(
        &self,
        host: &dyn Host,
        worker: Option<&Worker>,
        headers: &Headers,
        taken: &TakenSignatures,
    ) -> Result<(), Refusal> {
        let policy = &self.policy.policy;
        let Some(access) = &policy.access else {
            return Ok(());
        };
        let method = headers.get(":method");
        let method = method.and_then(|method| method.text().ok());
        let method = method.unwrap_or_default();
        if self.cors_policy().is_some() && is_preflight(method, |name| headers.has(name)) {
            return Ok(());
        }
        let request = AccessRequest {
            method,
            target: headers.target(),
            signatures: &taken.signatures,
            address: &|| client_address(host),
            now: host.unix_millis() / 1_000,
        };
        let decision = decide(policy, access, &self.policy.signing_keys, &request);
        if let Some(worker) = worker {
            worker.metrics.count_of(&self.policy, metric_of(&decision));
        }
        if policy.response.account {
            tell(host, &decision)?;
        }
        match decision {
            AccessDecision::Admitted { .. } => Ok(()),
            AccessDecision::Refused(_) => Err(Refusal::Rejected(Rejection::AccessDenied)),
        }
    }
}

/// The headers with the rest of the path and the rest of the cookies.
fn without_signatures(
    headers: &Headers,
    path: Option<&SignedPath>,
    cookies: Option<&SignedCookies>,
) -> Headers {
    let kept = headers
        .iter()
        .filter(|(name, _)| *name != "cookie" || cookies.is_none());
    let kept = kept.map(|(name, value)| match path {
        Some(path) if name == ":path" => (name, path.rest.as_slice()),
        _ => (name, value),
    });
    let rest = cookies.map(|cookies| cookies.rest.as_slice());
    let rest = rest.filter(|rest| !rest.is_empty());
    let rest = rest.into_iter().map(|rest| ("cookie", rest));
    Headers::new(serialize(kept.chain(rest)))
}

/// The address of the client of the effective context's request.
fn client_address(host: &dyn Host) -> Option<IpAddr> {
    let text = host.property(SOURCE_ADDRESS).ok()??;
    let address: SocketAddr = FieldValue::new(&text).text().ok()?.parse().ok()?;
    Some(address.ip())
}

/// The metric that counts a decision.
const fn metric_of(decision: &AccessDecision) -> Metric {
    match decision {
        AccessDecision::Admitted { check, .. } => match check {
            AccessCheck::Except => Metric::AccessByExcept,
            AccessCheck::Allow => Metric::AccessByAllow,
            AccessCheck::Address => Metric::AccessByAddress,
            AccessCheck::Signed => Metric::AccessBySignature,
        },
        AccessDecision::Refused(AccessRefusal::Address) => Metric::AccessRefusedByAllow,
        AccessDecision::Refused(AccessRefusal::NoProof) => Metric::AccessRefusedWithoutProof,
        AccessDecision::Refused(_) => Metric::AccessRefusedBySignature,
    }
}

/// Writes the reason of a refusal, or the name of the key of a signature, into the filter state.
fn tell(host: &dyn Host, decision: &AccessDecision) -> Result<(), HostError> {
    match decision {
        AccessDecision::Admitted { key: Some(key), .. } => tell_signing_key(host, key),
        AccessDecision::Admitted { key: None, .. } => Ok(()),
        AccessDecision::Refused(refusal) => tell_access(host, refusal.name()),
    }
}
