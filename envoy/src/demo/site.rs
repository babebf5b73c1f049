// SPDX-License-Identifier: Apache-2.0
//! The demo's site, as it is uploaded to the bucket.

/// One object of the bucket.
pub struct Object {
    /// Its key.
    pub key: &'static str,
    /// Its Content-Type.
    pub media_type: &'static str,
    /// Its content.
    pub body: &'static [u8],
}

/// The file of an object: named like its key, unless that would be an awkward name for a file.
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

/// All of it.
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
