// SPDX-License-Identifier: Apache-2.0
//! Fetches the keys of an issuer of tokens, as Envoy will.

use std::io::Read as _;

use anyhow::{Context as _, anyhow, ensure};

use super::Finding;
use crate::net::{ca_bundle, http};
use crate::settings::Settings;
use crate::sites::{IssuerKeys, LONGEST_KEY_SET, Site, check_key_set};

/// Fetches the keys of the site's issuer, if they are at a URL. Returns the problem.
pub fn check(settings: &Settings, site: &Site) -> Option<Finding> {
    let keys = &site.access.as_ref()?.issuer.as_ref()?.keys;
    let error = fetch(settings, keys).err()?;
    Some(Finding::problem(format!(
        "the scheme jwt: {error:#}: correct `jwks`, or look at the network"
    )))
}

fn fetch(settings: &Settings, keys: &IssuerKeys) -> anyhow::Result<()> {
    let IssuerKeys::Url { url, endpoint, ca } = keys else {
        return Ok(());
    };
    let ca = ca.as_deref().or(settings.ca_file.as_deref());
    let find = || ca_bundle::find(ca, "an issuer's keys at an https URL");
    let roots = endpoint.tls.then(find).transpose()?;
    let client = http::client_of_servers(roots.as_deref()).context("the CA certificates")?;
    let answer = client.get(url).call();
    let answer = answer.with_context(|| format!("no answer from {endpoint}"))?;
    let status = answer.status();
    ensure!(status == 200, "{url}: status {status}: expected 200");
    let mut text = String::new();
    let body = answer.into_body().into_reader();
    let most = u64::try_from(LONGEST_KEY_SET)?.saturating_add(1);
    let read = body.take(most).read_to_string(&mut text);
    read.with_context(|| format!("{url}: the answer could not be read"))?;
    check_key_set(&text).map_err(|error| anyhow!("{url}: {error}"))
}
