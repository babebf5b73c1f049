// SPDX-License-Identifier: Apache-2.0
//! The totals of groups of files.

use std::collections::HashMap;
use std::time::SystemTime;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::scan::{Scanned, ScannedFile};
use super::stored_response::{epoch_millis, text};
use crate::cache::entries::Usage;

/// Bound on the groups of one scan. The files of further groups are counted together.
const MAX_GROUPS: usize = 100_000;

/// Bound on the segments of a prefix.
const MAX_DEPTH: usize = 64;
/// Bound on the groups of an answer.
const MAX_TOP: usize = 10_000;

/// The property by which files are grouped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Grouping {
    /// The site.
    #[default]
    Site,
    /// The beginning of the URL.
    Prefix,
    /// The media type.
    Type,
}

/// A question for the totals of groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageQuestion {
    /// The property by which files are grouped.
    pub by: Grouping,
    /// The number of segments of a path that make a prefix.
    pub depth: usize,
    /// The number of groups to return, the largest first.
    pub top: usize,
    /// The only site to count; `None`: all sites.
    pub site: Option<String>,
}

impl UsageQuestion {
    /// Reads the query of a question on the control socket. A missing parameter has its default.
    ///
    /// # Errors
    /// A parameter is unknown, or has another value than the accepted ones.
    pub fn parse(query: &str) -> Result<Self, String> {
        let mut question = Self::default();
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        for (name, value) in pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))) {
            let number = |most: usize| {
                let number = value.parse().ok();
                let number = number.filter(|number| (1..=most).contains(number));
                number.ok_or_else(|| format!("{name}={value}: expected a number from 1 to {most}"))
            };
            match name {
                "by" => {
                    question.by = Grouping::from_str(value, false)
                        .map_err(|_| format!("by={value}: expected site, prefix or type"))?;
                }
                "depth" => question.depth = number(MAX_DEPTH)?,
                "top" => question.top = number(MAX_TOP)?,
                "site" => question.site = Some(value.to_owned()),
                _ => return Err(format!("{name}: expected by, depth, top or site")),
            }
        }
        Ok(question)
    }

    /// The query of the question, which [`UsageQuestion::parse`] reads.
    pub fn query(&self) -> String {
        let by = self.by.to_possible_value();
        let by = by.as_ref().map_or("site", |value| value.get_name());
        let site = self.site.as_ref().map(|site| format!("&site={site}"));
        let (depth, top) = (self.depth, self.top);
        format!(
            "by={by}&depth={depth}&top={top}{}",
            site.unwrap_or_default()
        )
    }
}

impl Default for UsageQuestion {
    fn default() -> Self {
        Self {
            by: Grouping::Site,
            depth: 1,
            top: 20,
            site: None,
        }
    }
}

/// The files of one group. Times are in milliseconds since the epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupUsage {
    /// The site; empty if the edge has one site without a name, or if the group is a media type.
    pub site: String,
    /// The prefix, with its host, or the media type; empty if the group is a site.
    pub name: String,
    /// The bytes of the files.
    pub bytes: u64,
    /// The number of files: one for each stored response.
    pub objects: u64,
    /// The share of the site, in bytes. `None`: the group is not a site, or the site is not in use any more.
    pub share_bytes: Option<u64>,
    /// The time at which the oldest response was stored or last validated.
    pub oldest_at_ms: Option<u64>,
    /// The time of the last use: a read from the disk, or a write.
    pub used_at_ms: Option<u64>,
}

/// The totals of the cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheContents {
    /// The time of the scan, in milliseconds since the epoch.
    pub at_ms: u64,
    /// The groups, the largest first.
    pub groups: Vec<GroupUsage>,
    /// The number of groups that are left out.
    pub more_groups: u64,
    /// The bytes of all counted files, also of groups that are left out.
    pub bytes: u64,
    /// The number of all counted files.
    pub objects: u64,
    /// The bound on the bytes of the cache.
    pub limit_bytes: u64,
    /// The bound on the files of the cache.
    pub limit_objects: u64,
    /// Files that do not have the form of the store.
    pub unreadable: u64,
    /// Whether the scan has ended early, so that the totals are too small.
    pub cut: bool,
}

/// The groups of a scan that is under way.
pub struct Groups<'a> {
    question: &'a UsageQuestion,
    groups: HashMap<(String, String), GroupUsage>,
    /// The files of groups beyond the bound.
    beyond: Usage,
}

impl<'a> Groups<'a> {
    /// No files yet.
    pub fn new(question: &'a UsageQuestion) -> Self {
        Self {
            question,
            groups: HashMap::new(),
            beyond: Usage::default(),
        }
    }

    /// Adds a file.
    pub fn add(&mut self, file: &ScannedFile<'_>) {
        let host = text(file.head.key.host);
        let (site, host) = host.split_once('!').unwrap_or(("", &host));
        if self.question.site.as_ref().is_some_and(|only| only != site) {
            return;
        }
        let (site, name) = match self.question.by {
            Grouping::Site => (site.to_owned(), String::new()),
            Grouping::Prefix => {
                let path = text(file.head.key.path);
                (
                    site.to_owned(),
                    host.to_owned() + prefix_of(&path, self.question.depth),
                )
            }
            Grouping::Type => (String::new(), media_type(file)),
        };
        let is_full = self.groups.len() >= MAX_GROUPS;
        let place = (site, name);
        if is_full && !self.groups.contains_key(&place) {
            self.beyond = self.beyond.with(file.bytes);
            return;
        }
        let (site, name) = place.clone();
        let group = self.groups.entry(place).or_insert_with(|| GroupUsage {
            site,
            name,
            ..GroupUsage::default()
        });
        group.bytes += file.bytes;
        group.objects += 1;
        let stored = file.head.received.map(epoch_millis);
        group.oldest_at_ms = group.oldest_at_ms.into_iter().chain(stored).min();
        group.used_at_ms = group.used_at_ms.max(Some(epoch_millis(file.used)));
    }

    /// The totals. `shares` has the share of each site in use.
    pub fn finish(self, shares: &[(String, u64)], bound: Usage, scanned: Scanned) -> CacheContents {
        let mut groups: Vec<_> = self.groups.into_values().collect();
        if self.question.by == Grouping::Site {
            for group in &mut groups {
                let share = shares.iter().find(|(name, _)| *name == group.site);
                group.share_bytes = share.map(|(_, bytes)| *bytes);
            }
        }
        let bytes = groups.iter().map(|group| group.bytes);
        let objects = groups.iter().map(|group| group.objects);
        let (bytes, objects) = (bytes.sum::<u64>(), objects.sum::<u64>());
        groups.sort_unstable_by(|one, other| {
            let order = other.bytes.cmp(&one.bytes);
            order.then_with(|| (&one.site, &one.name).cmp(&(&other.site, &other.name)))
        });
        let more = groups.len().saturating_sub(self.question.top);
        groups.truncate(self.question.top);
        CacheContents {
            at_ms: epoch_millis(SystemTime::now()),
            groups,
            more_groups: more as u64 + u64::from(self.beyond.files > 0),
            bytes: bytes + self.beyond.bytes,
            objects: objects + self.beyond.files,
            limit_bytes: bound.bytes,
            limit_objects: bound.files,
            unreadable: scanned.unreadable,
            cut: scanned.is_cut,
        }
    }
}

/// The first `depth` segments of the path of a key in the store. A path that is shorter ends without its last segment,
/// so that the objects of a folder are one group.
fn prefix_of(path: &str, depth: usize) -> &str {
    let path = path.split(['#', '?']).next().unwrap_or_default();
    let slashes = path.match_indices('/').map(|(place, _)| place + 1);
    let end = slashes.take(depth + 1).last().unwrap_or(0);
    path.get(..end).unwrap_or_default()
}

/// The media type of a file, in lower case and without parameters.
fn media_type(file: &ScannedFile<'_>) -> String {
    let value = file.header("content-type").next().unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}
