// SPDX-License-Identifier: Apache-2.0
//! The policy as operators write it, and the rules between its sections.

use std::rc::Rc;

use serde_json::Value;

use super::access::AccessSection;
use super::configuration;
use super::purge::{DeclaredPurges, PurgePolicy};
use super::{
    CoalescePolicy, EdgePolicy, HotPolicy, Limits, PeersPolicy, Policy, SiteScope, VaryPolicy,
};
use crate::policy::forms::error::PolicyError;
use crate::policy::forms::form::{Form, Kind, object, one_of};
use crate::policy::forms::names::NamePattern;
use crate::policy::forms::section::section;
use crate::policy::sections::cache::{Cache, Store};
use crate::policy::sections::compression::CompressionPolicy;
use crate::policy::sections::key::KeyPolicy;
use crate::policy::sections::origin::OriginSection;
use crate::policy::sections::redirects::{self, Redirect};
use crate::policy::sections::request::{RequestPolicy, check_headers};
use crate::policy::sections::response::ResponsePolicy;
use crate::policy::sections::rules;
use crate::policy::sections::rules::RuleSection;
use crate::policy::sections::website::WebsitePolicy;

section! {
    /// The policy of Sluice's filter: what is cached, under which key, for how long, and how requests
    /// for one key share a trip to the origin.
    pub(super) struct Document {
        /// Origin behind the edge: a bucket, or any HTTP server.
        origin: OriginSection,
        /// Which clients the site answers.
        access: Option<AccessSection>,
        /// The store of responses.
        store: Store,
        /// Small objects in each worker's own memory, in front of the store.
        hot: HotPolicy,
        /// How the cache key and the origin's path are made from a request's URL.
        key: KeyPolicy,
        /// Which parts of a request the origin gets.
        request: RequestPolicy,
        /// How responses are changed on their way to clients.
        response: ResponsePolicy,
        /// A bucket as a web site, and cross-origin resource sharing for any origin.
        website: WebsitePolicy,
        /// Which responses are stored, and for how long.
        cache: Cache,
        /// Which responses are compressed on their way into the cache, once for each coding.
        compression: CompressionPolicy,
        /// How the key distinguishes responses of an HTTP origin that vary with request headers.
        vary: VaryPolicy,
        /// How responses for some paths are cached and shown. The first rule that matches counts.
        rules: Vec<RuleSection> = Vec::new(),
        /// URLs that have moved. The first one that matches counts.
        redirects: Vec<Redirect> = Vec::new(),
        /// How requests for one key share a trip to the origin.
        coalesce: CoalescePolicy,
        /// Authorization of purges, and the purges by former processes.
        purge: PurgePolicy,
        /// Limits of the filter's memory, and of fills that no client reads.
        limits: Limits,
        /// The edges that are one cache together with this one.
        peers: PeersPolicy,
    }
}

impl Policy {
    /// Reads the policy's document for an edge with one site, from JSON or an encoded `google.protobuf.Struct`.
    ///
    /// # Errors
    /// The field, its value and the accepted values.
    pub fn parse(document: &[u8]) -> Result<Self, PolicyError> {
        Self::of_edge(&configuration::read(document)?)
    }

    /// Reads the policy's document for an edge with one site, which has no name.
    pub(crate) fn of_edge(value: &Value) -> Result<Self, PolicyError> {
        let kind = Kind::of(value);
        let document = Document::read(value, kind)?;
        let edge = Rc::new(document.edge()?);
        edge.purge.check(&[])?;
        document.compile(kind, edge, SiteScope::default())
    }

    /// Reads a site's part of the policy.
    pub(crate) fn of_site(
        value: &Value,
        edge: &Rc<EdgePolicy>,
        site: SiteScope,
    ) -> Result<Self, PolicyError> {
        check_is_of_site(value)?;
        let kind = Kind::of(value);
        let policy = Document::read(value, kind)?.compile(kind, Rc::clone(edge), site)?;
        if kind == Kind::Bucket && policy.key.host {
            let message = "true: expected false for the bucket of a site: a host of its own makes a site of its own";
            return Err(PolicyError::new("key.host", message));
        }
        Ok(policy)
    }
}

impl EdgePolicy {
    /// Reads the edge's part of the policy.
    pub(crate) fn read(value: &Value) -> Result<Self, PolicyError> {
        for (name, section) in object(value)? {
            let fields = section.as_object().into_iter().flatten();
            let odd = fields.map(|(field, _)| field).find(|field| *field != LEASE);
            match (name.as_str(), odd) {
                (COALESCE, Some(field)) => {
                    let path = format!("{COALESCE}.{field}");
                    return Err(PolicyError::new(&path, "belongs to the policy of a site"));
                }
                (COALESCE, None) => {}
                (name, _) if OF_EDGE.contains(&name) => {}
                (name, _) => {
                    let expected = one_of(&[&OF_EDGE[..], &["coalesce.lease"]].concat());
                    return Err(PolicyError::new(
                        name,
                        format!("no part of the edge's, expected {expected}"),
                    ));
                }
            }
        }
        let mut document = object(value)?.clone();
        // The edge's sections are the same for all kinds.
        document.insert("origin".to_owned(), serde_json::json!({"kind": "http"}));
        Document::read(&document.into(), Kind::Http)?.edge()
    }
}

/// The sections that belong to the whole edge, whatever sites it serves.
const OF_EDGE: [&str; 5] = ["store", "hot", "purge", "limits", "peers"];
/// The section that has one field for the whole edge.
const COALESCE: &str = "coalesce";
/// This field.
const LEASE: &str = "lease";

/// Refuses sections of the whole edge in a site's part of the policy.
fn check_is_of_site(value: &Value) -> Result<(), PolicyError> {
    let sections = object(value)?;
    let section = OF_EDGE
        .into_iter()
        .find(|name| sections.contains_key(*name));
    let lease = sections.get(COALESCE).and_then(|fields| fields.get(LEASE));
    match section.or(lease.map(|_| "coalesce.lease")) {
        Some(path) => Err(PolicyError::new(
            path,
            "belongs to the edge's part, which is one for all sites",
        )),
        None => Ok(()),
    }
}

impl Document {
    /// The edge's part.
    fn edge(&self) -> Result<EdgePolicy, PolicyError> {
        let max_object_bytes = self.store.max_object_bytes;
        Ok(EdgePolicy {
            max_object_bytes,
            slices: self.store.slices.compile(max_object_bytes)?,
            hot: self.hot,
            purge: self.purge.clone(),
            limits: self.limits,
            peers: self.peers,
            lease: self.coalesce.lease,
        })
    }

    fn compile(
        mut self,
        kind: Kind,
        edge: Rc<EdgePolicy>,
        site: SiteScope,
    ) -> Result<Policy, PolicyError> {
        let key = self
            .key
            .for_kind(kind)
            .map_err(|error| error.within("key"))?;
        let origin = self.origin.compile(&key)?;
        let access = self.access.map(AccessSection::compile).transpose();
        let access = access.map_err(|error| error.within("access"))?;
        let cache = self.cache.compile(edge.max_object_bytes);
        let cache = cache.map_err(|error| error.within("cache"))?;
        let rules = rules::compile(self.rules, &cache.default)?;
        redirects::check(&self.redirects)?;
        let index_document = key.index_document.as_deref();
        self.website
            .check(kind, index_document)
            .map_err(|error| error.within("website"))?;
        self.response.complete(kind, self.website.cors.is_some());
        let set = self.request.set_headers.iter();
        let set = set.map(|header| header.name.clone());
        self.response.ignore_vary.extend(set);
        NamePattern::sort(&mut self.request.credential_headers);
        let declared = DeclaredPurges::of_site(&edge.purge.declared, &site.name, kind)?;
        let mut policy = Policy {
            edge,
            site,
            origin,
            key,
            request: self.request,
            response: self.response,
            website: self.website,
            cache,
            compression: self.compression,
            vary: self.vary,
            rules,
            redirects: self.redirects,
            coalesce: self.coalesce,
            declared,
            access,
        };
        check_headers(&policy)?;
        // The key does not depend on the order of the headers in the document.
        policy.key.headers.sort_unstable();
        policy.key.headers.dedup();
        Ok(policy)
    }
}
