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

macro_rules! objects {
    ($($key:literal $media_type:literal)*) => {
        &[$(Object { key: $key, media_type: $media_type, body: include_bytes!(concat!("../demo/", $key)) }),*]
    };
}

/// All of it.
pub const OBJECTS: &[Object] = objects! {
    "index.html" "text/html; charset=utf-8"
};
