// SPDX-License-Identifier: Apache-2.0
//! The values of a site's virtual host in the hop and of its origin's server, and of the guard that keeps requests
//! inside a bucket.

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use minijinja::{Value, context};
use sluice_core::policy::{self, BucketOrigin, Policy, QueryRule};

use super::compression::UsualCompression;
use super::credentials;
use super::origin_headers::OriginHeader;
use super::seconds;
use crate::net::ca_bundle;
use crate::origin::{Bucket, Origin};
use crate::settings::Settings;
use crate::sites::Site;

/// A site's virtual host in the hop, and its origin's server.
#[derive(Clone)]
pub struct Server {
    /// The site's name.
    pub site: String,
    /// The name of the server: the site's name, and a number if the server differs from the one at the start. So a
    /// request finds the server that its policy is for, even if a reload has changed the site since the request
    /// arrived.
    pub name: String,
    /// The values of the virtual host and the server.
    pub values: Value,
    /// The profile with the site's credentials, if Envoy reads them from a file of the edge.
    pub profile: Option<String>,
    /// The headers that Envoy adds to each request to it.
    pub headers: Vec<OriginHeader>,
    /// The time at which the site or its origin was replaced or removed.
    pub removed: Option<Instant>,
    /// The values and the profile that this server has under the plain name of the site.
    pub plain: (Value, Option<String>),
}

impl fmt::Debug for Server {
    // NB: the profile is a secret.
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
            let profile =
                credentials::profile(site, name, &|name| settings.secrets.variable(name))?;
            Ok((values, profile))
        };
        let plain = make(&site.name)?;
        let name = match former {
            Some(former) if !site.name.is_empty() => former.name(&site.name, &plain),
            _ => site.name.clone(),
        };
        let (values, profile) = match name == site.name {
            true => plain.clone(),
            false => make(&name)?,
        };
        Ok(Self {
            site: site.name.clone(),
            headers: OriginHeader::all(policy, &name)?,
            name,
            values,
            profile,
            removed: None,
            plain,
        })
    }
}

impl Former<'_> {
    /// The name for a site's server with these values and profile: the former name, or a new one.
    fn name(self, site: &str, plain: &(Value, Option<String>)) -> String {
        let mut servers = self.servers.iter().filter(|server| server.site == site);
        let same = servers.clone().find(|server| server.plain == *plain);
        match (same, servers.next()) {
            (Some(same), _) => same.name.clone(),
            (None, None) => site.to_owned(),
            (None, Some(_)) => format!("{site}.{}", self.number),
        }
    }
}

fn values(
    settings: &Settings,
    site: &Site,
    policy: &Policy,
    usual: &UsualCompression,
    files: &Path,
    name: &str,
) -> anyhow::Result<Value> {
    let endpoint = site.origin.endpoint();
    let chosen = match &site.origin {
        Origin::Bucket(_) => &settings.aws_ca_file,
        Origin::Http(_) => &settings.ca_file,
    };
    let ca_file = || ca_bundle::find(chosen.as_deref(), "an https origin");
    let bucket = match (&site.origin, &policy.origin) {
        (Origin::Bucket(bucket), policy::Origin::Bucket(paths)) => {
            let credentials = credentials::provider(site, name, files);
            let query = &policy.key.query;
            Some(guarded(bucket, settings, paths, query, &credentials))
        }
        (Origin::Bucket(_) | Origin::Http(_), _) => None,
    };
    let is_named = !name.is_empty();
    let server = if is_named {
        format!("origin_server_{name}")
    } else {
        "origin_server".to_owned()
    };
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
        host => endpoint.host,
        port => endpoint.port,
        authority => endpoint.authority(),
        is_ip => endpoint.ip().is_some(),
        tls => endpoint.tls,
        ca_file => endpoint.tls.then(ca_file).transpose()?,
        idle => seconds(settings.origin_idle),
        keepalive => seconds(site.keepalive.unwrap_or(usual_keepalive(&site.origin))),
        bucket => bucket,
        compressions => usual.of(settings, &site.origin, policy),
    })
}

/// Default time for which an idle connection is kept. Servers of applications close theirs after five seconds, and
/// S3's servers after more than fifteen.
const fn usual_keepalive(origin: &Origin) -> Duration {
    match origin {
        Origin::Http(_) => Duration::from_secs(4),
        Origin::Bucket(_) => Duration::from_secs(15),
    }
}

/// The values for a bucket. Every canonical path matches `path_regex` and does not match `forbidden_regex`.
fn guarded(
    bucket: &Bucket,
    settings: &Settings,
    paths: &BucketOrigin,
    query: &QueryRule,
    credentials: &Value,
) -> Value {
    // NB: the prefix is percent-encoded, so in a regular expression only its dots have a meaning.
    let start = paths.path_prefix.replace('.', r"\.");
    let query = match query {
        QueryRule::Drop { allow } if allow.is_empty() => "",
        QueryRule::Drop { .. } | QueryRule::Keep { .. } | QueryRule::Sort { .. } => r"(?:\?[^#]*)?",
    };
    context! {
        region => bucket.region,
        retries => settings.bucket_retries,
        credentials => credentials,
        path_regex => format!("{start}/(?:[A-Za-z0-9._~/-]|%[0-9A-F][0-9A-F])*{query}"),
        forbidden_regex => r"[^?]*(?:/\.\.?(?:[/?].*)?|%(?:00|2E|2F).*)",
    }
}
