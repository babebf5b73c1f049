// SPDX-License-Identifier: Apache-2.0
//! The demo's site, whose objects are uploaded to the bucket.

use std::fmt::Write as _;

/// Key of the large object, which the edge stores in slices. Each line of the object is its own offset.
pub const LARGE: &str = "data/offsets.bin";
/// Size of the large object in bytes: 24 slices of the default size.
pub const LARGE_BYTES: usize = 24 << 20;
/// Size of a line of the large object in bytes.
const LINE: usize = 64;

/// The content of the large object.
pub fn large() -> String {
    let mut lines = String::with_capacity(LARGE_BYTES);
    for offset in (0..LARGE_BYTES).step_by(LINE) {
        // Writing to a string cannot fail.
        let _ = writeln!(lines, "{offset:width$}", width = LINE - 1);
    }
    lines
}

/// An object of the site.
pub struct Object {
    /// The object's key.
    pub key: &'static str,
    /// The object's `Content-Type`.
    pub media_type: &'static str,
    /// The object's content.
    pub body: &'static [u8],
}

/// The file of an object. It is named like the key, unless the key is an awkward name for a file.
macro_rules! file {
    ($key:literal) => {
        include_bytes!(concat!("../../demo/", $key))
    };
    ($key:literal $file:literal) => {
        include_bytes!(concat!("../../demo/", $file))
    };
}

macro_rules! objects {
    ($($key:literal $(from $file:literal)? as $media_type:literal)*) => {
        &[$(Object { key: $key, media_type: $media_type, body: file!($key $($file)?) }),*]
    };
}

/// All objects of the site.
pub const OBJECTS: &[Object] = objects! {
    "index.html" as "text/html; charset=utf-8"
    "style.css" as "text/css; charset=utf-8"
    "app.js" as "text/javascript; charset=utf-8"
    "images/aurora.svg" as "image/svg+xml"
    "images/dunes.svg" as "image/svg+xml"
    "images/lattice.svg" as "image/svg+xml"
    "images/ripples.svg" as "image/svg+xml"
    "images/sluice.svg" as "image/svg+xml"
    "data/planets.json" as "application/json"
    "data/rivers.csv" as "text/csv; charset=utf-8"
    "data/feed.xml" as "application/atom+xml"
    "text/poem.txt" as "text/plain; charset=utf-8"
    "text/a+b & c.txt" from "text/plus.txt" as "text/plain; charset=utf-8"
    "text/größe.txt" from "text/umlaut.txt" as "text/plain; charset=utf-8"
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_the_large_object_is_its_offset() {
        let large = large();
        assert_eq!(large.len(), LARGE_BYTES);
        let offset = LARGE_BYTES / 2;
        let line = large.get(offset..offset + LINE);
        assert_eq!(line, Some(format!("{offset:>63}\n").as_str()));
    }
}
