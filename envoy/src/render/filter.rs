// SPDX-License-Identifier: Apache-2.0
//! The configuration of the filter: the policies of all sites, and the parts that they share.

use ring::digest::{Context, SHA256};
use serde_json::{Map, Value, json};

use super::Run;
use super::access_secrets;
use super::certificates::NamedCertificate;
use super::policy_document::{PolicyDocument, edge_sections, fill};
use super::server::Server;
use crate::settings::Settings;
use crate::sites::{Site, Sites};

/// The configuration of the filter, and facts that the templates need from it.
#[derive(Clone, Debug)]
pub struct FilterConfiguration {
    /// The document that the filter reads.
    pub json: Value,
    /// The policies of the sites, in their order.
    pub policies: Vec<PolicyDocument>,
    /// Whether there is a token for purges.
    pub has_purge_token: bool,
    /// Whether large objects are stored in slices.
    pub has_slices: bool,
    /// The position of the site whose origin has the purge feed.
    pub feed_site: Option<usize>,
    /// Bound on the variants of a URL in the cache.
    pub variants_per_url: usize,
    /// The hash of the policies and the origins. Two edges with the same ones have the same hash.
    pub hash: u64,
}

impl FilterConfiguration {
    /// The configuration for these sites.
    ///
    /// # Errors
    /// A policy is not valid, or contradicts the settings.
    pub fn new(
        settings: &Settings,
        sites: &Sites,
        certificates: &[NamedCertificate],
        run: Run<'_>,
    ) -> anyhow::Result<Self> {
        let edge = edge_sections(&sites.edge, settings)?;
        let policies = sites.sites.iter();
        let policies = policies.map(|site| PolicyDocument::complete(site, &edge, settings));
        let policies = policies.collect::<anyhow::Result<Vec<_>>>()?;
        let mut json = match (sites.sites.as_slice(), policies.as_slice()) {
            ([site], [policy]) if site.name.is_empty() => {
                let mut json = policy.json.clone();
                fill(&mut json, &https_of(site))?;
                json
            }
            (sites, policies) => {
                let both = sites.iter().zip(policies);
                let sites =
                    both.map(|(site, policy)| describe(settings, site, policy, certificates));
                json!({"edge": edge, "sites": sites.collect::<Vec<_>>()})
            }
        };
        // NB: taken in front of the parts that differ between runs.
        let hash = hash_of(&json, sites);
        let part = match json.get_mut("edge") {
            Some(edge) => edge,
            None => &mut json,
        };
        fill(part, &of_run(run))?;
        if let Some(peers) = &settings.peers {
            fill(
                part,
                &json!({"peers": {"secret_sha256": peers.secret.to_hex()}}),
            )?;
        }
        if let Some(secret) = &run.secret {
            access_secrets::seal(&mut json, sites, secret);
        }
        let understood = sluice_core::sites::Sites::parse(json.to_string().as_bytes())?;
        Ok(Self {
            has_purge_token: understood.take_purges(),
            has_slices: understood.edge.slices.is_on(),
            feed_site: understood.feed_site(),
            variants_per_url: understood.edge.limits.variants_per_url,
            hash,
            json,
            policies,
        })
    }
}

impl FilterConfiguration {
    /// Adds the server's name to each site whose server has another name than the site.
    pub fn name_servers(&mut self, servers: &[Server]) {
        let sites = self.json.get_mut("sites").and_then(Value::as_array_mut);
        for (site, server) in sites.into_iter().flatten().zip(servers) {
            if let Some(site) = site.as_object_mut().filter(|_| server.name != server.site) {
                site.insert("server".to_owned(), json!(server.name));
            }
        }
    }
}

/// The first bytes of the SHA-256 of the policies and the origins.
fn hash_of(json: &Value, sites: &Sites) -> u64 {
    let mut hash = Context::new(&SHA256);
    hash.update(json.to_string().as_bytes());
    for site in &sites.sites {
        hash.update(format!("\n{}", site.origin).as_bytes());
    }
    let hash = hash.finish();
    let bytes = hash.as_ref().first_chunk().copied();
    u64::from_be_bytes(bytes.unwrap_or_default())
}

/// The section about HTTPS of a site without a name.
fn https_of(site: &Site) -> Value {
    let mut section = Map::new();
    if site.redirect_to_https {
        section.insert("redirect".to_owned(), json!(true));
    }
    if let Some(hsts) = &site.hsts {
        section.insert("hsts".to_owned(), json!(hsts));
    }
    match section.is_empty() {
        true => json!({}),
        false => json!({"https": section}),
    }
}

/// The fields of a named site that the filter needs.
fn describe(
    settings: &Settings,
    site: &Site,
    policy: &PolicyDocument,
    certificates: &[NamedCertificate],
) -> Value {
    let mut fields = Map::new();
    let mut add = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    add("name", json!(site.name));
    if !site.hosts.is_empty() {
        add("hosts", json!(site.hosts));
    }
    if let Some(path) = &site.path {
        add("path", json!(path));
    }
    if let Some(certificate) = NamedCertificate::of(site, certificates) {
        add("certificate", json!(certificate.name));
    }
    if site.redirect_to_https {
        add("redirect_to_https", json!(true));
    }
    if let Some(hsts) = &site.hsts {
        add("hsts", json!(hsts));
    }
    add("share", json!(site.share));
    if !settings.stats_of_sites {
        add("metrics_label", json!(false));
    }
    if let Some(token) = site.purge_token {
        add("purge_token_sha256", json!(token.to_hex()));
    }
    add("policy", policy.json.clone());
    Value::Object(fields)
}

/// The fields that depend on this run of the edge.
fn of_run(run: Run<'_>) -> Value {
    let mut purge = Map::new();
    if let Some(purges) = &run.earlier_runs.purges {
        let records: Vec<&str> = purges.lines().collect();
        purge.insert("journal".to_owned(), json!(records));
        let recorded = run.earlier_runs.socket.is_some();
        purge.insert("recorded".to_owned(), json!(recorded));
        purge.insert("warm".to_owned(), json!(run.earlier_runs.warm));
    }
    if run.sns.is_some() {
        purge.insert("sns".to_owned(), json!(true));
    }
    if run.feed.is_some() {
        purge.insert("writes_feed".to_owned(), json!(true));
    }
    let mut sections = Map::new();
    if !purge.is_empty() {
        sections.insert("purge".to_owned(), json!(purge));
    }
    let stored = run.earlier_runs.large_urls.iter();
    let stored: Vec<_> = stored.map(ToString::to_string).collect();
    if !stored.is_empty() {
        sections.insert("store".to_owned(), json!({"slices": {"stored": stored}}));
    }
    json!(sections)
}
