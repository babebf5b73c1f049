// SPDX-License-Identifier: Apache-2.0
//! `sluice du`: the size of the cache by site, by prefix or by media type.

use std::process::ExitCode;

use clap::Args;

use super::{EdgeClient, EdgeOptions, print};
use crate::cache::{CacheContents, GroupUsage, Grouping, UsageQuestion};
use crate::control::text::{TextTable, bytes, duration, percentage, site_name};

/// Options of `sluice du`.
#[derive(Args, Debug)]
pub struct ShowUsage {
    /// The property by which the stored responses are grouped
    #[arg(long, value_enum, default_value_t = Grouping::Site)]
    pub by: Grouping,
    /// The number of segments of a path that make a prefix
    #[arg(long, default_value_t = UsageQuestion::default().depth)]
    pub depth: usize,
    /// The number of groups, the largest first
    #[arg(long, default_value_t = UsageQuestion::default().top)]
    pub top: usize,
    /// Count the responses of this site only
    #[arg(long)]
    pub site: Option<String>,
    /// The edge and the form of the output
    #[command(flatten)]
    pub edge: EdgeOptions,
}

impl ShowUsage {
    /// Asks the edge, and prints the answer.
    ///
    /// # Errors
    /// The edge does not answer, or cannot read its cache.
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let question = UsageQuestion {
            by: self.by,
            depth: self.depth,
            top: self.top,
            site: self.site.clone(),
        };
        let target = format!("/du?{}", question.query());
        let contents: CacheContents = EdgeClient::new(&self.edge)?.ask(&target, &[])?;
        let text = |contents: &CacheContents| text(contents, self.by);
        print(&self.edge, &contents, text, &notes(&contents))
    }
}

fn notes(contents: &CacheContents) -> Vec<String> {
    let cut = "the cache has more files than can be read in this time: the sizes are too small";
    let cut = contents.cut.then(|| cut.to_owned());
    let unreadable = (contents.unreadable > 0).then(|| {
        let number = contents.unreadable;
        format!("{number} files of the cache cannot be read: they are left out")
    });
    cut.into_iter().chain(unreadable).collect()
}

fn text(contents: &CacheContents, by: Grouping) -> String {
    let group = match by {
        Grouping::Site => &["SITE"][..],
        Grouping::Prefix => &["SITE", "PREFIX"],
        Grouping::Type => &["TYPE"],
    };
    let share = match by {
        Grouping::Site => &[">SHARE", ">USED %"][..],
        Grouping::Prefix | Grouping::Type => &[],
    };
    let all = [
        group,
        &[">OBJECTS", ">BYTES"],
        share,
        &[">OLDEST", ">LAST USE"],
    ];
    let columns = all.concat();
    let mut table = TextTable::new(&columns);
    for usage in &contents.groups {
        table.add_cells(cells(usage, by, contents.at_ms));
    }
    let mut text = table.text();
    if contents.more_groups > 0 {
        text += &format!("and {} more\n", contents.more_groups);
    }
    let (all, limit) = (size(contents.bytes), size(contents.limit_bytes));
    text + &format!("{} objects, {all} of {limit}\n", contents.objects)
}

/// The cells of a group.
fn cells(usage: &GroupUsage, by: Grouping, now: u64) -> Vec<String> {
    let site = site_name(&usage.site).to_owned();
    let unnamed = if usage.name.is_empty() {
        "-"
    } else {
        &usage.name
    };
    let mut cells = match by {
        Grouping::Site => vec![site],
        Grouping::Prefix => vec![site, unnamed.to_owned()],
        Grouping::Type => vec![unnamed.to_owned()],
    };
    cells.extend([usage.objects.to_string(), size(usage.bytes)]);
    if by == Grouping::Site {
        cells.extend(match usage.share_bytes {
            Some(share) => [size(share), percentage(float(usage.bytes), float(share))],
            None => ["-", "-"].map(str::to_owned),
        });
    }
    let ago = |at: Option<u64>| at.map_or("-".to_owned(), |at| duration(now.saturating_sub(at)));
    cells.extend([ago(usage.oldest_at_ms), ago(usage.used_at_ms)]);
    cells
}

fn size(size: u64) -> String {
    bytes(float(size))
}

#[expect(clippy::cast_precision_loss, reason = "rounded to one decimal")]
const fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents() -> CacheContents {
        let usage = |site: &str, name: &str, bytes, share_bytes| GroupUsage {
            site: site.to_owned(),
            name: name.to_owned(),
            bytes,
            objects: 2,
            share_bytes,
            oldest_at_ms: Some(1_000),
            used_at_ms: Some(70_000),
        };
        CacheContents {
            at_ms: 73_000,
            groups: vec![
                usage("assets", "a.test/img/", 3 << 20, Some(4 << 20)),
                usage("", "", 1_024, None),
            ],
            more_groups: 3,
            bytes: 5 << 20,
            objects: 9,
            limit_bytes: 1 << 30,
            limit_objects: 100,
            unreadable: 1,
            cut: true,
        }
    }

    fn lines(by: Grouping) -> Vec<String> {
        let text = text(&contents(), by);
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        text.lines().map(words).collect()
    }

    #[test]
    fn a_site_has_its_share_and_a_removed_one_has_none() {
        let expected = [
            "SITE OBJECTS BYTES SHARE USED % OLDEST LAST USE",
            "assets 2 3.0 MiB 4.0 MiB 75.0 1m12s 3.00 s",
            "- 2 1.0 KiB - - 1m12s 3.00 s",
            "and 3 more",
            "9 objects, 5.0 MiB of 1.0 GiB",
        ];
        assert_eq!(lines(Grouping::Site), expected);
    }

    #[test]
    fn prefixes_and_types_have_their_names() {
        let prefixes = lines(Grouping::Prefix);
        assert_eq!(prefixes[0], "SITE PREFIX OBJECTS BYTES OLDEST LAST USE");
        assert_eq!(prefixes[1], "assets a.test/img/ 2 3.0 MiB 1m12s 3.00 s");
        assert_eq!(lines(Grouping::Type)[2], "- 2 1.0 KiB 1m12s 3.00 s");
    }

    #[test]
    fn a_part_that_is_missing_is_named() {
        assert_eq!(notes(&contents()).len(), 2);
        assert!(notes(&CacheContents::default()).is_empty());
    }
}
