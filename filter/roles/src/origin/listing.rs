// SPDX-License-Identifier: Apache-2.0
//! A page of a listing: the request to the bucket, and the page that takes the place of the bucket's answer in front of
//! the store.

use sluice_core::host::HostError;
use sluice_core::metrics::Metric;
use sluice_core::website::listing::{
    BucketList, ListedDirectory, MAX_LIST_BYTES, Page, SECURITY_POLICY, Selection,
};

use crate::request::policy::NumberedPolicy;
use crate::worker::metrics::Metrics;
use sluice_core::internal_headers::COMPRESS_HEADER;
use sluice_host::headers::Headers;
use sluice_host::{self as host, Host, Map};

/// The error for an answer that cannot become a page.
const NO_PAGE: HostError = HostError { status: 2 };

/// The status for an answer that cannot become a page, if its headers show that.
const BAD_GATEWAY: u16 = 502;

/// Fields of the bucket's answer that say nothing about the page.
const OF_THE_ANSWER: [&str; 8] = [
    "accept-ranges",
    "cache-control",
    "content-encoding",
    "content-length",
    "etag",
    "expires",
    "last-modified",
    "vary",
];

/// A page of a listing that is requested from the bucket.
#[derive(Debug)]
pub struct RequestedListing {
    /// The path of the index document towards the bucket.
    index: String,
    selection: Selection,
    question: String,
    prefix: String,
    ttl: u64,
    answer: Answer,
}

/// The bucket's answer so far.
#[derive(Debug)]
enum Answer {
    /// None so far, or an error whose body passes.
    Passing,
    /// The part that has arrived. The store has not got anything of it.
    Collected(Vec<u8>),
    /// The page has taken its place.
    Replaced,
}

impl RequestedListing {
    /// The page that a fetch under `cache_key` requests, if it is one of a listing.
    pub fn of(policy: &NumberedPolicy, cache_key: &str) -> Option<Self> {
        let selection = Selection::of_key(cache_key)?;
        let index = cache_key
            .find('/')
            .and_then(|start| cache_key.get(start..))?;
        let directory = ListedDirectory::of_index(&policy.policy, index)?;
        Some(Self {
            question: directory.question(&selection),
            prefix: directory.key_prefix(),
            ttl: directory.listing.ttl.as_secs(),
            index: index.to_owned(),
            selection,
            answer: Answer::Passing,
        })
    }

    /// How long the page is fresh at most, in seconds.
    pub const fn ttl(&self) -> u64 {
        self.ttl
    }

    /// Turns the request for an index document into the one for its directory's list, which is not compressed.
    pub fn ask(&self, host: &dyn Host) -> host::Result<()> {
        host.remove_header(Map::Request, COMPRESS_HEADER)?;
        host.set_header(Map::Request, ":path", &self.question)
    }

    /// Turns the headers of an answer with this `status` into those of the page. `ends` says that no body follows.
    pub fn receive(
        &mut self,
        host: &dyn Host,
        headers: Headers,
        status: u16,
        ends: bool,
    ) -> host::Result<(Headers, u16)> {
        if !(200..300).contains(&status) {
            return Ok((headers, status));
        }
        if status != 200 || ends || headers.has("content-encoding") {
            host.set_header(Map::Response, ":status", BAD_GATEWAY.to_string())?;
            return Ok((host.headers(Map::Response)?, BAD_GATEWAY));
        }
        for name in OF_THE_ANSWER.iter().filter(|name| headers.has(name)) {
            host.remove_header(Map::Response, name)?;
        }
        let cache_control = format!("max-age={}", self.ttl);
        for (name, value) in [
            ("content-type", self.selection.format.media_type()),
            ("cache-control", &cache_control),
            ("content-security-policy", SECURITY_POLICY),
            ("x-content-type-options", "nosniff"),
        ] {
            host.set_header(Map::Response, name, value)?;
        }
        self.answer = Answer::Collected(Vec::new());
        Ok((host.headers(Map::Response)?, status))
    }

    /// Whether the page has still to take the place of the answer.
    pub const fn awaits_page(&self) -> bool {
        matches!(self.answer, Answer::Collected(_))
    }

    /// Handles a part of `size` bytes of the answer. Its last part becomes the page.
    pub fn pass(
        &mut self,
        host: &dyn Host,
        metrics: &Metrics,
        policy: &NumberedPolicy,
        size: usize,
        ends: bool,
    ) -> host::Result<()> {
        let Answer::Collected(answer) = &mut self.answer else {
            return Ok(());
        };
        if answer.len().saturating_add(size) > MAX_LIST_BYTES {
            metrics.warn(|| self.warning("it is larger than 4 MiB"));
            return Err(NO_PAGE);
        }
        if size > 0 {
            answer.extend_from_slice(&host.response_body(0..size)?);
        }
        if !ends {
            return host.drop_response_body(size);
        }
        let list = BucketList::parse(answer, &self.prefix);
        let list = list.map_err(|error| {
            metrics.warn(|| self.warning(error.message()));
            NO_PAGE
        })?;
        let directory = ListedDirectory::of_index(&policy.policy, &self.index).ok_or(NO_PAGE)?;
        let page = Page::of(&directory, &self.selection, &list);
        metrics.add_of(policy, Metric::ListingNamesLeftOut, page.left_out);
        self.answer = Answer::Replaced;
        match page.body.is_empty() {
            true => host.drop_response_body(size),
            false => host.replace_response_body(size, page.body.as_bytes()),
        }
    }

    /// The line in the log about an answer that cannot become a page.
    fn warning(&self, reason: &str) -> String {
        format!(
            "sluice: the bucket's answer for the listing of {:?} cannot be read: {reason}",
            self.prefix
        )
    }
}
