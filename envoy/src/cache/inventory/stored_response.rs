// SPDX-License-Identifier: Apache-2.0
//! The facts about one stored response.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use sluice_core::http::syntax::date;
use sluice_core::key::qualifiers::{SLICE, is_for_headers, qualifiers};
use sluice_core::key::site_of;
use sluice_core::purge::{TAG_FIELDS, tags_in};
use sluice_store::StoredFields;

use super::scan::ScannedFile;

/// The stored responses of one URL.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredResponses {
    /// The responses, ordered by their variants.
    pub stored: Vec<StoredResponse>,
    /// The slices of the object.
    #[serde(default)]
    pub slices: StoredSlices,
    /// Whether the scan of the cache has ended early, so that a response may be missing.
    pub cut: bool,
}

/// The stored slices of an object, of all its versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredSlices {
    /// The number of slices.
    pub count: usize,
    /// The bytes of their bodies.
    pub body_bytes: u64,
}

/// A stored response. Times are in milliseconds since the epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredResponse {
    /// The name of its site; empty if the edge has one site without a name.
    pub site: String,
    /// The authority of its URL.
    pub host: String,
    /// The path of its URL, with the query.
    pub path: String,
    /// The qualifiers that distinguish the response from others of its URL, such as `ae=br`; empty if there are none.
    pub variant: String,
    /// Whether the response is that of a HEAD, without a body.
    pub for_head: bool,
    /// The status of the origin.
    pub status: Option<u16>,
    /// The bytes of its file.
    pub bytes: u64,
    /// The bytes of its body.
    pub body_bytes: u64,
    /// The time at which it was stored or last validated.
    pub stored_at_ms: Option<u64>,
    /// The time of its last use: a read from the disk, or a write. Copies in the memory of workers are used without
    /// a read from the disk.
    pub used_at_ms: u64,
    /// The time until which it is fresh. `None`: each use validates it.
    pub fresh_until_ms: Option<u64>,
    /// The time until which it is served without a question to the origin, fresh or stale.
    pub served_until_ms: Option<u64>,
    /// The number of the newest purge at the time of its request; 0 if there was none.
    pub purge: u64,
    /// The entity tag of the origin.
    pub etag: Option<String>,
    /// The `Content-Type`.
    pub content_type: Option<String>,
    /// The surrogate keys.
    pub surrogate_keys: Vec<String>,
}

impl StoredResponse {
    /// The facts in the head of `file`.
    pub fn of(file: &ScannedFile<'_>) -> Self {
        let head = &file.head;
        let fields = StoredFields::of(head.headers.iter().copied());
        let entry = fields.entry();
        let validator = fields.validator();
        let (host, path) = (text(head.key.host), text(head.key.path));
        let key = file.whole_key();
        let date = fields.date().and_then(date::of);
        let date = date.and_then(|date| u64::try_from(date).ok());
        let ttl = entry.map(|entry| entry.lifetime.ttl).filter(|ttl| *ttl > 0);
        let fresh_until = ttl.zip(date).map(|(ttl, date)| date.saturating_add(ttl));
        let site = site_of(&host).to_owned();
        let authority = host.split_once('!').map_or(host.as_str(), |(_, host)| host);
        Self {
            host: authority.to_owned(),
            path: path.split('#').next().unwrap_or_default().to_owned(),
            variant: variant_in(&key),
            for_head: is_for_headers(&path),
            status: entry.map(|entry| entry.status),
            bytes: file.bytes,
            body_bytes: head.body_bytes,
            stored_at_ms: head.received.map(epoch_millis),
            used_at_ms: epoch_millis(file.used),
            fresh_until_ms: fresh_until.map(|seconds| seconds.saturating_mul(1_000)),
            served_until_ms: entry.map(|entry| fields.served_for(&entry, 0)),
            purge: entry.map_or(0, |entry| entry.purge),
            etag: validator
                .and_then(|validator| validator.etag)
                .map(|etag| text(etag.bytes())),
            content_type: file.header("content-type").next(),
            surrogate_keys: surrogate_keys(file),
            site,
        }
    }
}

impl ScannedFile<'_> {
    /// The whole key of the response, which its key in the store may lack.
    fn whole_key(&self) -> String {
        let fields = StoredFields::of(self.head.headers.iter().copied());
        let key = self.head.key;
        fields.entry().map_or_else(
            || text(key.host) + &text(key.path),
            |entry| entry.key.to_owned(),
        )
    }

    /// Whether the response is a slice of an object.
    pub fn is_slice(&self) -> bool {
        qualifiers(&self.whole_key()).any(|(name, _)| name == SLICE)
    }

    /// The values of a header, whose name is in lower case.
    pub fn header(&self, wanted: &str) -> impl Iterator<Item = String> {
        let headers = self.head.headers.iter();
        let values = headers.filter(move |(name, _)| *name == wanted.as_bytes());
        values.map(|(_, value)| text(value))
    }
}

fn surrogate_keys(file: &ScannedFile<'_>) -> Vec<String> {
    let values = TAG_FIELDS.iter().flat_map(|name| file.header(name));
    let keys = values.flat_map(|value| tags_in(&value).map(str::to_owned).collect::<Vec<_>>());
    keys.collect()
}

/// The qualifiers of a key, except the number of a purge and the mark of a HEAD.
fn variant_in(key: &str) -> String {
    let list = key.split_once('#').map_or("", |(_, list)| list);
    let names_a_variant = |pair: &&str| pair.starts_with("ae=") || pair.starts_with("vary-");
    let pairs: Vec<_> = list.split(';').filter(names_a_variant).collect();
    pairs.join(";")
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(super) fn epoch_millis(time: SystemTime) -> u64 {
    let since_epoch = time.duration_since(SystemTime::UNIX_EPOCH);
    let millis = since_epoch.as_ref().map_or(0, Duration::as_millis);
    millis.try_into().unwrap_or(u64::MAX)
}
