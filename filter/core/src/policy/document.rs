// SPDX-License-Identifier: Apache-2.0
//! The policy as people write it, and what its sections mean for each other.

use serde_json::Value;

use super::cache::{Cache, Store};
use super::compression::CompressionPolicy;
use super::error::PolicyError;
use super::form::{Form, Kind};
use super::key::KeyPolicy;
use super::names::NamePattern;
use super::origin::OriginSection;
use super::purge::PurgePolicy;
use super::request::{RequestPolicy, check_headers};
use super::response::ResponsePolicy;
use super::rules::{self, RuleSection};
use super::section::section;
use super::website::WebsitePolicy;
use super::{CoalescePolicy, HotPolicy, Limits, Policy, VaryPolicy};

section! {
    /// The policy of Sluice's filter: what is cached, under which key, for how long, and how requests
    /// for one key share a trip to the origin.
    pub(super) struct Document {
        /// What stands behind the edge.
        origin: OriginSection,
        /// The store of responses.
        store: Store,
        /// Small objects in each worker's own memory, before the store.
        hot: HotPolicy,
        /// How the cache key and the origin's path are made of a request's URL.
        key: KeyPolicy,
        /// Which parts of a request go on to the origin.
        request: RequestPolicy,
        /// How responses are changed on their way to clients.
        response: ResponsePolicy,
        /// A bucket as a web site, and cross-origin resource sharing for any origin.
        website: WebsitePolicy,
        /// What is stored, and for how long.
        cache: Cache,
        /// Which responses are compressed on their way into the cache, once for each coding.
        compression: CompressionPolicy,
        /// How responses of an HTTP origin that vary with request headers are told apart.
        vary: VaryPolicy,
        /// How responses for some paths are cached and shown; the first rule that fits counts.
        rules: Vec<RuleSection> = Vec::new(),
        /// How requests for one key share a trip to the origin.
        coalesce: CoalescePolicy,
        /// How purges are authorized, and what was purged before.
        purge: PurgePolicy,
        /// Bounds on the filter's memory.
        limits: Limits,
    }
}

impl Policy {
    /// Reads the policy's document from JSON.
    pub fn parse(document: &[u8]) -> Result<Self, PolicyError> {
        let value: Value = serde_json::from_slice(document)
            .map_err(|error| PolicyError::new("", format!("no JSON document: {error}")))?;
        let kind = Kind::of(&value);
        Document::read(&value, kind)?.compile(kind)
    }
}

impl Document {
    fn compile(mut self, kind: Kind) -> Result<Policy, PolicyError> {
        let key = self
            .key
            .for_kind(kind)
            .map_err(|error| error.within("key"))?;
        let origin = self.origin.compile(&key)?;
        let cache = self.cache.compile(self.store.max_object_bytes);
        let rules = rules::compile(self.rules, &cache.default)?;
        let index_document = key.index_document.as_deref();
        self.website
            .check(kind, index_document)
            .map_err(|error| error.within("website"))?;
        self.response.complete(kind, self.website.cors.is_some());
        NamePattern::sort(&mut self.request.credential_headers);
        let mut policy = Policy {
            hot: self.hot,
            origin,
            key,
            request: self.request,
            response: self.response,
            website: self.website,
            cache,
            compression: self.compression,
            vary: self.vary,
            rules,
            coalesce: self.coalesce,
            purge: self.purge,
            limits: self.limits,
        };
        check_headers(&policy)?;
        // One key for one set of headers, in whatever order the document has them.
        policy.key.headers.sort_unstable();
        policy.key.headers.dedup();
        Ok(policy)
    }
}
