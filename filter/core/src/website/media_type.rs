// SPDX-License-Identifier: Apache-2.0
//! A media type for objects that were uploaded without one.

use crate::policy::WebsitePolicy;

/// Media types that S3's clients and servers write for "none".
pub const NONE: [&str; 2] = ["application/octet-stream", "binary/octet-stream"];

/// Media types by extension, one a line, in the order of the extensions. `filter/core/media_types.py` writes the file
/// from a kept database.
const TABLE: &str = include_str!("media_types.txt");

impl WebsitePolicy {
    /// Whether any object gets a media type because it was uploaded without one.
    pub fn guesses_media_types(&self) -> bool {
        self.guess_content_type || !self.content_types.is_empty()
    }
}

/// Returns the media type that replaces `current`, the response's own, for an object of that path (with or without a
/// query); `None` if `current` stays.
pub fn missing_media_type<'a>(
    site: &'a WebsitePolicy,
    path: &str,
    current: Option<&str>,
) -> Option<&'a str> {
    if !site.guesses_media_types() {
        return None;
    }
    let said = |current: &str| {
        let kind = current.split(';').next().unwrap_or_default().trim();
        !kind.is_empty() && !NONE.iter().any(|none| kind.eq_ignore_ascii_case(none))
    };
    if current.is_some_and(said) {
        return None;
    }
    let extension = extension(path)?.to_ascii_lowercase();
    let listed = site
        .content_types
        .iter()
        .find(|(name, _)| *name == extension);
    if let Some((_, media_type)) = listed {
        return Some(media_type);
    }
    let known = || table().find(|(name, _)| *name == extension);
    let (_, media_type) = site.guess_content_type.then(known)??;
    Some(media_type)
}

/// The extensions and their media types.
fn table() -> impl Iterator<Item = (&'static str, &'static str)> {
    TABLE.lines().filter_map(|line| line.split_once(' '))
}

fn extension(path: &str) -> Option<&str> {
    let path = path.split(['?', '#']).next()?;
    let name = path.rsplit('/').next()?;
    name.rsplit_once('.').map(|(_, extension)| extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_the_table_has_an_extension_and_a_media_type() {
        let read: Vec<_> = table().collect();
        assert!(read.is_sorted_by(|(former, _), (latter, _)| former < latter));
        assert_eq!(read.len(), TABLE.lines().count());
        assert!(read.len() >= 200, "{} extensions", read.len());
        let is_extension = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        for (extension, media_type) in read {
            assert!(extension.bytes().all(is_extension), "{extension}");
            assert!(media_type.contains('/'), "{extension}: {media_type}");
        }
    }
}
