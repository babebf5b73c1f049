// SPDX-License-Identifier: Apache-2.0
//! Declared numbers: purges that the policy states. The policy and the URL alone decide, so they need no state.

use crate::http::url::escaping::{Escaping, append_literal};
use crate::policy::Policy;
use crate::policy::forms::error::PolicyError;
use crate::policy::forms::form::{Form, Kind, Whole, read_text};
use crate::policy::forms::names::{SiteName, text};
use crate::policy::forms::section::section;

/// Greatest number of declared numbers of an edge.
pub const MAX_DECLARED: usize = 64;
/// Greatest declared number: it is exact as a number in Envoy's JSON, a double.
const MAX_NUMBER: u64 = 1 << 53;
/// Longest declared prefix in bytes, as of a purge.
const MAX_PREFIX_BYTES: usize = 1_024;

text!(
    /// The beginning of paths.
    PathPrefix => String,
    "the beginning of paths: a slash at its start, at most 1024 bytes, no space, ? or #",
    "^/[^\\x00-\\x20\\x7F?#]{0,1023}$",
    |text| {
        let is_odd = |byte: u8| byte <= b' ' || matches!(byte, b'?' | b'#' | 0x7F);
        let fits = text.starts_with('/') && text.len() <= MAX_PREFIX_BYTES;
        (fits && !text.bytes().any(is_odd)).then(|| text.to_owned())
    }
);

section! {
    /// A number in the keys of the URLs whose paths begin with a prefix. Another number purges these URLs.
    pub struct DeclaredPurge {
        /// The beginning of paths without their query, behind a bucket's prefix, as in rules: /assets/. Of several
        /// prefixes of a path only the longest counts.
        prefix: String as PathPrefix,
        /// The number. A change of it purges, upwards or downwards. A former number makes the responses from its time
        /// valid again, except responses that a purge has taken since.
        number: u64 as Whole<1, MAX_NUMBER>,
        /// Whether a change of the number makes the responses stale, so that they are revalidated. Otherwise they
        /// are out of reach, until the number is the former one again.
        soft: bool = false,
        /// The name of the site to whose paths the prefix applies. Default: all sites.
        site: Option<String> as Option<SiteName>,
    }
}

/// The declared numbers of one site, the longest prefix first. The prefixes have the spelling of canonical paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeclaredPurges(Vec<DeclaredPurge>);

impl DeclaredPurges {
    /// Compiles the numbers that apply to the site of that name, which may be empty.
    pub(in crate::policy) fn of_site(
        all: &[DeclaredPurge],
        site: &str,
        kind: Kind,
    ) -> Result<Self, PolicyError> {
        let mut declared: Vec<DeclaredPurge> = Vec::new();
        for (index, purge) in all.iter().enumerate() {
            if purge.site.as_ref().is_some_and(|name| name != site) {
                continue;
            }
            let refuse = |expected| {
                let error = PolicyError::text("prefix", &purge.prefix, expected);
                error.within(&format!("purge.declared[{index}]"))
            };
            let prefix = canonical(&purge.prefix, kind)
                .ok_or_else(|| refuse("a path without broken escapes"))?;
            if declared.iter().any(|other| other.prefix == prefix) {
                return Err(refuse("another prefix than the others of the site"));
            }
            declared.push(DeclaredPurge {
                prefix,
                ..purge.clone()
            });
        }
        declared.sort_by_key(|purge| std::cmp::Reverse(purge.prefix.len()));
        Ok(Self(declared))
    }

    /// Whether no number is declared.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether any number is soft.
    pub fn has_soft(&self) -> bool {
        self.0.iter().any(|purge| purge.soft)
    }

    fn hard(&self, path: &str) -> u64 {
        self.number(path, false)
    }

    pub(crate) fn soft(&self, path: &str) -> u64 {
        self.number(path, true)
    }

    fn number(&self, path: &str, soft: bool) -> u64 {
        let longest = self.0.iter().find(|purge| path.starts_with(&purge.prefix));
        let number = longest.filter(|purge| purge.soft == soft);
        number.map_or(0, |purge| purge.number)
    }
}

impl Policy {
    /// The declared number in the key of a path towards the store; 0 if there is none.
    pub fn declared_hard(&self, store_path: &str) -> u64 {
        match self.declared.is_empty() {
            true => 0,
            false => self.declared.hard(self.client_path(store_path)),
        }
    }
}

/// The prefix in the spelling of canonical paths; `None` if it contains text that no path has.
fn canonical(prefix: &str, kind: Kind) -> Option<String> {
    let escaping = match kind {
        Kind::Bucket => Escaping::Strict,
        Kind::Http => Escaping::Unreserved,
    };
    let mut canonical = Vec::with_capacity(prefix.len());
    append_literal(&mut canonical, prefix.as_bytes(), escaping)?;
    String::from_utf8(canonical).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::policy::purge::declared::*;
    use crate::sites::Sites;

    fn parse(kind: &str, declared: &Value) -> Result<DeclaredPurges, String> {
        let mut document =
            json!({ "origin": { "kind": kind }, "purge": { "declared": declared.clone() } });
        if kind == "bucket" {
            document["origin"]["authority"] = json!("bucket.test");
            document["origin"]["bucket"] = json!("assets");
        }
        let policy = Policy::parse(document.to_string().as_bytes());
        policy
            .map(|policy| policy.declared.clone())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_longest_prefix_decides() {
        let declared = json!([
            { "prefix": "/", "number": 7 },
            { "prefix": "/assets/", "number": 41 },
            { "prefix": "/assets/news", "number": 3, "soft": true },
        ]);
        let declared = parse("http", &declared).unwrap();
        for (path, hard, soft) in [
            ("/", 7, 0),
            ("/assets", 7, 0),
            ("/assets/", 41, 0),
            ("/assets/a.css", 41, 0),
            ("/assets/news.html", 0, 3),
        ] {
            assert_eq!(
                (declared.hard(path), declared.soft(path)),
                (hard, soft),
                "{path}"
            );
        }
        assert!(declared.has_soft());
        let none = parse("http", &json!([])).unwrap();
        assert!(none.is_empty() && !none.has_soft() && none.hard("/") == 0);
    }

    #[test]
    fn a_prefix_means_all_spellings_of_its_paths() {
        for kind in ["http", "bucket"] {
            let declared = json!([{ "prefix": "/%61/\u{fc}", "number": 1 }]);
            assert_eq!(
                parse(kind, &declared).unwrap().hard("/a/%C3%BC/x"),
                1,
                "{kind}"
            );
        }
    }

    #[test]
    fn other_declarations_are_refused() {
        for (declared, error) in [
            (
                json!([{ "prefix": "a", "number": 1 }]),
                "purge.declared[0].prefix: \"a\": expected the beginning of paths",
            ),
            (
                json!([{ "prefix": "/a b", "number": 1 }]),
                "purge.declared[0].prefix: \"/a b\": expected the beginning",
            ),
            (
                json!([{ "prefix": "/%4", "number": 1 }]),
                "purge.declared[0].prefix: \"/%4\": expected a path without broken",
            ),
            (
                json!([{ "prefix": "/", "number": 0 }]),
                "purge.declared[0].number: 0: expected a whole number from 1",
            ),
            (
                json!([{ "prefix": "/" }]),
                "purge.declared[0].number: required",
            ),
            (
                json!([{ "prefix": "/a", "number": 1 }, { "prefix": "/%61", "number": 2 }]),
                "purge.declared[1].prefix: \"/%61\": expected another prefix",
            ),
            (
                json!([{ "prefix": "/a", "number": 1, "site": "shop" }]),
                "purge.declared[0].site: \"shop\": expected the name of a site",
            ),
            (
                Value::from(vec![
                    json!({ "prefix": "/a", "number": 1 });
                    MAX_DECLARED + 1
                ]),
                "purge.declared: 65 prefixes: expected at most 64",
            ),
        ] {
            let found = parse("http", &declared).unwrap_err();
            assert!(found.starts_with(error), "{found}");
        }
    }

    #[test]
    fn a_number_may_be_for_one_site() {
        let site = |name: &str| {
            let hosts = [format!("{name}.test")];
            json!({ "name": name, "hosts": hosts, "policy": { "origin": { "kind": "http" } } })
        };
        let document = |declared: Value| {
            let edge = json!({ "purge": { "declared": declared } });
            json!({ "edge": edge, "sites": [site("shop"), site("wiki")] }).to_string()
        };
        let declared = json!([
            { "prefix": "/", "number": 1 },
            { "prefix": "/a", "number": 2, "site": "shop" },
        ]);
        let sites = Sites::parse(document(declared).as_bytes()).unwrap();
        let numbers: Vec<u64> = sites
            .sites
            .iter()
            .map(|site| site.policy.declared.hard("/a"))
            .collect();
        assert_eq!(numbers, [2, 1]);
        let unknown = json!([{ "prefix": "/", "number": 1, "site": "blog" }]);
        let error = Sites::parse(document(unknown).as_bytes()).unwrap_err();
        let error = error.to_string();
        assert!(
            error.starts_with("edge.purge.declared[0].site: \"blog\": expected the name of a site"),
            "{error}"
        );
    }
}
