// SPDX-License-Identifier: Apache-2.0
//! Compaction: a feed that is too large has lines that cover more.
//!
//! A line that replaces two others has the number of the newer one. So a reader that lacks any of the two applies it.

use super::line::{FeedLine, FeedSubject, MAX_PREFIX_BYTES, directory};

/// Replaces lines until at most `most` are left, of at most `bytes` bytes. Pairs of URLs with the longest common
/// directory go first, then surrogate keys of one site, then all lines of named sites. Only if that does not suffice, everything is purged.
pub(super) fn compact(lines: &mut Vec<FeedLine>, most: usize, bytes: usize) {
    let mut size = Size::of(lines);
    if size.fits(most, bytes) {
        return;
    }
    drop_covered(lines);
    let (mut urls, mut others): (Vec<_>, Vec<_>) = std::mem::take(lines)
        .into_iter()
        .partition(|line| line.subject.address().is_some());
    size = Size::of(&urls).and(Size::of(&others));
    merge_urls(&mut urls, &mut size, most, bytes);
    if !size.fits(most, bytes) {
        others = by_site(others);
        size = Size::of(&urls).and(Size::of(&others));
    }
    if !size.fits(most, bytes) {
        // A site that fills the feed loses its own responses, and no other site does.
        let of_site = |line: &mut FeedLine| line.subject.site().is_some();
        others.extend(urls.extract_if(.., of_site));
        others = by_site(others);
        size = Size::of(&urls).and(Size::of(&others));
    }
    lines.append(&mut urls);
    lines.append(&mut others);
    if !size.fits(most, bytes) {
        let all = std::mem::take(lines);
        lines.extend(all.into_iter().reduce(|one, other| FeedLine {
            subject: FeedSubject::Everything { site: None },
            ..newer(one, other)
        }));
    }
    lines.sort_by_key(|line| line.number);
}

/// Number of lines and of their bytes.
#[derive(Clone, Copy)]
struct Size {
    lines: usize,
    bytes: usize,
}

impl Size {
    fn of(lines: &[FeedLine]) -> Self {
        Self {
            lines: lines.len(),
            bytes: lines.iter().map(bytes_of).sum(),
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            lines: self.lines + other.lines,
            bytes: self.bytes + other.bytes,
        }
    }

    fn fits(self, lines: usize, bytes: usize) -> bool {
        self.lines <= lines && self.bytes <= bytes
    }
}

/// Length of a line with its end.
fn bytes_of(line: &FeedLine) -> usize {
    line.to_string().len() + 1
}

/// Drops the lines that a later hard purge of everything covers.
fn drop_covered(lines: &mut Vec<FeedLine>) {
    let everything = FeedSubject::Everything { site: None };
    let covers = |line: &FeedLine| line.hard && line.subject == everything;
    if let Some(last) = lines.iter().rposition(covers) {
        lines.drain(..last);
    }
}

/// Merges neighbours in the order of their URLs, those with the longest common directory first.
fn merge_urls(lines: &mut Vec<FeedLine>, size: &mut Size, most: usize, bytes: usize) {
    let text = |line: &FeedLine| address_of(line).to_owned();
    lines.sort_by_cached_key(|line| (line.subject.site().map(str::to_owned), text(line)));
    let pairs = lines.iter().zip(lines.iter().skip(1));
    let mut common: Vec<usize> = pairs.map(|(one, other)| common_of(one, other)).collect();
    while !size.fits(most, bytes) {
        let best = common.iter().enumerate().max_by_key(|(_, common)| **common);
        let Some((at, &length)) = best.filter(|(_, length)| **length > 0) else {
            return;
        };
        common.remove(at);
        let other = lines.remove(at + 1);
        let Some(line) = lines.get_mut(at) else {
            return;
        };
        size.bytes = size.bytes.saturating_sub(bytes_of(line) + bytes_of(&other));
        *line = merged(line.clone(), other, length);
        size.bytes += bytes_of(line);
        size.lines -= 1;
    }
}

/// The URL or the prefix of a line, without the event that it belongs to.
fn address_of(line: &FeedLine) -> &str {
    let address = line.subject.address().unwrap_or_default();
    address.split('#').next().unwrap_or_default()
}

/// Length of the directory that two URLs have in common; for the same URL, its own length; 0 if they have none.
fn common_of(one: &FeedLine, other: &FeedLine) -> usize {
    if one.subject.site() != other.subject.site() {
        return 0;
    }
    let (one, other) = (address_of(one), address_of(other));
    if one == other {
        return one.len();
    }
    let pairs = one.bytes().zip(other.bytes());
    let same = pairs.take_while(|(one, other)| one == other).count();
    directory(one, same.min(MAX_PREFIX_BYTES)).map_or(0, str::len)
}

/// The line for two lines whose URLs have the first `length` bytes in common.
fn merged(one: FeedLine, other: FeedLine, length: usize) -> FeedLine {
    let is_url = |line: &FeedLine| matches!(line.subject, FeedSubject::Url { .. });
    if one.subject == other.subject
        || (is_url(&one) && is_url(&other) && address_of(&one) == address_of(&other))
    {
        return newer(one, other);
    }
    let start = address_of(&one).get(..length);
    let subject = FeedSubject::Prefix {
        site: one.subject.site().map(str::to_owned),
        prefix: start.unwrap_or_default().to_owned(),
    };
    FeedLine {
        subject,
        ..newer(one, other)
    }
}

/// The newer of two lines, which is hard if one of them is.
fn newer(one: FeedLine, other: FeedLine) -> FeedLine {
    let hard = one.hard || other.hard;
    let newer = if one.number > other.number {
        one
    } else {
        other
    };
    FeedLine { hard, ..newer }
}

/// One purge of everything for the lines of each site.
fn by_site(lines: Vec<FeedLine>) -> Vec<FeedLine> {
    let mut sites: Vec<FeedLine> = Vec::new();
    for line in lines {
        let site = line.subject.site().map(str::to_owned);
        let subject = FeedSubject::Everything { site };
        match sites.iter_mut().find(|other| other.subject == subject) {
            Some(other) => {
                let newer = newer(other.clone(), line);
                *other = FeedLine { subject, ..newer };
            }
            None => sites.push(FeedLine { subject, ..line }),
        }
    }
    sites
}
