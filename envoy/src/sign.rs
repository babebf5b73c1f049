// SPDX-License-Identifier: Apache-2.0
//! `sluice sign`: a URL, or a cookie, that opens a site with signed URLs.

use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use sluice_core::access::credentials::COOKIE;
use sluice_core::access::grant::{Grant, GrantedResource};
use sluice_core::access::parameters::{EXPIRES, FROM, KEY, PREFIX, SIGNATURE};
use sluice_core::hexadecimal;
use sluice_core::http::url::escaping::escape_key;
use sluice_core::key::client_url::ClientUrl;
use sluice_core::key::{Target, split_absolute};
use sluice_core::policy::forms::duration;
use sluice_core::policy::{Network, Policy};
use sluice_core::sites::host_name;

use crate::demo::Demo;
use crate::render;
use crate::settings::Settings;
use crate::sites::{SigningSecret, Site};

/// Options of `sluice sign`.
#[derive(Args, Debug)]
pub struct Sign {
    /// The URL, with http:// or https://
    #[arg(value_parser = read_url)]
    pub url: String,
    /// How long the signature is valid, such as 1h
    #[arg(long, value_name = "DURATION", value_parser = read_duration)]
    pub expires: Duration,
    /// Sign all URLs below this one, which ends in a slash, with any query
    #[arg(long)]
    pub prefix: bool,
    /// Print a value of Set-Cookie in place of a URL
    #[arg(long, requires = "prefix")]
    pub cookie: bool,
    /// The name of the key; needed if the site has several keys
    #[arg(long, value_name = "NAME")]
    pub key: Option<String>,
    /// The network or the address of the clients, such as 192.0.2.0/24. Default: all clients
    #[arg(long, value_name = "NETWORK", value_parser = read_network)]
    pub from: Option<String>,
}

fn read_url(text: &str) -> Result<String, String> {
    let is_url = split_absolute(text.as_bytes()).is_some_and(|(_, host, _)| !host.is_empty());
    let url = Some(text.to_owned()).filter(|_| is_url);
    url.ok_or_else(|| "expected http:// or https://, a host and a path".to_owned())
}

fn read_duration(text: &str) -> Result<Duration, String> {
    let read = duration::parse(text).filter(|time| time.as_secs() > 0);
    read.ok_or_else(|| "expected a duration of at least a second, such as 1h".to_owned())
}

fn read_network(text: &str) -> Result<String, String> {
    let read = Network::parse(text).map(|_| text.to_owned());
    read.ok_or_else(|| format!("expected {}", Network::ACCEPTED))
}

impl Sign {
    /// Prints the signed URL or the cookie. The settings name the site and its keys.
    ///
    /// # Errors
    /// The settings are not valid, or the site of the URL has no such key.
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let settings = Settings::from_env()?;
        let sites = render::sites(&settings, Some(&Demo::example_origin()))?;
        let read = render::filter_sites(&settings, &sites)?;
        let target = self.target().context("the URL")?;
        let index = read.find(&target, || None);
        let index = index.map_err(|rejection| self.refused(rejection.reason()))?;
        let (site, policy) = (sites.sites.get(index), read.sites.get(index));
        let (site, policy) = site.zip(policy).context("the site of the URL")?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let text = self.signed(site, &policy.policy, &target, now)?;
        println!("{text}");
        Ok(ExitCode::SUCCESS)
    }

    fn target(&self) -> Option<Target<'_>> {
        let (scheme, authority, resource) = split_absolute(self.url.as_bytes())?;
        Some(Target {
            scheme: Some(scheme),
            authority,
            path: if resource.is_empty() { b"/" } else { resource },
        })
    }

    /// The signed URL, or the value of `Set-Cookie`, at this time in seconds since the Unix epoch.
    fn signed(
        &self,
        site: &Site,
        policy: &Policy,
        target: &Target<'_>,
        now: u64,
    ) -> anyhow::Result<String> {
        let url = ClientUrl::of(policy, target);
        let url = url.map_err(|rejection| self.refused(rejection.reason()))?;
        let secret = self.choose_key(site)?;
        let host = host_name(target).map_err(|rejection| self.refused(rejection.reason()))?;
        let host = String::from_utf8(host)?;
        ensure!(
            !self.prefix || url.path().ends_with('/') && !self.url.contains('?'),
            "{}: expected a URL that ends in a slash, because of --prefix",
            self.url
        );
        let prefix = format!("{}*", url.path());
        let grant = Grant {
            method: "GET",
            host: &host,
            resource: match self.prefix {
                true => GrantedResource::Prefix(&prefix),
                false => GrantedResource::Url(url.as_str()),
            },
            not_before: None,
            expires: now.saturating_add(self.expires.as_secs()),
            from: self.from.as_deref(),
            key: &secret.name,
        };
        let parameters = parameters(&grant, secret)?;
        Ok(match self.cookie {
            true => self.set_cookie(url.path(), &parameters),
            false => {
                let separator = if self.url.contains('?') { '&' } else { '?' };
                format!("{}{separator}{parameters}", self.url)
            }
        })
    }

    /// The key of that name, or the only one.
    fn choose_key<'a>(&self, site: &'a Site) -> anyhow::Result<&'a SigningSecret> {
        let keys = site.access.as_ref().map(|access| access.keys.as_slice());
        let keys = keys.unwrap_or_default();
        let names: Vec<_> = keys.iter().map(|key| key.name.as_str()).collect();
        match (&self.key, keys) {
            (_, []) => bail!(
                "{}: expected a site whose access has the scheme signed",
                self.url
            ),
            (None, [only]) => Ok(only),
            (None, _) => bail!("--key: expected one of {}", names.join(", ")),
            (Some(name), _) => {
                let mut keys = keys.iter();
                let found = keys.find(|key| key.name == *name);
                found.with_context(|| format!("--key={name}: expected one of {}", names.join(", ")))
            }
        }
    }

    fn set_cookie(&self, path: &str, parameters: &str) -> String {
        let age = self.expires.as_secs();
        let secure = if self.url.starts_with("https:") {
            "; Secure"
        } else {
            ""
        };
        format!("{COOKIE}={parameters}; Path={path}; Max-Age={age}; HttpOnly; SameSite=Lax{secure}")
    }

    fn refused(&self, reason: &str) -> anyhow::Error {
        anyhow::anyhow!("{}: {reason}", self.url)
    }
}

/// The parameters of a grant with its signature.
fn parameters(grant: &Grant<'_>, secret: &SigningSecret) -> anyhow::Result<String> {
    let key = secret.key().context("a key of signed URLs")?;
    let mut text = format!("{KEY}={}&{EXPIRES}={}", grant.key, grant.expires);
    if let Some(from) = grant.from {
        text += &format!("&{FROM}={from}");
    }
    if let GrantedResource::Prefix(prefix) = grant.resource {
        text += &format!("&{PREFIX}={}", escape_key(prefix));
    }
    text += &format!("&{SIGNATURE}=");
    hexadecimal::push(&mut text, &key.sign(grant));
    Ok(text)
}
