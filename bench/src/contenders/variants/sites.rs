// SPDX-License-Identifier: Apache-2.0
//! Edges with many named sites: `sites-100`.

use serde_json::json;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Number of sites that the change of that name gives the edge, if it is such a change.
pub fn number(name: &str) -> Option<usize> {
    let number = name.strip_prefix("sites-")?.parse().ok();
    number.filter(|number| *number > 0)
}

/// Writes the file of this many sites, each with its own host and origin. The site in the middle has the host of
/// `address`, for which the clients ask.
pub fn write(folder: &Path, number: usize, origin: &str, address: SocketAddr) -> PathBuf {
    let site = |index: usize| {
        let host = match index == number / 2 {
            true => address.ip().to_string(),
            false => format!("site-{index}.example.com"),
        };
        json!({"name": format!("site-{index}"), "hosts": [host], "origin": origin})
    };
    let sites: Vec<_> = (0..number).map(site).collect();
    let file = folder.join("sites.json");
    std::fs::write(&file, json!({ "sites": sites }).to_string()).unwrap();
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_change_says_how_many_sites() {
        assert_eq!(number("sites-100"), Some(100));
        for name in ["sites-0", "sites-", "sites", "edge"] {
            assert_eq!(number(name), None, "{name}");
        }
    }
}
