// SPDX-License-Identifier: Apache-2.0
//! The values of a site's virtual host in the hop and of its origin's server, and of the guard that keeps requests
//! inside a bucket.

use std::fmt;
use std::path::Path;
use std::time::Instant;

use minijinja::{Value, context};
use sluice_core::policy::{self, BucketOrigin, Policy, QueryRule};
use sluice_core::website::listing::{escape_value, listed_keys};

use super::compression::UsualCompression;
use super::credentials;
use super::origin_headers::OriginHeader;
use super::second_server::{second_name, second_server};
use super::seconds;
use super::server_address::{address, credentials_place, usual_keepalive};
use crate::origin::{Bucket, Endpoint, Origin};
use crate::settings::Settings;
use crate::sites::{Failover, Site};

/// A site's virtual host in the hop, and its origin's server.
#[derive(Clone)]
pub struct Server {
    /// The site's name.
    pub site: String,
    /// The name of the server: the site's name, and a number if the server differs from the one at the start. So a
    /// request finds the server that its policy is for, even if a reload has changed the site since the request
    /// arrived.
    pub name: String,
    /// Whether the site has a second origin.
    pub has_second_origin: bool,
    /// The values of the virtual host and the server.
    pub values: Value,
    /// The names of the origin's servers and the profiles with their credentials, if Envoy reads them from files of the
    /// edge.
    pub profiles: Profiles,
    /// The headers that Envoy adds to each request to it.
    pub headers: Vec<OriginHeader>,
    /// The time at which the site or its origin was replaced or removed.
    pub removed: Option<Instant>,
    /// The values and the profiles that this server has under the plain name of the site.
    pub plain: (Value, Profiles),
}

/// The names of servers, and profiles with their credentials.
pub type Profiles = Vec<(String, String)>;

impl fmt::Debug for Server {
    // NB: the profiles are secrets.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Server {{ name: {:?}, .. }}", self.name)
    }
}

/// The servers of the configuration that Envoy has, and the number of the next configuration.
#[derive(Clone, Copy, Debug)]
pub struct Former<'a> {
    /// The servers.
    pub servers: &'a [Server],
    /// Number of the configuration in this run.
    pub number: u32,
}

impl Server {
    /// The server of a site with this `policy`, with its files in the folder `files`. It keeps the `former` name if
    /// nothing has changed.
    ///
    /// # Errors
    /// CA certificates to verify the origin are missing, or a variable with credentials is missing.
    pub fn new(
        settings: &Settings,
        site: &Site,
        policy: &Policy,
        usual: &UsualCompression,
        files: &Path,
        former: Option<Former<'_>>,
    ) -> anyhow::Result<Self> {
        let make = |name: &str| -> anyhow::Result<_> {
            let values = values(settings, site, policy, usual, files, name)?;
            Ok((values, profiles(settings, site, name)?))
        };
        let plain = make(&site.name)?;
        let name = match former {
            Some(former) if !site.name.is_empty() => former.name(&site.name, &plain),
            _ => site.name.clone(),
        };
        let (values, profiles) = match name == site.name {
            true => plain.clone(),
            false => make(&name)?,
        };
        Ok(Self {
            has_second_origin: site.failover.is_some(),
            site: site.name.clone(),
            headers: OriginHeader::all(policy, &name)?,
            name,
            values,
            profiles,
            removed: None,
            plain,
        })
    }
}

impl Former<'_> {
    /// The name for a site's server with these values and profiles: the former name, or a new one.
    fn name(self, site: &str, plain: &(Value, Profiles)) -> String {
        let mut servers = self.servers.iter().filter(|server| server.site == site);
        let same = servers.clone().find(|server| server.plain == *plain);
        match (same, servers.next()) {
            (Some(same), _) => same.name.clone(),
            (None, None) => site.to_owned(),
            (None, Some(_)) => format!("{site}.{}", self.number),
        }
    }
}

/// The profiles for the servers of a site whose first server has this `name`.
fn profiles(settings: &Settings, site: &Site, name: &str) -> anyhow::Result<Profiles> {
    let second = second_name(name);
    let failover = site.failover.as_ref();
    let second = failover.map(|failover| (second, &failover.credentials));
    let all = std::iter::once((name.to_owned(), &site.credentials)).chain(second);
    let mut profiles = Profiles::new();
    for (server, credentials) in all {
        let place = credentials_place(site, &server);
        let lookup = |name: &str| settings.secrets.variable(name);
        if let Some(profile) = credentials::profile(credentials, place, &lookup)? {
            profiles.push((server, profile));
        }
    }
    Ok(profiles)
}

fn values(
    settings: &Settings,
    site: &Site,
    policy: &Policy,
    usual: &UsualCompression,
    files: &Path,
    name: &str,
) -> anyhow::Result<Value> {
    let bucket = match (&site.origin, &policy.origin) {
        (Origin::Bucket(bucket), policy::Origin::Bucket(paths)) => {
            let place = credentials_place(site, name);
            let credentials = credentials::provider(&site.credentials, place, files);
            Some(guarded(bucket, settings, paths, policy, &credentials))
        }
        (Origin::Bucket(_) | Origin::Http(_), _) => None,
    };
    let is_named = !name.is_empty();
    let server = if is_named {
        format!("origin_server_{name}")
    } else {
        "origin_server".to_owned()
    };
    let second = site.failover.as_ref().map(|failover| {
        let paths = policy.origin.path_prefix();
        second_server(settings, site, failover, paths, files, name)
    });
    let second = second.transpose()?;
    let times = site.failover.as_ref().map(|failover| failover.times);
    let headers = OriginHeader::all(policy, name)?;
    let headers = headers.iter().map(|header| header.values(files));
    Ok(context! {
        set_headers => headers.collect::<Vec<_>>(),
        // The name of the virtual host, and the value of x-sluice-server that selects it.
        label => if is_named { name } else { "all" },
        name => is_named.then_some(name),
        // The name of the site in statistics.
        site => (is_named && settings.stats_of_sites).then_some(&site.name),
        server => server,
        // Whether the server is one of a pair, and which one.
        attempt => second.is_some().then_some("first"),
        second => second,
        others => site.servers.others.iter().map(server_of).collect::<Vec<_>>(),
        health_check => site.servers.health_check,
        hedge_after => site.hedge_after.map(seconds),
        marks_missing => site.failover.as_ref().is_some_and(Failover::asks_for_missing),
        connect_timeout => times.map(|times| seconds(times.connect_timeout)),
        idle => seconds(settings.origin_idle),
        keepalive => seconds(site.keepalive.unwrap_or(usual_keepalive(&site.origin))),
        bucket => bucket,
        compressions => usual.of(settings, &site.origin, policy),
        ..address(settings, &site.origin)?
    })
}

/// The values of one of several servers.
fn server_of(endpoint: &Endpoint) -> Value {
    context! {
        host => endpoint.host,
        port => endpoint.port,
        authority => endpoint.authority(),
        is_ip => endpoint.ip().is_some(),
    }
}

/// The values for a bucket. Every canonical path matches `path_regex` and does not match `forbidden_regex`.
fn guarded(
    bucket: &Bucket,
    settings: &Settings,
    paths: &BucketOrigin,
    policy: &Policy,
    credentials: &Value,
) -> Value {
    // NB: the prefix is percent-encoded, so in a regular expression only its dots have a meaning.
    let start = paths.path_prefix.replace('.', r"\.");
    let query = match &policy.key.query {
        QueryRule::Drop { allow } if allow.is_empty() => "",
        QueryRule::Drop { .. } | QueryRule::Keep { .. } | QueryRule::Sort { .. } => r"(?:\?[^#]*)?",
    };
    context! {
        region => bucket.region,
        retries => settings.bucket_retries,
        credentials => credentials,
        questions => questions(paths, policy),
        path_regex => format!("{start}/(?:[A-Za-z0-9._~/-]|%[0-9A-F][0-9A-F])*{query}"),
        forbidden_regex => r"[^?]*(?:/\.\.?(?:[/?].*)?|%(?:00|2E|2F).*)",
    }
}

/// The beginnings of the questions for the listings of a policy, and the expression that whole questions match. Envoy
/// refuses an expression that is as large as all of them.
fn questions(paths: &BucketOrigin, policy: &Policy) -> Option<Value> {
    let listing = policy.website.listing.as_ref()?;
    let keys = listed_keys(paths, listing).into_iter();
    let starts = keys.map(|key| {
        format!(
            "{}/?delimiter=%2F&list-type=2&max-keys={}&prefix={}",
            paths.root,
            listing.page,
            escape_value(&key)
        )
    });
    Some(context! {
        starts => starts.collect::<Vec<_>>(),
        regex => r"[^?]*\?(?:[^&]*&){3}prefix=[A-Za-z0-9._~%-]*(?:&start-after=[A-Za-z0-9._~%-]+)?",
    })
}
