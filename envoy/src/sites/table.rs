// SPDX-License-Identifier: Apache-2.0
//! Checks of all sites of one edge together: no two sites serve the same requests or have the same name, and each
//! host has one certificate.

use std::collections::HashMap;

use super::certificate::Certificate;
use super::site::Site;
use super::surroundings::Surroundings;

/// Adds a problem: the path of a field, and the message.
type Refuse<'a> = dyn FnMut(&str, String) + 'a;

/// Gives a site without a certificate the certificate of a site that shares a host with it.
pub fn share_certificates(sites: &mut [Site]) {
    let mut certified = HashMap::new();
    loop {
        let known = certified.len();
        for site in &mut *sites {
            let known = hosts(site).find_map(|host| certified.get(host).cloned());
            site.certificate = site.certificate.take().or(known);
            if let Some(certificate) = &site.certificate {
                for host in hosts(site) {
                    let entry = certified.entry(host.to_owned());
                    entry.or_insert_with(|| certificate.clone());
                }
            }
        }
        // A site that has just got a certificate may share another host with a third site.
        if certified.len() == known {
            return;
        }
    }
}

/// Checks the sites, which are at these paths of the file.
pub fn check(
    sites: &[Site],
    paths: &[String],
    surroundings: Surroundings<'_>,
    refuse: &mut Refuse<'_>,
) {
    check_names(sites, paths, refuse);
    check_hosts(sites, paths, refuse);
    check_tokens(sites, paths, surroundings, refuse);
    let certified = certificates_of_hosts(sites, paths, refuse);
    for (site, path) in sites.iter().zip(paths) {
        check_certificate(site, path, surroundings, refuse);
        if !surroundings.behind_proxy {
            check_https(site, path, &certified, refuse);
        }
    }
}

fn check_names(sites: &[Site], paths: &[String], refuse: &mut Refuse<'_>) {
    let mut known = HashMap::new();
    for (site, path) in sites.iter().zip(paths) {
        // A name that could not be read has been refused already.
        if site.name.is_empty() {
            continue;
        }
        if let Some(other) = known.insert(&site.name, path) {
            let message = format!(
                "{:?}: expected another name than that of {other}",
                site.name
            );
            refuse(&format!("{path}.name"), message);
        }
    }
}

/// Refuses a token that several sites have, because it would not identify a site.
fn check_tokens(
    sites: &[Site],
    paths: &[String],
    surroundings: Surroundings<'_>,
    refuse: &mut Refuse<'_>,
) {
    let mut known: Vec<_> = surroundings
        .purge_token
        .map(|token| (token, "SLUICE_PURGE_TOKEN"))
        .into_iter()
        .collect();
    for (site, path) in sites.iter().zip(paths) {
        let Some(token) = site.purge_token else {
            continue;
        };
        match known.iter().find(|(other, _)| *other == token) {
            Some((_, other)) => {
                let message = format!("expected another token than that of {other}");
                refuse(&format!("{path}.purge_token"), message);
            }
            None => known.push((token, path)),
        }
    }
}

/// The hosts of a site; an empty text for a site without hosts.
fn hosts(site: &Site) -> impl Iterator<Item = &str> {
    let others = site.hosts.is_empty().then_some("");
    site.hosts.iter().map(String::as_str).chain(others)
}

/// The field that names a site's host.
fn host_field(site: &Site, path: &str, index: usize) -> String {
    match site.hosts.len() {
        0 => path.to_owned(),
        _ => format!("{path}.hosts[{index}]"),
    }
}

fn check_hosts(sites: &[Site], paths: &[String], refuse: &mut Refuse<'_>) {
    let mut known: HashMap<_, &String> = HashMap::new();
    for (site, path) in sites.iter().zip(paths) {
        for (index, host) in hosts(site).enumerate() {
            let Some(other) = known.insert((host, site.path.as_deref()), path) else {
                continue;
            };
            let below = site.path.as_deref().unwrap_or("all paths");
            let message = match host {
                "" => format!(
                    "expected hosts, or another path than that of {other}, which takes {below} of all hosts that no site names"
                ),
                host if other == path => format!("{host:?}: expected each host once"),
                host => format!(
                    "{host:?}: expected another host, or another path than that of {other}, which takes {below} of this host"
                ),
            };
            refuse(&host_field(site, path, index), message);
        }
    }
}

/// The certificate of each host that has one. Sites that share a host share its certificate.
fn certificates_of_hosts<'a>(
    sites: &'a [Site],
    paths: &'a [String],
    refuse: &mut Refuse<'_>,
) -> HashMap<&'a str, &'a Certificate> {
    let mut certified: HashMap<&str, (&Certificate, &String)> = HashMap::new();
    for (site, path) in sites.iter().zip(paths) {
        let Some(certificate) = &site.certificate else {
            continue;
        };
        for host in hosts(site) {
            match certified.get(host) {
                Some((known, other)) if *known != certificate => {
                    let host = if host.is_empty() {
                        "the other hosts"
                    } else {
                        host
                    };
                    let message = format!(
                        "expected the files of {other}.tls, or nothing: {host} can have one certificate"
                    );
                    refuse(&format!("{path}.tls"), message);
                }
                Some(_) => {}
                None => {
                    certified.insert(host, (certificate, path));
                }
            }
        }
    }
    let certificates = certified.into_iter();
    certificates
        .map(|(host, (certificate, _))| (host, certificate))
        .collect()
}

fn check_certificate(
    site: &Site,
    path: &str,
    surroundings: Surroundings<'_>,
    refuse: &mut Refuse<'_>,
) {
    let Some(certificate) = &site.certificate else {
        return;
    };
    match certificate.inspect(surroundings.now) {
        Ok(names) => {
            for host in site.hosts.iter().filter(|host| !names.cover(host)) {
                let message = format!(
                    "{:?}: expected a certificate for {host} too: it is for {}",
                    certificate.chain.to_string_lossy(),
                    some(&names.names)
                );
                refuse(&format!("{path}.tls.certificate"), message);
            }
        }
        Err(problems) => {
            for problem in problems {
                let field = if problem.of_key { "key" } else { "certificate" };
                refuse(&format!("{path}.tls.{field}"), problem.message);
            }
        }
    }
}

/// The first names of a list, which may be long.
fn some(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let shown = names.iter().take(SHOWN).map(String::as_str);
    let shown = shown.collect::<Vec<_>>().join(", ");
    match names.len() {
        0 => "no host".to_owned(),
        1..=SHOWN => shown,
        _ => format!("{shown}, …"),
    }
}

/// Refuses fields about HTTPS if a host does not have a certificate.
fn check_https(
    site: &Site,
    path: &str,
    certified: &HashMap<&str, &Certificate>,
    refuse: &mut Refuse<'_>,
) {
    let without = hosts(site).find(|host| !certified.contains_key(host));
    let Some(host) = without else { return };
    let host = if host.is_empty() { "these hosts" } else { host };
    let fields = [
        ("redirect_to_https", site.redirect_to_https),
        ("hsts", site.hsts.is_some()),
    ];
    for (field, _) in fields.into_iter().filter(|(_, is_set)| *is_set) {
        let message = format!(
            "expected tls here or in another site for {host}, or SLUICE_TRUSTED_HOPS to be set, where a proxy speaks HTTPS"
        );
        refuse(&format!("{path}.{field}"), message);
    }
}
