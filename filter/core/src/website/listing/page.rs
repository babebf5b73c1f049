// SPDX-License-Identifier: Apache-2.0
//! A page of a listing, in HTML or JSON.

use serde_json::json;

use super::bucket_list::BucketList;
use super::entry::Entry;
use super::question::ListedDirectory;
use super::selection::{PageFormat, Selection};
use crate::http::url::escaping::unescaped;

/// The most bytes of the rows of a page. Only a response below 1 MiB can replace that of an index document. The rows
/// that do not fit are on the next page.
pub const MAX_PAGE_BYTES: usize = 900 << 10;

/// A page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The body. Empty if the directory does not exist: it has no entry that the listing shows.
    pub body: String,
    /// The number of objects and directories that no URL names, and that the page therefore leaves out.
    pub left_out: u64,
}

/// The rows of a page.
struct Rows {
    directories: Vec<String>,
    objects: Vec<String>,
    left_out: u64,
    /// The last entry of the page, if more entries follow.
    last: Option<String>,
}

impl Page {
    /// Makes the selected page of a directory from the bucket's answer.
    pub fn of(directory: &ListedDirectory<'_>, selection: &Selection, list: &BucketList) -> Self {
        let prefix = directory.key_prefix();
        let rows = Rows::of(directory, selection.format, list, &prefix);
        // The console of S3 creates an object with the name of an empty directory.
        let has_marker =
            !prefix.is_empty() && list.objects.iter().any(|object| object.key == prefix);
        let exists =
            !rows.directories.is_empty() || !rows.objects.is_empty() || rows.last.is_some();
        let body = match selection.format {
            _ if !exists && !has_marker => String::new(),
            PageFormat::Html => html(directory, selection, &rows),
            PageFormat::Json => json(selection, &rows),
        };
        Self {
            body,
            left_out: rows.left_out,
        }
    }
}

impl Rows {
    fn of(
        directory: &ListedDirectory<'_>,
        format: PageFormat,
        list: &BucketList,
        prefix: &str,
    ) -> Self {
        let objects = list.objects.iter().filter(|object| object.key != prefix);
        let objects = objects.map(|object| (object.key.as_str(), Some(object)));
        let directories = list.directories.iter().map(|key| (key.as_str(), None));
        let mut found: Vec<_> = objects.chain(directories).collect();
        found.sort_unstable_by_key(|(key, _)| *key);
        let mut rows = Self {
            directories: Vec::new(),
            objects: Vec::new(),
            left_out: 0,
            last: None,
        };
        let (mut bytes, mut last) = (0, None);
        let mut is_cut = list.is_truncated;
        for (key, object) in found {
            let entry = Entry::of(key.strip_prefix(prefix).unwrap_or_default(), object);
            let row = rows.row(directory, format, &entry);
            bytes += row.as_ref().map_or(0, String::len);
            if bytes > MAX_PAGE_BYTES {
                is_cut = true;
                break;
            }
            last = Some(entry.full_name());
            let of_kind = match object {
                Some(_) => &mut rows.objects,
                None => &mut rows.directories,
            };
            of_kind.extend(row);
        }
        rows.last = last.filter(|_| is_cut);
        rows
    }

    /// The row of an entry, unless the listing does not show it.
    fn row(
        &mut self,
        directory: &ListedDirectory<'_>,
        format: PageFormat,
        entry: &Entry<'_>,
    ) -> Option<String> {
        if directory.listing.hides(entry.name) {
            return None;
        }
        if !entry.has_url(directory) {
            self.left_out += 1;
            return None;
        }
        Some(match format {
            PageFormat::Html => html_row(entry),
            PageFormat::Json => json_row(entry),
        })
    }

    fn all(&self) -> impl Iterator<Item = &str> {
        self.directories
            .iter()
            .chain(&self.objects)
            .map(String::as_str)
    }
}

fn html(directory: &ListedDirectory<'_>, selection: &Selection, rows: &Rows) -> String {
    let policy = directory.policy;
    let path = [&policy.key.strip_prefix, directory.client_path()].concat();
    let path =
        String::from_utf8_lossy(&unescaped(path.as_bytes()).collect::<Vec<_>>()).into_owned();
    let title = escape_html(&path);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>Index of {title}</title>\n<h1>Index of {title}</h1>\n<table>\n\
         <tr><th>Name<th>Size<th>Last modified\n"
    );
    if !directory.is_top() {
        page.push_str("<tr><td><a href=\"../\">../</a><td><td>\n");
    }
    page.extend(rows.all());
    page.push_str("</table>\n");
    if let Some(last) = &rows.last {
        let query = escape_html(&selection.next_query(last));
        page.push_str(&format!(
            "<p><a rel=\"next\" href=\"{query}\">Next page</a>\n"
        ));
    }
    page
}

fn html_row(entry: &Entry<'_>) -> String {
    let (reference, name) = (entry.reference(), escape_html(&entry.full_name()));
    let (size, modified) = match entry.object {
        Some(object) => (object.size.to_string(), day_and_time(&object.modified)),
        None => (String::new(), String::new()),
    };
    format!("<tr><td><a href=\"{reference}\">{name}</a><td>{size}<td>{modified}\n")
}

/// A time to the second, such as `2026-01-31 23:59:59`.
fn day_and_time(time: &str) -> String {
    time.get(..19).unwrap_or_default().replace('T', " ")
}

fn json(selection: &Selection, rows: &Rows) -> String {
    let entries = rows.all().collect::<Vec<_>>().join(",");
    let next = rows.last.as_ref().map(|last| selection.next_query(last));
    format!("{{\"entries\":[{entries}],\"next\":{}}}\n", json!(next))
}

fn json_row(entry: &Entry<'_>) -> String {
    match entry.object {
        Some(object) => json!({
            "name": entry.name,
            "type": "file",
            "size": object.size,
            "mtime": object.modified,
        }),
        None => json!({ "name": entry.name, "type": "directory" }),
    }
    .to_string()
}

/// Escapes a text for HTML, in an element and in an attribute.
fn escape_html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(character),
        }
    }
    escaped
}
