// SPDX-License-Identifier: Apache-2.0
//! The decision whether the client of a request may read the site.

use std::cell::OnceCell;
use std::net::IpAddr;

use super::credentials::{PresentedSignatures, ReadParameters};
use super::grant::{Grant, GrantedResource};
use super::parameters::SignatureParameters;
use super::secrets::AccessSecrets;
use super::signing_key::{SigningKey, SigningKeys};
use super::token::PresentedToken;
use super::users::is_basic;
use crate::key::Target;
use crate::key::client_url::ClientUrl;
use crate::policy::{AccessPolicy, AccessScheme, Network, Policy, SignedPolicy};
use crate::sites::host_name;

/// The difference between two clocks that is tolerated, in seconds.
pub const SKEW_SECONDS: u64 = 60;

/// The facts about a request on which the decision depends.
#[derive(Clone, Copy)]
pub struct AccessRequest<'a> {
    /// `:method`.
    pub method: &'a str,
    /// The target without the parameters of a signature.
    pub target: Target<'a>,
    /// The signatures.
    pub signatures: &'a PresentedSignatures,
    /// The value of `Authorization`, if there is one alone.
    pub authorization: Option<&'a [u8]>,
    /// The token.
    pub token: &'a PresentedToken,
    /// Finds the client's address. `None`: it is not known.
    pub address: &'a dyn Fn() -> Option<IpAddr>,
    /// Reads the present time, in seconds since the Unix epoch.
    pub now: &'a dyn Fn() -> u64,
}

/// The check that has admitted a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessCheck {
    /// The path is open to everyone.
    Except,
    /// The client comes from a network of `allow`, and no scheme is needed.
    Allow,
    /// The scheme `address`.
    Address,
    /// The scheme `signed`.
    Signed,
    /// The scheme `basic`.
    Basic,
    /// The scheme `forward`.
    Forward,
}

/// The reason for which a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessRefusal {
    /// The client does not come from a network of `allow`.
    Address,
    /// The request satisfies no scheme, and has no signature.
    NoProof,
    /// A parameter of a signature is missing, unknown, misspelled or given twice, or has a value that is not valid.
    Malformed,
    /// The site has no key of that name.
    UnknownKey,
    /// The signature is for another URL, prefix, method or host, or another key has made it.
    WrongSignature,
    /// The signature has expired.
    Expired,
    /// The signature is not valid yet.
    NotYetValid,
    /// The signature is for a client in another network.
    OtherAddress,
    /// The signature is for a prefix that the path does not have.
    OtherPath,
    /// The site has no user with this name and this password.
    WrongPassword,
    /// The token is not valid, or the request has several.
    WrongToken,
}

impl AccessRefusal {
    /// A token for logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::NoProof => "no_proof",
            Self::Malformed => "malformed",
            Self::UnknownKey => "unknown_key",
            Self::WrongSignature => "wrong_signature",
            Self::Expired => "expired",
            Self::NotYetValid => "not_yet_valid",
            Self::OtherAddress => "other_address",
            Self::OtherPath => "other_path",
            Self::WrongPassword => "wrong_password",
            Self::WrongToken => "wrong_token",
        }
    }

    /// Whether other credentials could admit the client, if the site has schemes with credentials.
    pub const fn is_for_lack_of_credentials(self) -> bool {
        !matches!(self, Self::Address | Self::Malformed)
    }
}

/// The decision about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessDecision {
    /// The request is answered.
    Admitted {
        /// The check that it has passed.
        check: AccessCheck,
        /// The name of the key of its signature, or of its user.
        name: Option<String>,
    },
    /// Only a server that is asked, or the verification of its token, can admit the request. The other schemes refuse
    /// it, for this reason.
    Asks(AccessRefusal),
    /// The request is refused, for this reason.
    Refused(AccessRefusal),
}

/// Decides about a request under the `access` of its policy. `secrets` are the secrets of the policy.
pub fn decide(
    policy: &Policy,
    access: &AccessPolicy,
    secrets: &AccessSecrets,
    request: &AccessRequest<'_>,
) -> AccessDecision {
    let url = OnceCell::new();
    let known_address = OnceCell::new();
    let facts = Facts {
        request,
        url: &|| {
            url.get_or_init(|| ClientUrl::of(policy, &request.target).ok())
                .as_ref()
        },
        address: &|| *known_address.get_or_init(request.address),
    };
    match facts.decide(access, secrets) {
        Ok((check, name)) => AccessDecision::Admitted { check, name },
        Err(refusal) if refusal.is_for_lack_of_credentials() && facts.asks(access) => {
            AccessDecision::Asks(refusal)
        }
        Err(refusal) => AccessDecision::Refused(refusal),
    }
}

/// The request, with facts that are found once when they are needed.
struct Facts<'a> {
    request: &'a AccessRequest<'a>,
    /// The URL of the request, unless the edge refuses the URL.
    url: &'a dyn Fn() -> Option<&'a ClientUrl>,
    address: &'a dyn Fn() -> Option<IpAddr>,
}

impl Facts<'_> {
    fn decide(
        &self,
        access: &AccessPolicy,
        secrets: &AccessSecrets,
    ) -> Result<(AccessCheck, Option<String>), AccessRefusal> {
        let path = self.request.signatures.path.as_ref();
        if path.is_some_and(|path| path.signature.is_err()) {
            return Err(AccessRefusal::Malformed);
        }
        if access.has_exceptions() && (self.url)().is_some_and(|url| access.is_open(url.path())) {
            return Ok((AccessCheck::Except, None));
        }
        if !access.allow.is_empty() && !self.comes_from(&access.allow) {
            return Err(AccessRefusal::Address);
        }
        if access.any_of.is_empty() {
            return Ok((AccessCheck::Allow, None));
        }
        let mut refusal = AccessRefusal::NoProof;
        for scheme in &access.any_of {
            match self.satisfies(scheme, secrets) {
                Ok(admitted) => return Ok(admitted),
                Err(AccessRefusal::NoProof) => {}
                Err(reason) => refusal = reason,
            }
        }
        Err(refusal)
    }

    /// The check of one scheme. The name is that of the key or of the user.
    fn satisfies(
        &self,
        scheme: &AccessScheme,
        secrets: &AccessSecrets,
    ) -> Result<(AccessCheck, Option<String>), AccessRefusal> {
        match scheme {
            AccessScheme::Address(networks) => match self.comes_from(networks) {
                true => Ok((AccessCheck::Address, None)),
                false => Err(AccessRefusal::NoProof),
            },
            AccessScheme::Signed(signed) => {
                let key = self.find_signature(signed, &secrets.keys)?;
                Ok((AccessCheck::Signed, Some(key)))
            }
            AccessScheme::Basic(_) => {
                let sent = self.request.authorization.filter(|sent| is_basic(sent));
                let sent = sent.ok_or(AccessRefusal::NoProof)?;
                let user = secrets.users.verify(sent);
                let user = user.ok_or(AccessRefusal::WrongPassword)?;
                Ok((AccessCheck::Basic, Some(user.to_owned())))
            }
            AccessScheme::Jwt(_) if *self.request.token == PresentedToken::Malformed => {
                Err(AccessRefusal::WrongToken)
            }
            AccessScheme::Jwt(_) | AccessScheme::Forward(_) => Err(AccessRefusal::NoProof),
        }
    }

    /// Whether a question can still admit the request.
    fn asks(&self, access: &AccessPolicy) -> bool {
        let has_token = matches!(self.request.token, PresentedToken::Present(_));
        access.forward().is_some() || (has_token && access.jwt().is_some())
    }

    fn comes_from(&self, networks: &[Network]) -> bool {
        let address = (self.address)();
        address.is_some_and(|address| networks.iter().any(|network| network.contains(address)))
    }

    /// The key of the first valid signature, or the reason for which the first signature is not valid.
    fn find_signature(
        &self,
        signed: &SignedPolicy,
        keys: &SigningKeys,
    ) -> Result<String, AccessRefusal> {
        let signatures = self.request.signatures;
        let path = signatures.path.iter();
        let query = path.map(|path| (&path.signature, signatures.is_verified));
        let cookies = signatures.cookies.iter().map(|read| (read, false));
        let mut first = None;
        for (read, is_verified) in query.chain(cookies) {
            match self.verify(signed, keys, read, is_verified) {
                Ok(key) => return Ok(key),
                Err(refusal) => first = first.or(Some(refusal)),
            }
        }
        Err(first.unwrap_or(AccessRefusal::NoProof))
    }

    /// Verifies one signature unless it `is_verified`, and then what it says, so that the reason of a refusal is a
    /// true one.
    fn verify(
        &self,
        signed: &SignedPolicy,
        keys: &SigningKeys,
        read: &ReadParameters,
        is_verified: bool,
    ) -> Result<String, AccessRefusal> {
        let parameters = read.as_ref().map_err(|_| AccessRefusal::Malformed)?;
        let entry = signed
            .keys
            .iter()
            .find(|entry| entry.name == parameters.key);
        let entry = entry.ok_or(AccessRefusal::UnknownKey)?;
        let key = keys.get(&entry.name).ok_or(AccessRefusal::UnknownKey)?;
        if !is_verified {
            self.verify_hash(key, parameters)?;
        }
        self.check(parameters)?;
        Ok(entry.name.clone())
    }

    /// Verifies that the key has made the signature, for this request.
    fn verify_hash(
        &self,
        key: &SigningKey,
        parameters: &SignatureParameters,
    ) -> Result<(), AccessRefusal> {
        let url = (self.url)().ok_or(AccessRefusal::WrongSignature)?;
        let host = host_name(&self.request.target).ok();
        let host = host.and_then(|host| String::from_utf8(host).ok());
        let host = host.ok_or(AccessRefusal::WrongSignature)?;
        let grant = self.grant(parameters, url, &host);
        let is_right = key.verifies(&grant, &parameters.signature);
        is_right.then_some(()).ok_or(AccessRefusal::WrongSignature)
    }

    /// The grant that the parameters name for this request.
    fn grant<'b>(
        &'b self,
        parameters: &'b SignatureParameters,
        url: &'b ClientUrl,
        host: &'b str,
    ) -> Grant<'b> {
        Grant {
            method: self.request.method,
            host,
            resource: match &parameters.prefix {
                Some(prefix) => GrantedResource::Prefix(prefix),
                None => GrantedResource::Url(url.as_str()),
            },
            not_before: parameters.not_before,
            expires: parameters.expires,
            from: parameters.from.as_ref().map(|(text, _)| text.as_str()),
            key: &parameters.key,
        }
    }

    /// Checks the bounds of a genuine signature.
    fn check(&self, parameters: &SignatureParameters) -> Result<(), AccessRefusal> {
        let now = (self.request.now)();
        if parameters.expires.saturating_add(SKEW_SECONDS) < now {
            return Err(AccessRefusal::Expired);
        }
        let not_before = parameters.not_before.unwrap_or(0);
        if not_before > now.saturating_add(SKEW_SECONDS) {
            return Err(AccessRefusal::NotYetValid);
        }
        if let Some((_, network)) = parameters.from
            && !self.comes_from(&[network])
        {
            return Err(AccessRefusal::OtherAddress);
        }
        let prefix = parameters.prefix.as_deref();
        let start = prefix.and_then(|prefix| prefix.strip_suffix('*'));
        let Some(start) = start else { return Ok(()) };
        let is_below = (self.url)().is_some_and(|url| url.path().starts_with(start));
        is_below.then_some(()).ok_or(AccessRefusal::OtherPath)
    }
}
