// SPDX-License-Identifier: Apache-2.0
//! The sites of an edge.

use super::Rng;

/// Hosts whose sites have one certificate, or none.
const FAMILIES: [&[&str]; 3] = [
    &["a.test", "*.a.test", "x.a.test"],
    &["b.test", "*.test", "test"],
    &["q.test", "b.a.test"],
];
const PATHS: [&str; 8] = ["", "", "", "/x", "/x/y", "/xx", "/y", "/x/x"];
/// Buckets with a prefix, and the beginning of their paths towards S3. Two entries are the same bucket.
const BUCKETS: [(&str, &str); 4] = [
    ("one", "/one"),
    ("two", "/two"),
    ("two/x", "/two/x"),
    ("two/p q", "/two/p%20q"),
];

/// Site of a test.
#[derive(Clone, Debug, Default)]
pub struct Site {
    /// Name of the site.
    pub name: String,
    /// Hosts of the site; empty for all other hosts.
    pub hosts: Vec<String>,
    /// Beginning of the site's paths.
    pub path: String,
    /// Name of the certificate.
    pub certificate: Option<String>,
    /// Whether the policy treats `//` in a path as one separator.
    pub merges_slashes: bool,
    /// Policy, a JSON document.
    pub policy: String,
    /// Beginning of the paths towards the origin.
    pub beginning: String,
    /// Host in requests to the origin; `None` for the client's.
    pub authority: Option<String>,
}

/// Sites of an edge.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Sites in their order.
    pub sites: Vec<Site>,
}

impl Table {
    /// Creates one to seven sites. No two of them have the same path of a host.
    pub fn random(rng: &mut Rng) -> Self {
        let mut table = Self::default();
        let certificates: Vec<_> = (0..=FAMILIES.len())
            .map(|_| rng.pick(&[None, Some("one"), Some("two")]))
            .collect();
        for index in 0..=rng.below(7) {
            let family = rng.below(FAMILIES.len() + 1);
            let hosts = FAMILIES.get(family).copied().unwrap_or_default();
            let first = rng.below(hosts.len().max(1));
            let last = first + rng.below(2) + 1;
            let hosts = hosts.iter().take(last).skip(first);
            let mut site = Site {
                name: format!("s{index}"),
                hosts: hosts.map(|host| (*host).to_owned()).collect(),
                path: rng.pick(&PATHS).to_owned(),
                certificate: certificates[family].map(str::to_owned),
                ..Site::default()
            };
            site.draw_policy(rng);
            if !table.sites.iter().any(|other| other.claims_as(&site)) {
                table.sites.push(site);
            }
        }
        table
    }

    /// Returns the filter's configuration, in which each site has the purge token of [`Site::token`].
    pub fn document(&self, edge: &str, hash_of: impl Fn(&str) -> String) -> String {
        let sites: Vec<_> = self.sites.iter().map(|site| {
            let certificate = site.certificate.as_ref();
            let certificate = certificate.map_or(String::new(), |name| format!(r#""certificate": "{name}", "#));
            format!(
                r#"{{"name": "{}", "hosts": {:?}, "path": "{}", {certificate}"purge_token_sha256": "{}", "policy": {}}}"#,
                site.name, site.hosts, site.path, hash_of(&site.token()), site.policy,
            )
        }).collect();
        format!(
            r#"{{"edge": {{{edge}}}, "sites": [{}]}}"#,
            sites.join(",\n")
        )
    }
}

impl Site {
    /// Returns the token for purges of this site only.
    pub fn token(&self) -> String {
        format!("token-of-the-site-{}", self.name)
    }

    fn claims_as(&self, other: &Self) -> bool {
        let both_have_all = self.hosts.is_empty() && other.hosts.is_empty();
        let shared = self.hosts.iter().any(|host| other.hosts.contains(host));
        self.path == other.path && (both_have_all || shared)
    }

    fn draw_policy(&mut self, rng: &mut Rng) {
        let mut key = Vec::new();
        if rng.one_in(3) {
            let prefix = if self.path.is_empty() {
                "/y"
            } else {
                &self.path
            };
            key.push(format!(r#""strip_prefix": "{prefix}""#));
        }
        let is_bucket = rng.one_in(2);
        self.merges_slashes = is_bucket;
        if rng.one_in(2) {
            self.merges_slashes = rng.one_in(2);
            key.push(format!(r#""merge_slashes": {}"#, self.merges_slashes));
        }
        let origin = if is_bucket {
            let (bucket, beginning) = rng.pick(&BUCKETS);
            let (bucket, prefix) = bucket.split_once('/').unwrap_or((bucket, ""));
            if rng.one_in(2) {
                key.push(r#""index_document": "index.html""#.to_owned());
            }
            self.beginning = format!("{beginning}/");
            self.authority = Some("s3.test:9000".to_owned());
            format!(
                r#"{{"kind": "bucket", "bucket": "{bucket}", "prefix": "{prefix}", "authority": "s3.test:9000"}}"#
            )
        } else {
            self.beginning = "/".to_owned();
            self.authority = rng.pick(&[None, Some("o.test")]).map(str::to_owned);
            let authority = self.authority.as_ref();
            let authority =
                authority.map_or(String::new(), |name| format!(r#", "authority": "{name}""#));
            format!(r#"{{"kind": "http"{authority}}}"#)
        };
        self.policy = format!(r#"{{"origin": {origin}, "key": {{{}}}}}"#, key.join(", "));
    }
}
