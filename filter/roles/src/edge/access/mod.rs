// SPDX-License-Identifier: Apache-2.0
//! Access in EDGE: whether the client of a request may read the site. EDGE decides right behind the choice of the
//! site, in front of everything that knows an object.

mod answer;
mod asker;
mod question;
mod verification;

use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use sluice_core::access::credentials::{PresentedSignatures, SignedCookies, SignedPath};
use sluice_core::access::decision::{
    AccessCheck, AccessDecision, AccessRefusal, AccessRequest, decide,
};
use sluice_core::access::token::PresentedToken;
use sluice_core::access::verified_links::{ReceivedLink, VerifiedLinks};
use sluice_core::admission::is_preflight;
use sluice_core::host::HostError;
use sluice_core::http::syntax::field_value::FieldValue;
use sluice_core::internal_headers::ORIGINAL_PATH_HEADER;
use sluice_core::key::Rejection;
use sluice_core::metrics::Metric;
use sluice_core::policy::AccessPolicy;

pub(super) use answer::CheckerAnswer;
pub(super) use question::Question;

use super::{Edge, Refusal, State};
use crate::request::account::{tell_access, tell_access_user, tell_signing_key};
use crate::worker::metrics::Metrics;
use sluice_host::headers::{Headers, serialize};
use sluice_host::{Host, Map};

/// The address of the client with its port, which the trusted proxies have given.
const SOURCE_ADDRESS: &str = "source\0address";

/// The credentials of a request that the edge itself reads, and the request without them.
#[derive(Debug, Default)]
pub(in crate::edge) struct TakenCredentials {
    /// The signatures.
    signatures: PresentedSignatures,
    /// The lines of `Authorization`.
    authorization: Vec<Vec<u8>>,
    /// The token.
    token: PresentedToken,
    /// Whether cookies have been taken.
    has_cookies: bool,
    /// The headers without them; `None` if there were none.
    pub headers: Option<Headers>,
}

/// Whether a request is admitted.
pub(super) enum Admission {
    /// The request is answered.
    Admitted,
    /// A server must be asked. The other schemes refuse the request, for this reason.
    Asks(AccessRefusal),
}

impl Edge {
    /// Takes the credentials that the site reads out of a client's request. So neither the key, nor the origin nor a
    /// log has them. `links` are the verified links of the worker.
    pub(super) fn take_credentials(
        &self,
        host: &dyn Host,
        headers: &Headers,
        links: Option<&VerifiedLinks>,
    ) -> Result<TakenCredentials, HostError> {
        let Some(taken) = self.find_credentials(headers, links) else {
            return Ok(TakenCredentials::default());
        };
        let without = taken.headers.as_ref();
        if let Some(path) = &taken.signatures.path {
            host.set_header(Map::Request, ORIGINAL_PATH_HEADER, &path.shown)?;
            host.set_header(Map::Request, ":path", &path.rest)?;
        }
        if !taken.authorization.is_empty() {
            host.remove_header(Map::Request, "authorization")?;
        }
        if let Some(without) = without.filter(|_| taken.has_cookies) {
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
        taken: &TakenCredentials,
    ) -> Result<(), HostError> {
        match &taken.signatures.path {
            Some(path) if !matches!(self.state, State::Answered { .. }) => {
                host.set_header(Map::Request, ORIGINAL_PATH_HEADER, &path.shown)
            }
            _ => Ok(()),
        }
    }

    /// The credentials of a request with these headers; `None` if there are none that the site reads.
    pub(super) fn find_credentials(
        &self,
        headers: &Headers,
        links: Option<&VerifiedLinks>,
    ) -> Option<TakenCredentials> {
        let access = self.policy.policy.access.as_ref()?;
        let lines = |wanted: &'static [u8]| {
            let lines = headers.fields().filter(move |(name, _)| *name == wanted);
            lines.map(|(_, value)| value)
        };
        let signed = access.signed();
        let known = signed.zip(links).and_then(|(_, links)| {
            let link = self.received_link(headers)?;
            links.find(&link).cloned()
        });
        let is_verified = known.is_some();
        let path = known.or_else(|| {
            let path = signed.and_then(|_| SignedPath::of(headers.target().path));
            path.map(Rc::new)
        });
        let is_taken = |name: &[u8]| access.takes_cookie(name);
        let reads_cookies =
            signed.is_some() || access.forward().is_some() || access.jwt().is_some();
        let cookies = reads_cookies.then(|| SignedCookies::of(lines(b"cookie"), &is_taken));
        let cookies = cookies.flatten();
        let authorization: Vec<_> = match access.takes_authorization() {
            true => lines(b"authorization").map(<[u8]>::to_vec).collect(),
            false => Vec::new(),
        };
        if path.is_none() && cookies.is_none() && authorization.is_empty() {
            return None;
        }
        let token = access
            .jwt()
            .map(|jwt| PresentedToken::of(&authorization, lines(b"cookie"), jwt.cookie.as_deref()));
        let rest = Rest {
            path: path.as_ref().map(|path| path.rest.as_slice()),
            cookies: cookies.as_ref().map(|cookies| cookies.rest.as_slice()),
            lacks_authorization: !authorization.is_empty(),
        };
        let headers = rest.of(headers);
        let has_cookies = cookies.is_some();
        let cookies = cookies.map(|cookies| cookies.signatures);
        Some(TakenCredentials {
            signatures: PresentedSignatures {
                path,
                is_verified,
                cookies: cookies.unwrap_or_default(),
            },
            authorization,
            token: token.unwrap_or_default(),
            has_cookies,
            headers: Some(headers),
        })
    }

    /// The link of a request with these headers, which have its signature; `None` if such a link is not remembered.
    fn received_link<'a>(&self, headers: &'a Headers) -> Option<ReceivedLink<'a>> {
        let method = headers.get(":method")?.text().ok()?;
        ReceivedLink::of(self.policy.number, method, headers.target())
    }

    /// The values of `WWW-Authenticate` in the answer to a request that is refused.
    pub(super) fn challenges(&self, rejection: Rejection) -> Vec<String> {
        let access = self.policy.policy.access.iter();
        let has_token = rejection == Rejection::InvalidToken;
        let access = access.filter(|_| has_token || rejection == Rejection::Unauthorized);
        access
            .flat_map(|access| access.challenges(has_token))
            .collect()
    }

    /// Removes the headers that only a server that is asked may set from a client's request. Returns the other headers
    /// if there were any.
    pub(super) fn strip_copied(
        &self,
        host: &dyn Host,
        headers: &Headers,
    ) -> Result<Option<Headers>, HostError> {
        let access = self.policy.policy.access.as_ref();
        let copied = access.map_or(&[][..], AccessPolicy::copied_headers);
        let mut forged = copied.iter().filter(|name| headers.has(name)).peekable();
        if forged.peek().is_none() {
            return Ok(None);
        }
        for name in forged {
            host.remove_header(Map::Request, name)?;
        }
        let is_kept = |name: &str| copied.iter().all(|copied| copied != name);
        let kept = headers.iter().filter(|(name, _)| is_kept(name));
        Ok(Some(Headers::new(serialize(kept))))
    }

    /// Whether a request has a header from a server that was asked, and the key lacks the header. The response is then
    /// for the request's client alone.
    pub(super) fn is_personal(&self, headers: &Headers) -> bool {
        let policy = &self.policy.policy;
        let access = policy.access.as_ref();
        let copied = access.map_or(&[][..], AccessPolicy::copied_headers);
        let mut unkeyed = copied
            .iter()
            .filter(|name| !policy.key.headers.contains(name));
        unkeyed.any(|name| headers.has(name))
    }

    /// Refuses a client's request that was `sent` with these headers, unless its client may read the site, or a server
    /// must be asked. A preflight that EDGE answers itself is not checked.
    pub(super) fn check_access(
        &self,
        host: &dyn Host,
        worker: Option<(&Metrics, &mut VerifiedLinks)>,
        sent: &Headers,
        taken: &TakenCredentials,
    ) -> Result<Admission, Refusal> {
        let policy = &self.policy.policy;
        let Some(access) = &policy.access else {
            return Ok(Admission::Admitted);
        };
        let headers = taken.headers.as_ref().unwrap_or(sent);
        let method = headers.get(":method");
        let method = method.and_then(|method| method.text().ok());
        let method = method.unwrap_or_default();
        if self.cors_policy().is_some() && is_preflight(method, |name| headers.has(name)) {
            return Ok(Admission::Admitted);
        }
        let request = AccessRequest {
            method,
            target: headers.target(),
            signatures: &taken.signatures,
            authorization: taken.only_authorization(),
            token: &taken.token,
            address: &|| client_address(host),
            now: &|| host.unix_millis() / 1_000,
        };
        let decision = decide(policy, access, &self.policy.secrets, &request);
        let decided = match decision {
            AccessDecision::Admitted { .. } => Ok(Admission::Admitted),
            // The answer of the server is counted and told.
            AccessDecision::Asks(refusal) => return Ok(Admission::Asks(refusal)),
            AccessDecision::Refused(refusal) => Err(Refusal::Rejected(rejection(access, refusal))),
        };
        if let Some((metrics, links)) = worker {
            metrics.count_of(&self.policy, metric_of(&decision));
            self.remember_link(links, &decision, sent, &taken.signatures);
        }
        if policy.response.account {
            tell(host, &decision)?;
        }
        decided
    }

    /// Remembers the link of a request that its signature has admitted.
    fn remember_link(
        &self,
        links: &mut VerifiedLinks,
        decision: &AccessDecision,
        sent: &Headers,
        signatures: &PresentedSignatures,
    ) {
        let check = AccessCheck::Signed;
        let is_by_signature =
            matches!(decision, AccessDecision::Admitted { check: found, .. } if *found == check);
        let path = signatures.admitting_path();
        let new = path.filter(|_| is_by_signature && !signatures.is_verified);
        if let Some((path, link)) = new.zip(self.received_link(sent)) {
            links.remember(&link, path);
        }
    }
}

impl TakenCredentials {
    /// The value of `Authorization`, if there is one alone.
    fn only_authorization(&self) -> Option<&[u8]> {
        match self.authorization.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }
}

/// The parts of a request without credentials.
struct Rest<'a> {
    /// The path, if it has had signatures.
    path: Option<&'a [u8]>,
    /// The other cookies, if cookies have had signatures.
    cookies: Option<&'a [u8]>,
    /// Whether `Authorization` has been taken.
    lacks_authorization: bool,
}

impl Rest<'_> {
    /// The headers with these parts.
    fn of(&self, headers: &Headers) -> Headers {
        if let (Some(path), None, false) = (self.path, self.cookies, self.lacks_authorization) {
            return headers.with(":path", path);
        }
        let kept = headers.iter().filter(|(name, _)| match *name {
            "cookie" => self.cookies.is_none(),
            "authorization" => !self.lacks_authorization,
            _ => true,
        });
        let kept = kept.map(|(name, value)| match self.path {
            Some(path) if name == ":path" => (name, path),
            _ => (name, value),
        });
        let cookies = self.cookies.filter(|rest| !rest.is_empty());
        let cookies = cookies.into_iter().map(|rest| ("cookie", rest));
        Headers::new(serialize(kept.chain(cookies)))
    }
}

/// The answer to a request that is refused: 401 if other credentials could admit its client, else 403.
fn rejection(access: &AccessPolicy, refusal: AccessRefusal) -> Rejection {
    match access.challenges(false).next() {
        Some(_) if refusal == AccessRefusal::WrongToken => Rejection::InvalidToken,
        Some(_) if refusal.is_for_lack_of_credentials() => Rejection::Unauthorized,
        _ => Rejection::AccessDenied,
    }
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
            AccessCheck::Basic => Metric::AccessByPassword,
            AccessCheck::Forward => Metric::AccessByForward,
        },
        AccessDecision::Refused(AccessRefusal::Address) => Metric::AccessRefusedByAllow,
        AccessDecision::Refused(AccessRefusal::NoProof) => Metric::AccessRefusedWithoutProof,
        AccessDecision::Refused(AccessRefusal::WrongPassword) => Metric::AccessRefusedByPassword,
        AccessDecision::Refused(AccessRefusal::WrongToken) => Metric::AccessRefusedByToken,
        AccessDecision::Refused(_) | AccessDecision::Asks(_) => Metric::AccessRefusedBySignature,
    }
}

/// Writes the reason of a refusal, or the name of the key of a signature or of the user, into the filter state.
fn tell(host: &dyn Host, decision: &AccessDecision) -> Result<(), HostError> {
    match decision {
        AccessDecision::Admitted { check, name } => match (check, name) {
            (AccessCheck::Signed, Some(key)) => tell_signing_key(host, key),
            (_, Some(user)) => tell_access_user(host, user),
            (_, None) => Ok(()),
        },
        AccessDecision::Refused(refusal) | AccessDecision::Asks(refusal) => {
            tell_access(host, refusal.name())
        }
    }
}
