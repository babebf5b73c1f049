// SPDX-License-Identifier: Apache-2.0
//! No request and no purge reaches a response of another site, for any sites and any spelling.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use std::collections::HashMap;

use sluice_core::key::secret::StoreSecret;
use sluice_core::key::{CanonicalTarget, Rejection, Target, canonicalize, origin_authority};
use sluice_core::policy::purge::{Scope, TokenHash};
use sluice_core::purge::{Caller, OrderError, PurgeOrder, PurgeSubject, url_of};
use sluice_core::sites::Sites;
use sluice_fake::sites::{Rng, SiteRequest, Table, Verdict};

const SECRET: StoreSecret = StoreSecret::new([1, 2]);
/// Requests for each table of sites.
const REQUESTS: usize = 64;

/// A table of sites, and the filter's sites for it.
struct Case {
    table: Table,
    sites: Sites,
    /// The site of each key, and of each URL in the form that purges use.
    owners: HashMap<String, usize>,
}

/// Numbers of served requests and of accepted purges.
#[derive(Debug, Default)]
struct Tally {
    served: usize,
    refused: usize,
    misdirected: usize,
    without_site: usize,
    purged: usize,
}

impl Case {
    fn new(rng: &mut Rng) -> Self {
        let table = Table::random(rng);
        let document = table.document("", |token| TokenHash::of(token.as_bytes()).to_hex());
        let sites = Sites::parse(document.as_bytes());
        let sites = sites.unwrap_or_else(|error| panic!("{error}: {document}"));
        Self {
            table,
            sites,
            owners: HashMap::new(),
        }
    }

    /// The site and the target of a request.
    fn canonicalize(&self, request: &SiteRequest) -> Result<(usize, CanonicalTarget), Rejection> {
        let target = target(request);
        let name = || request.server_name.clone().map(String::into_bytes);
        let site = self.sites.find(&target, name)?;
        let canonical = canonicalize(&self.sites.sites[site].policy, &target)?;
        Ok((site, canonical))
    }

    fn check_request(&mut self, request: &SiteRequest, tally: &mut Tally) {
        let verdict = self.table.verdict(request);
        match self.canonicalize(request) {
            Ok((site, target)) => {
                assert_eq!(verdict, Verdict::Site(site), "{request:?}");
                self.check_target(site, &target);
                tally.served += 1;
            }
            Err(Rejection::Misdirected) => {
                assert_eq!(verdict, Verdict::Misdirected, "{request:?}");
                tally.misdirected += 1;
            }
            Err(Rejection::NoSite) => {
                assert_eq!(verdict, Verdict::NoSite, "{request:?}");
                tally.without_site += 1;
            }
            Err(_) => tally.refused += 1,
        }
    }

    /// Checks that a target of a site has the site's key, origin and bucket's prefix.
    fn check_target(&mut self, index: usize, target: &CanonicalTarget) {
        let site = &self.table.sites[index];
        let policy = &self.sites.sites[index].policy;
        let key = target.cache_key();
        assert!(key.starts_with(&format!("{}!", site.name)), "{key}");
        assert!(target.origin_path().starts_with(&site.beginning), "{key}");
        let path = target.origin_path().split('?').next().unwrap();
        let is_dots = |segment: &str| matches!(segment, "." | "..");
        assert!(!path.split('/').any(is_dots), "{key}");
        let authority = origin_authority(policy, target.authority());
        assert!(!authority.contains('!'), "{authority}");
        if let Some(expected) = &site.authority {
            assert_eq!(authority, expected);
        }
        assert_eq!(self.sites.index_of_key(key), Some(index));
        assert_eq!(self.sites.policy_of_key(key).unwrap().site.name, site.name);
        for name in [key, url_of(policy, key)] {
            let owner = self.owners.insert(name.to_owned(), index);
            assert!(owner.is_none_or(|owner| owner == index), "{name}");
        }
    }

    /// Purges that URL, or everything below it, by each caller.
    fn check_purges(&self, request: &SiteRequest, cut: usize, tally: &mut Tally) {
        let request = SiteRequest {
            server_name: None,
            ..request.clone()
        };
        let url = format!("{}://{}{}", request.scheme, request.authority, request.path);
        for index in 0..self.sites.sites.len() {
            let caller = Caller::of_site(&self.sites, index, &SECRET);
            if let Ok(scopes) = scopes(caller, "url", &url) {
                assert_eq!(self.table.verdict(&request), Verdict::Site(index), "{url}");
                let (_, target) = self.canonicalize(&request).unwrap();
                assert_eq!(scopes, [self.scope(index, &target)], "{url}");
                tally.purged += 1;
            }
            if let Ok(scopes) = scopes(caller, "url", &request.path) {
                let anywhere = SiteRequest {
                    scheme: "http",
                    authority: "localhost".to_owned(),
                    ..request.clone()
                };
                let policy = &self.sites.sites[index].policy;
                let target = canonicalize(policy, &target(&anywhere));
                let expected = target.map(|target| self.scope(index, &target));
                assert_eq!(scopes, [expected.unwrap()], "{request:?}");
            }
            for text in [&url, &request.path] {
                let beginning = text.get(..cut).unwrap_or(text);
                for scope in scopes(caller, "prefix", beginning).unwrap_or_default() {
                    self.check_prefix(index, &scope);
                }
            }
        }
        self.check_that_prefixes_cover(&request, cut);
    }

    /// The URL of a target in the form that purges use.
    fn scope(&self, index: usize, target: &CanonicalTarget) -> Scope {
        let url = url_of(&self.sites.sites[index].policy, target.cache_key());
        assert!(url.starts_with(&format!("{}!", self.table.sites[index].name)));
        Scope::of_url(url, &SECRET)
    }

    fn check_prefix(&self, index: usize, scope: &Scope) {
        let begins = format!("{}!", self.table.sites[index].name);
        assert!(
            matches!(scope, Scope::Prefix(prefix) if prefix.starts_with(&begins)),
            "{scope:?}"
        );
    }

    /// Checks that a prefix that the edge purges covers every URL with that prefix, of any site.
    fn check_that_prefixes_cover(&self, request: &SiteRequest, cut: usize) {
        let is_plain = |byte: u8| matches!(byte, b'/' | b'x' | b'y');
        if !request.path.bytes().all(is_plain) || request.path.contains("//") {
            return;
        }
        let Ok((site, target)) = self.canonicalize(request) else {
            return;
        };
        let beginning = &request.path[..=cut % request.path.len()];
        let text = format!("{}://{}{beginning}", request.scheme, request.authority);
        let below = self.sites.below(&Target {
            path: beginning.as_bytes(),
            ..self::target(request)
        });
        assert!(below.unwrap().contains(&site), "{text} of {request:?}");
        let scopes = scopes(Caller::of_edge(&self.sites, &SECRET), "prefix", &text);
        let url = url_of(&self.sites.sites[site].policy, target.cache_key());
        let covers =
            |scope: &Scope| matches!(scope, Scope::Prefix(prefix) if url.starts_with(prefix));
        let scopes = scopes.unwrap_or_else(|error| panic!("{text}: {error}"));
        assert!(scopes.iter().any(covers), "{text}: {scopes:?} for {url}");
    }

    /// Checks that a site's caller that purges without a URL only purges the site.
    fn check_whole_sites(&self) {
        let mut tags = HashMap::new();
        for index in 0..self.sites.sites.len() {
            let caller = Caller::of_site(&self.sites, index, &SECRET);
            let all = PurgeOrder::parse(caller, br#"{"everything": true}"#).unwrap();
            match all.what {
                PurgeSubject::Scopes(scopes) => {
                    assert_eq!(*scopes, [Scope::Site(self.table.sites[index].name.clone())]);
                }
                PurgeSubject::Tags { .. } => panic!("no surrogate keys were named"),
            }
            let tagged = PurgeOrder::parse(caller, br#"{"surrogate_keys": ["a", "b"]}"#);
            let shown = format!("{:?}", tagged.unwrap().what);
            assert_eq!(tags.insert(shown, index), None);
            for other in self
                .table
                .sites
                .iter()
                .filter(|site| site.name != self.table.sites[index].name)
            {
                let order = format!(r#"{{"site": "{}", "everything": true}}"#, other.name);
                assert!(PurgeOrder::parse(caller, order.as_bytes()).is_err());
            }
        }
    }
}

fn target(request: &SiteRequest) -> Target<'_> {
    Target {
        scheme: Some(request.scheme),
        authority: request.authority.as_bytes(),
        path: request.path.as_bytes(),
    }
}

fn scopes(caller: Caller<'_>, field: &str, text: &str) -> Result<Vec<Scope>, OrderError> {
    let order = serde_json::json!({ field: text }).to_string();
    match PurgeOrder::parse(caller, order.as_bytes())?.what {
        PurgeSubject::Scopes(scopes) => Ok(scopes),
        PurgeSubject::Tags { .. } => panic!("no surrogate keys were named"),
    }
}

fn check(tables: u64) -> Tally {
    let mut tally = Tally::default();
    for seed in 0..tables {
        let mut rng = Rng::new(seed);
        let mut case = Case::new(&mut rng);
        let shown = (seed, case.table.clone());
        let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for _ in 0..REQUESTS {
                let request = SiteRequest::random(&mut rng);
                case.check_request(&request, &mut tally);
                if rng.one_in(8) && request.path.starts_with('/') {
                    case.check_purges(&request, rng.below(40), &mut tally);
                }
            }
            case.check_whole_sites();
        }));
        assert!(failed.is_ok(), "seed {}: {:#?}", shown.0, shown.1);
    }
    println!("{tally:?}");
    tally
}

#[test]
fn no_request_and_no_purge_reaches_another_site() {
    let tally = check(400);
    for often in [
        tally.served,
        tally.refused,
        tally.misdirected,
        tally.without_site,
        tally.purged,
    ] {
        assert!(often > 200, "{tally:?}");
    }
}

#[test]
#[ignore = "takes a million tries"]
fn soak() {
    check(1_000_000 / REQUESTS as u64);
}
