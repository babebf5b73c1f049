// SPDX-License-Identifier: Apache-2.0
//! The signatures in a request, and the request without them.

use std::rc::Rc;

use super::parameters::{MalformedParameters, PARAMETER_PREFIX, SignatureParameters};
use crate::key::decoded_name;

/// The name of the cookie with the parameters of a signature.
pub const COOKIE: &str = "sluice-signed";
/// The most cookies of one request that are read. Browsers send the cookie with the longest path first.
const MAX_COOKIES: usize = 4;
/// The text in place of a parameter's value in logs.
const HIDDEN: &str = "\u{2026}";

/// The parameters of one signature, or the reason why they are none.
pub type ReadParameters = Result<SignatureParameters, MalformedParameters>;

/// The signatures in a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PresentedSignatures {
    /// The path, if its query has a signature.
    pub path: Option<Rc<SignedPath>>,
    /// Whether an earlier request for the same link has had its signature verified.
    pub is_verified: bool,
    /// The signatures in cookies.
    pub cookies: Vec<ReadParameters>,
}

impl PresentedSignatures {
    /// The path with the signature that has admitted a request by the scheme `signed`; `None` if that may be a
    /// signature in a cookie.
    pub fn admitting_path(&self) -> Option<&Rc<SignedPath>> {
        self.path.as_ref().filter(|_| self.cookies.is_empty())
    }
}

/// A path whose query has parameters of a signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedPath {
    /// The path with the rest of the query. The bytes of all other parameters are unchanged.
    pub rest: Vec<u8>,
    /// The path with the whole query for logs, without the values of the parameters of the signature.
    pub shown: Vec<u8>,
    /// The signature.
    pub signature: ReadParameters,
}

impl SignedPath {
    /// Finds the parameters of a signature in a path with its query: their decoded names begin with
    /// [`PARAMETER_PREFIX`], in any case. `None` if there are none.
    pub fn of(path: &[u8]) -> Option<Self> {
        let (path, query) = split_query(path)?;
        let mut own = Vec::new();
        let (mut others, mut shown) = (Vec::new(), [path, b"?"].concat());
        for (number, part) in query.split(is_separator).enumerate() {
            if number > 0 {
                shown.push(b'&');
            }
            if is_of_signature(part) {
                for shown_part in [name_of(part), b"=", HIDDEN.as_bytes()] {
                    shown.extend_from_slice(shown_part);
                }
                own.push(part);
            } else {
                shown.extend_from_slice(part);
                others.push(part);
            }
        }
        if own.is_empty() {
            return None;
        }
        let mut rest = path.to_vec();
        // An empty query is the client's only if nothing was removed from it.
        if others.iter().any(|part| !part.is_empty()) {
            rest.push(b'?');
            rest.extend(others.join(&b'&'));
        }
        Some(Self {
            rest,
            shown,
            signature: SignatureParameters::parse(own),
        })
    }
}

/// The cookies of a request that has at least one cookie for the edge, or for a server that the edge asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedCookies {
    /// The value of `Cookie` with all other cookies, each with its bytes; empty if there is no other.
    pub rest: Vec<u8>,
    /// The signatures. A signature in a cookie is for a prefix.
    pub signatures: Vec<ReadParameters>,
}

impl SignedCookies {
    /// Finds the cookies with signatures in the lines of `Cookie`, and the cookies with a name that `is_taken`. `None` if there are
    /// none.
    pub fn of<'a>(
        lines: impl Iterator<Item = &'a [u8]> + Clone,
        is_taken: &dyn Fn(&[u8]) -> bool,
    ) -> Option<Self> {
        let cookies = lines.flat_map(|line| line.split(|&byte| byte == b';'));
        let cookies = cookies.map(<[u8]>::trim_ascii);
        let is_other = |cookie: &&[u8]| own_value(cookie).is_none() && !is_taken(name_of(cookie));
        if cookies.clone().all(|cookie| is_other(&cookie)) {
            return None;
        }
        let own = cookies.clone().filter_map(own_value);
        let signatures = own.take(MAX_COOKIES).map(|value| {
            let read = SignatureParameters::parse(value.split(is_separator));
            read.and_then(|read| match read.prefix {
                Some(_) => Ok(read),
                None => Err(MalformedParameters),
            })
        });
        let signatures = signatures.collect();
        let others = cookies.filter(|cookie| is_other(cookie) && !cookie.is_empty());
        let rest = others.collect::<Vec<_>>().join(&b"; "[..]);
        Some(Self { rest, signatures })
    }
}

/// The value of a cookie, if it is [`COOKIE`].
fn own_value(cookie: &[u8]) -> Option<&[u8]> {
    let at = cookie.iter().position(|&byte| byte == b'=')?;
    let (name, value) = cookie.split_at_checked(at)?;
    (name.trim_ascii() == COOKIE.as_bytes())
        .then(|| value.get(1..).unwrap_or_default().trim_ascii())
}

fn split_query(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = path.iter().position(|&byte| byte == b'?')?;
    Some((path.get(..at)?, path.get(at + 1..)?))
}

const fn is_separator(byte: &u8) -> bool {
    *byte == b'&'
}

fn name_of(part: &[u8]) -> &[u8] {
    let name = part.split(|&byte| byte == b'=').next();
    name.unwrap_or_default().trim_ascii()
}

fn is_of_signature(part: &[u8]) -> bool {
    let name = decoded_name(part);
    let start = name.get(..PARAMETER_PREFIX.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(PARAMETER_PREFIX.as_bytes()))
}
