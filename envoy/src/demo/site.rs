// SPDX-License-Identifier: Apache-2.0
//! The demo's site, whose objects are uploaded to the bucket.

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
