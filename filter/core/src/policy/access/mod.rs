// SPDX-License-Identifier: Apache-2.0
//! The section `access`: which clients a site answers.

mod basic;
mod forward;
mod jwt;
mod key_source;
mod network;
#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::policy::forms::error::PolicyError;
use crate::policy::forms::form::{Form, Kind, object, one_of};
use crate::policy::forms::glob::Glob;
use crate::policy::forms::section::section;
use crate::policy::sections::glob_set::GlobSet;
use crate::policy::sections::rules::CanonicalGlob;

#[cfg(test)]
pub(in crate::policy) use basic::{AuthenticationRealm, UserFile};
pub use basic::{BasicPolicy, UserSource};
#[cfg(test)]
pub(in crate::policy) use forward::{CertificateFile, CookieName, CopiedHeaders};
pub use forward::{CheckerUrl, ForwardPolicy};
pub use jwt::{JwtPolicy, KeySetSource};
#[cfg(test)]
pub(in crate::policy) use jwt::{KeySetPlace, LONGEST_NAME, TokenCookie, TokenName};
pub(in crate::policy) use key_source::KeyEntries;
#[cfg(test)]
pub(in crate::policy) use key_source::MAX_NAME_BYTES;
pub use key_source::{KeyEntry, KeySource, is_key_name};
pub use network::Network;

section! {
    /// Which clients the site answers. All others get 403. In a standalone edge the entry point fills this in, from
    /// the field access of a site or from SLUICE_ACCESS.
    pub(in crate::policy) struct AccessSection {
        /// Networks from which each client must come. Default: all addresses.
        allow: Option<Vec<Network>> as Option<Filled<Network>>,
        /// Schemes. A request must satisfy one of them. Default: none is needed.
        any_of: Option<Vec<AccessScheme>> as Option<Filled<AccessScheme>>,
        /// Patterns of paths that are open to everyone, as in rules but with the path as the client sends it, in its
        /// canonical spelling. Default: no path.
        except: Option<Vec<Glob>> as Option<Filled<CanonicalGlob>>,
    }
}

section! {
    /// URLs and cookies that carry a signature of the edge's operator.
    pub struct SignedPolicy {
        /// The keys by their names, each as {env: NAME} or {file: PATH}. A signature by any of them is accepted.
        keys: Vec<KeyEntry> as KeyEntries,
    }
}

/// The error about a field that the scheme forward does not have.
const LOGIN: &str = "unknown field: the pages for the login are a second site, with the server as its origin and their \
                     folder as its path, such as origin: http://oauth2-proxy:4180 and path: /oauth2";

/// A way in which a request shows that its client may read the site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessScheme {
    /// The client's address is in one of these networks.
    Address(Vec<Network>),
    /// The URL or a cookie has a valid signature.
    Signed(SignedPolicy),
    /// The request has the name and the password of a user.
    Basic(BasicPolicy),
    /// The request has a valid token of an issuer.
    Jwt(JwtPolicy),
    /// A server says that the client may read the site.
    Forward(ForwardPolicy),
}

impl AccessScheme {
    /// The names of all schemes.
    pub(in crate::policy) const NAMES: [&str; 5] = ["address", "signed", "basic", "jwt", "forward"];

    const fn name(&self) -> &'static str {
        match self {
            Self::Address(_) => "address",
            Self::Signed(_) => "signed",
            Self::Basic(_) => "basic",
            Self::Jwt(_) => "jwt",
            Self::Forward(_) => "forward",
        }
    }
}

impl Form<Self> for AccessScheme {
    fn read(value: &Value, kind: Kind) -> Result<Self, PolicyError> {
        let mut fields = object(value)?.iter();
        let names = one_of(&Self::NAMES);
        let (Some((name, value)), None) = (fields.next(), fields.next()) else {
            let expected = format!("expected an object with one field: {names}");
            return Err(PolicyError::new("", expected));
        };
        let read = match name.as_str() {
            "address" => Filled::<Network>::read(value, kind).map(Self::Address),
            "signed" => SignedPolicy::read(value, kind).map(Self::Signed),
            "basic" => BasicPolicy::read(value, kind).map(Self::Basic),
            "jwt" => JwtPolicy::read(value, kind).map(Self::Jwt),
            "forward" if value.get("login").is_some() => Err(PolicyError::new("login", LOGIN)),
            "forward" => ForwardPolicy::read(value, kind).map(Self::Forward),
            _ => Err(PolicyError::new(
                "",
                format!("unknown scheme, expected {names}"),
            )),
        };
        read.map_err(|error| error.within(name))
    }
}

/// A list with at least one entry.
pub(in crate::policy) struct Filled<F>(std::marker::PhantomData<F>);

impl<T, F: Form<T>> Form<Vec<T>> for Filled<F> {
    fn read(value: &Value, kind: Kind) -> Result<Vec<T>, PolicyError> {
        let list: Vec<T> = Vec::<F>::read(value, kind)?;
        match list.is_empty() {
            true => Err(PolicyError::new(
                "",
                "an empty list: expected at least one entry",
            )),
            false => Ok(list),
        }
    }
}

/// The rules for the clients of a site. Only requests that satisfy them are answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessPolicy {
    /// Networks from which each client must come; empty for all addresses.
    pub allow: Vec<Network>,
    /// Schemes; a request must satisfy one of them. Empty if none is needed.
    pub any_of: Vec<AccessScheme>,
    except: GlobSet,
    has_exceptions: bool,
}

impl AccessPolicy {
    /// The keys of signed URLs, if the site has signed URLs.
    pub fn signed(&self) -> Option<&SignedPolicy> {
        self.any_of.iter().find_map(|scheme| match scheme {
            AccessScheme::Signed(signed) => Some(signed),
            _ => None,
        })
    }

    /// The users of the scheme Basic, if the site has them.
    pub fn basic(&self) -> Option<&BasicPolicy> {
        self.any_of.iter().find_map(|scheme| match scheme {
            AccessScheme::Basic(basic) => Some(basic),
            _ => None,
        })
    }

    /// The issuer of tokens, if the site accepts tokens.
    pub fn jwt(&self) -> Option<&JwtPolicy> {
        self.any_of.iter().find_map(|scheme| match scheme {
            AccessScheme::Jwt(jwt) => Some(jwt),
            _ => None,
        })
    }

    /// The server that is asked about clients, if the site has one.
    pub fn forward(&self) -> Option<&ForwardPolicy> {
        self.any_of.iter().find_map(|scheme| match scheme {
            AccessScheme::Forward(forward) => Some(forward),
            _ => None,
        })
    }

    /// Whether `Authorization` is for the edge or for a server that it asks. The origin then does not get that header.
    pub fn takes_authorization(&self) -> bool {
        self.basic().is_some() || self.jwt().is_some() || self.forward().is_some()
    }

    /// Whether the cookie of this name is for a server that the edge asks, or has a token. The origin then does not
    /// get the cookie.
    pub fn takes_cookie(&self, name: &[u8]) -> bool {
        let has_session = |forward: &ForwardPolicy| forward.has_cookie(name);
        self.has_token(name) || self.forward().is_some_and(has_session)
    }

    /// Whether the cookie of this name has a token.
    pub fn has_token(&self, name: &[u8]) -> bool {
        let cookie = self.jwt().and_then(|jwt| jwt.cookie.as_ref());
        cookie.is_some_and(|cookie| cookie.as_bytes() == name)
    }

    /// The names of the headers that the origin gets from a server that the edge asks, and from no client.
    pub fn copied_headers(&self) -> &[String] {
        self.forward().map_or(&[], |forward| &forward.copy)
    }

    /// The values of `WWW-Authenticate` for a client without credentials (RFC 9110, 11.6.1), one for each scheme.
    /// `has_token` tells that the client has sent a token that is not valid.
    pub fn challenges(&self, has_token: bool) -> impl Iterator<Item = String> {
        self.any_of.iter().filter_map(move |scheme| match scheme {
            AccessScheme::Basic(basic) => Some(basic.challenge()),
            AccessScheme::Jwt(_) => Some(JwtPolicy::challenge(has_token)),
            AccessScheme::Address(_) | AccessScheme::Signed(_) | AccessScheme::Forward(_) => None,
        })
    }

    /// Whether any path is open to everyone.
    pub const fn has_exceptions(&self) -> bool {
        self.has_exceptions
    }

    /// Whether a canonical path of a client, without its query, is open to everyone.
    pub fn is_open(&self, path: &str) -> bool {
        self.has_exceptions && self.except.first_match(path).is_some()
    }
}

impl AccessSection {
    /// Compiles the section.
    pub(in crate::policy) fn compile(self) -> Result<AccessPolicy, PolicyError> {
        let (allow, any_of) = (
            self.allow.unwrap_or_default(),
            self.any_of.unwrap_or_default(),
        );
        if allow.is_empty() && any_of.is_empty() {
            let expected = "expected allow or any_of: without them nobody could read the site";
            return Err(PolicyError::new("", expected));
        }
        for (index, scheme) in any_of.iter().enumerate() {
            let mut earlier = any_of.iter().take(index);
            if earlier.any(|other| other.name() == scheme.name()) {
                let path = format!("any_of[{index}].{}", scheme.name());
                return Err(PolicyError::new(&path, "expected each scheme once"));
            }
        }
        let except = self.except.unwrap_or_default();
        Ok(AccessPolicy {
            allow,
            any_of,
            has_exceptions: !except.is_empty(),
            except: GlobSet::new(except),
        })
    }
}
