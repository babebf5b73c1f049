// SPDX-License-Identifier: Apache-2.0
//! Substitutes for missing objects and other errors of a web site: a redirect to a directory, the document of an
//! application that routes in the browser, or a page of the site.

pub mod cors;
pub mod error_page;
pub mod listing;
pub mod media_type;
pub mod redirect;

use crate::http::syntax::field_value::FieldValue;
use crate::http::url::escaping::escape_key;
use crate::key::{CanonicalTarget, Target, is_stripped_path};
use crate::policy::{ErrorDocument, FallbackFor, Origin, Policy, WebsitePolicy};
use crate::website::listing::{Selection, listing_target};

/// A substitute for a missing object, in the order in which the filter looks for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Substitute {
    /// A redirect to the path with a slash, if this directory has an index document.
    Directory,
    /// A redirect to the path with a slash, if this directory has a listing.
    ListedDirectory,
    /// The listing of the directory, with status 200.
    Listing,
    /// The fallback document, with status 200.
    Fallback,
    /// The error document of the origin's status, with that status or the one that the policy names.
    Error,
}

impl Substitute {
    const ALL: [Self; 5] = [
        Self::Directory,
        Self::ListedDirectory,
        Self::Listing,
        Self::Fallback,
        Self::Error,
    ];

    /// A token for `Cache-Status`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Directory | Self::ListedDirectory => "directory",
            Self::Listing => "listing",
            Self::Fallback => "fallback",
            Self::Error => "error-document",
        }
    }
}

/// Status of a redirect to a directory.
pub const DIRECTORY_STATUS: u16 = 302;

/// Facts of a request for an object of a site that are needed if the object is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingObjectVisit {
    /// Value of `Location` if the path is a directory.
    location: Option<String>,
    /// The page of the listing that the client selects, if the path ends in a slash.
    selection: Option<Selection>,
    falls_back: bool,
}

impl MissingObjectVisit {
    /// Gathers the facts of a client's request with `path` and `accept`; `None` if the policy has no substitutes.
    pub fn of<'a>(
        policy: &Policy,
        target: &CanonicalTarget,
        path: &[u8],
        accept: impl FnOnce() -> Option<FieldValue<'a>>,
    ) -> Option<Self> {
        let site = &policy.website;
        if !site.has_substitutes() || !policy.origin.is_bucket() {
            return None;
        }
        Some(Self {
            location: site
                .redirect_directories
                .then(|| location(policy, target, path))
                .flatten(),
            selection: (site.listing.is_some() && ends_in_slash(path))
                .then(|| Selection::of_path(path))
                .flatten(),
            falls_back: match site.fallback_for {
                FallbackFor::All => true,
                FallbackFor::Navigation => accept().is_some_and(wants_a_page),
            },
        })
    }

    /// The substitute to look for after `tried`, if the origin has answered with `status`.
    pub fn next(
        &self,
        site: &WebsitePolicy,
        status: u16,
        tried: Option<Substitute>,
    ) -> Option<Substitute> {
        let missing = site.is_missing(status);
        let applies = |substitute: &Substitute| match substitute {
            Substitute::Directory => missing && self.location.is_some(),
            Substitute::ListedDirectory => {
                missing && self.location.is_some() && site.listing.is_some()
            }
            Substitute::Listing => missing && self.selection.is_some(),
            Substitute::Fallback => missing && self.falls_back && site.fallback_document.is_some(),
            Substitute::Error => site.error_document_of(status).is_some(),
        };
        let skipped = tried.map_or(0, |tried| tried as usize + 1);
        Substitute::ALL.into_iter().skip(skipped).find(applies)
    }

    /// The substitute to look for after `tried`, and its object, if the origin has answered with `status` for `object`.
    pub fn next_document(
        &self,
        policy: &Policy,
        object: &CanonicalTarget,
        status: u16,
        mut tried: Option<Substitute>,
    ) -> Option<(Substitute, CanonicalTarget)> {
        loop {
            let substitute = self.next(&policy.website, status, tried)?;
            let document = match substitute {
                Substitute::Listing => self.listing(policy, object),
                _ => document(policy, object, substitute, status),
            };
            if let Some(document) = document {
                return Some((substitute, document));
            }
            tried = Some(substitute);
        }
    }

    /// The page of the listing in the place of an index document.
    fn listing(&self, policy: &Policy, index: &CanonicalTarget) -> Option<CanonicalTarget> {
        listing_target(policy, index, self.selection.as_ref()?)
    }

    /// Location of the directory, if the path may be one.
    pub fn location(&self) -> Option<&str> {
        self.location.as_deref()
    }
}

impl WebsitePolicy {
    /// Whether the policy has any substitute for missing objects.
    pub fn has_substitutes(&self) -> bool {
        self.redirect_directories
            || self.listing.is_some()
            || self.fallback_document.is_some()
            || self.error_document.is_some()
            || !self.error_documents.is_empty()
    }

    /// The name of the error document for the origin's `status`.
    pub fn error_document_of(&self, status: u16) -> Option<&str> {
        if let Some(entry) = self.error_documents_entry(status) {
            return Some(&entry.document);
        }
        let missing = self.error_document.as_deref();
        missing.filter(|_| self.is_missing(status))
    }

    /// The status of a response with that substitute, after the origin has answered with `status`.
    pub fn substitute_status(&self, substitute: Substitute, status: u16) -> u16 {
        match substitute {
            Substitute::Directory | Substitute::ListedDirectory => DIRECTORY_STATUS,
            Substitute::Listing | Substitute::Fallback => 200,
            Substitute::Error => {
                let entry = self.error_documents_entry(status);
                entry.and_then(|entry| entry.status).unwrap_or(status)
            }
        }
    }

    fn error_documents_entry(&self, status: u16) -> Option<&ErrorDocument> {
        let mut entries = self.error_documents.iter();
        entries.find(|entry| entry.statuses.contains(&status))
    }

    /// Whether the bucket reports a missing object with that status.
    pub fn is_missing(&self, status: u16) -> bool {
        self.missing_statuses.contains(&status)
    }

    /// Whether the response to a client for a missing object depends on the client's `Accept`.
    pub fn varies_by_accept(&self) -> bool {
        self.fallback_document.is_some() && self.fallback_for == FallbackFor::Navigation
    }
}

/// Whether a path as it was sent ends in a slash, apart from its query.
fn ends_in_slash(path: &[u8]) -> bool {
    let path = path.split(|&byte| byte == b'?').next();
    path.is_some_and(|path| path.ends_with(b"/"))
}

/// The object that becomes the substitute, or whose presence decides, after the origin has answered with `status`.
/// `None` if this is the missing object itself.
pub fn document(
    policy: &Policy,
    missing: &CanonicalTarget,
    substitute: Substitute,
    status: u16,
) -> Option<CanonicalTarget> {
    let Origin::Bucket(bucket) = &policy.origin else {
        return None;
    };
    let below_prefix = |name: &str| format!("{}/{}", bucket.path_prefix, escape_key(name));
    let path = match substitute {
        Substitute::Directory => {
            let index = policy.key.index_document.as_deref()?;
            format!("{}/{}", without_query(missing), escape_key(index))
        }
        Substitute::ListedDirectory => {
            let index = document(policy, missing, Substitute::Directory, status)?;
            return listing_target(policy, &index, &Selection::FIRST);
        }
        Substitute::Listing => return listing_target(policy, missing, &Selection::FIRST),
        Substitute::Fallback => below_prefix(policy.website.fallback_document.as_deref()?),
        Substitute::Error => below_prefix(policy.website.error_document_of(status)?),
    };
    let document = missing.sibling(&path);
    (document.cache_key() != missing.cache_key()).then_some(document)
}

fn without_query(target: &CanonicalTarget) -> &str {
    let path = target.origin_path();
    path.split_once('?').map_or(path, |(path, _)| path)
}

/// The client's path with a slash, and the unchanged query.
fn location(policy: &Policy, target: &CanonicalTarget, sent: &[u8]) -> Option<String> {
    let path = policy.client_path(target.origin_path());
    let name = path.rsplit('/').next()?;
    let index = policy.key.index_document.as_deref().map(escape_key)?;
    // A browser would take two slashes for the beginning of a host.
    if name.is_empty() || name == index || path.starts_with("//") {
        return None;
    }
    let query = query_of(sent);
    Some(format!("{}{path}/{query}", policy.key.strip_prefix))
}

/// The query of a path as it was sent, with its `?`; empty if it is not valid in a URL.
fn query_of(sent: &[u8]) -> &str {
    let query = sent.iter().position(|&byte| byte == b'?');
    let query = query.and_then(|at| std::str::from_utf8(sent.get(at..)?).ok());
    let visible = |query: &&str| query.bytes().all(|byte| matches!(byte, b'!'..=b'~'));
    query.filter(visible).unwrap_or_default()
}

/// Returns the location of the root directory of a site below a prefix, if `target` is this prefix without its slash
/// and the policy redirects to directories.
pub fn root_location(policy: &Policy, target: &Target<'_>) -> Option<String> {
    let redirects = policy.website.redirect_directories
        && policy.key.index_document.is_some()
        && policy.origin.is_bucket();
    let is_root = redirects && is_stripped_path(policy, target);
    is_root.then(|| format!("{}/{}", policy.key.strip_prefix, query_of(target.path)))
}

/// Whether a browser navigates to a page. For the resources of a page it sends other media types in `Accept`.
fn wants_a_page(accept: FieldValue<'_>) -> bool {
    accept.members().flatten().any(|member| {
        let mut parts = member.split(';').map(str::trim);
        let html = parts
            .next()
            .is_some_and(|media_type| media_type.eq_ignore_ascii_case("text/html"));
        let refused = |part: &str| {
            let weight = part.strip_prefix("q=").or_else(|| part.strip_prefix("Q="));
            weight.is_some_and(|weight| weight.bytes().all(|byte| matches!(byte, b'0' | b'.')))
        };
        html && !parts.any(refused)
    })
}
