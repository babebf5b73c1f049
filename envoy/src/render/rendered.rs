// SPDX-License-Identifier: Apache-2.0
//! The configuration of a running edge: a file that Envoy reads at its start, and one for each resource that may change
//! while it serves.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::Run;
use super::certificates::NamedCertificate;
use super::checker::Checker;
use super::resource::Resource;
use super::server::{Former, Server};
use super::template::Templates;
use crate::settings::Settings;
use crate::sites::Sites;

/// Shortest time for which the server of a removed site is kept: longer than a request waits at the edge.
const KEPT: Duration = Duration::from_secs(15 * 60);

/// The configuration of a running edge.
#[derive(Clone, Debug)]
pub struct Rendered {
    /// The folder of the files.
    pub folder: PathBuf,
    /// The contents of the files.
    pub files: BTreeMap<Resource, String>,
    /// The servers of present and removed sites.
    servers: Vec<Server>,
    /// The servers that are asked about clients, with removed ones.
    checkers: Vec<Checker>,
    /// Number of the configuration in this run.
    number: u32,
    certificates: Vec<NamedCertificate>,
    /// Bound on the variants of a URL in the cache.
    pub variants_per_url: usize,
    /// The hash of the filter's policies.
    pub policy_hash: u64,
}

impl Rendered {
    /// Renders the files for these sites. The `former` configuration is the one that Envoy has now.
    ///
    /// # Errors
    /// The errors of [`super::render_whole`], or a variable with credentials is missing.
    pub fn new(
        settings: &Settings,
        sites: &Sites,
        run: Run<'_>,
        former: Option<&Self>,
    ) -> anyhow::Result<Self> {
        let folder = settings.files();
        let number = former.map_or(0, |former| former.number + 1);
        let servers = former.map(|former| Former {
            servers: &former.servers,
            number,
        });
        let mut templates = Templates::new(settings, sites, run, Some(&folder), servers)?;
        if let Some(former) = former {
            let removed = former.removed(&templates.servers);
            templates.servers.extend(removed);
            let removed = former.removed_checkers(&templates.checkers);
            templates.checkers.extend(removed);
        }
        let files = files(&templates)?;
        Ok(Self {
            folder,
            files,
            servers: templates.servers,
            checkers: templates.checkers,
            number,
            certificates: templates.certificates,
            variants_per_url: templates.variants_per_url,
            policy_hash: templates.policy_hash,
        })
    }

    /// Writes all files, each atomically.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self) -> io::Result<()> {
        let mut files = self.files.iter();
        files.try_for_each(|(resource, text)| resource.write(&self.folder, text))
    }

    /// The description of a resource for the author of the settings.
    pub fn describe(&self, resource: &Resource) -> String {
        let of_resource = |each: &&NamedCertificate| Resource::of(each) == *resource;
        match self.certificates.iter().find(of_resource) {
            Some(NamedCertificate { files, .. }) => {
                let (chain, key) = (files.chain.display(), files.key.display());
                format!("the certificate {chain} with the key {key}")
            }
            None => resource.path(&self.folder).display().to_string(),
        }
    }

    /// The servers that requests under way may still need, beside the `present` ones.
    fn removed(&self, present: &[Server]) -> Vec<Server> {
        let now = Instant::now();
        let is_gone = |server: &&Server| present.iter().all(|other| other.name != server.name);
        let gone = self.servers.iter().filter(is_gone).cloned();
        let gone = gone.map(|server| Server {
            removed: server.removed.or(Some(now)),
            ..server
        });
        let is_kept = |server: &Server| server.removed.is_none_or(|then| now - then < KEPT);
        gone.filter(is_kept).collect()
    }

    /// The servers that requests under way may still ask, beside the `present` ones.
    fn removed_checkers(&self, present: &[Checker]) -> Vec<Checker> {
        let now = Instant::now();
        let is_gone = |checker: &&Checker| present.iter().all(|other| other.name != checker.name);
        let gone = self.checkers.iter().filter(is_gone).cloned();
        let gone = gone.map(|checker| Checker {
            removed: checker.removed.or(Some(now)),
            ..checker
        });
        let is_kept = |checker: &Checker| checker.removed.is_none_or(|then| now - then < KEPT);
        gone.filter(is_kept).collect()
    }
}

fn files(templates: &Templates) -> anyhow::Result<BTreeMap<Resource, String>> {
    let mut files = BTreeMap::new();
    for server in &templates.servers {
        for (server, profile) in &server.profiles {
            let resource = Resource::Credentials(server.clone());
            files.insert(resource, profile.clone());
        }
    }
    let headers = templates.servers.iter().flat_map(|server| &server.headers);
    files.extend(headers.map(|header| (header.resource(), header.text())));
    for certificate in &templates.certificates {
        let text = templates.render_certificate(certificate)?;
        files.insert(Resource::of(certificate), text);
    }
    for (resource, template) in [
        (Resource::Clusters, "servers.yaml.j2"),
        (Resource::Routes, "routes.yaml.j2"),
        (Resource::Listeners, "listeners.yaml.j2"),
        (Resource::Bootstrap, "envoy.yaml.j2"),
    ] {
        files.insert(resource, templates.render(template)?);
    }
    if templates.takes_purges {
        files.insert(Resource::Purge, templates.render_role("purge")?);
    }
    if templates.has_filter {
        files.insert(Resource::Edge, templates.render_role("edge")?);
    }
    if templates.has_peers {
        files.insert(Resource::Peer, templates.render_role("peer")?);
        files.insert(Resource::Front, templates.render_role("front")?);
    }
    Ok(files)
}
