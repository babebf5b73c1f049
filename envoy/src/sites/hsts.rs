// SPDX-License-Identifier: Apache-2.0
//! `Strict-Transport-Security` (RFC 6797): how long clients must use only HTTPS.

use std::fmt;
use std::time::Duration;

use super::fields::max_age;

/// The value of `Strict-Transport-Security`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hsts {
    /// The time for which clients must use only HTTPS, in whole seconds.
    pub max_age: Duration,
    /// Whether this applies to all names below the host.
    pub include_subdomains: bool,
    /// Whether browsers may include the host in their built-in list.
    pub preload: bool,
}

impl Hsts {
    /// The description of the texts that [`Self::parse`] accepts.
    pub const ACCEPTED: &str = "a duration of whole seconds such as 365d, then, if the names below the host are \
                                included, `, include_subdomains`, and for 365d or more also `, preload`";

    /// Reads a duration, behind which the words `include_subdomains` and `preload` may follow after commas.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(',').map(str::trim);
        let max_age = max_age(words.next()?)?;
        let (include_subdomains, preload) = match [words.next(), words.next(), words.next()] {
            [None, ..] => (false, false),
            [Some("include_subdomains"), None, _] => (true, false),
            [Some("include_subdomains"), Some("preload"), None] => (true, true),
            _ => return None,
        };
        let hsts = Self {
            max_age,
            include_subdomains,
            preload,
        };
        hsts.may_be_listed().then_some(hsts)
    }

    /// Whether `preload` is absent, or the rest is what the list of hosts that browsers ship requires
    /// (hstspreload.org).
    pub const fn may_be_listed(&self) -> bool {
        const YEAR: u64 = 365 * 24 * 60 * 60;
        !self.preload || (self.include_subdomains && self.max_age.as_secs() >= YEAR)
    }
}

impl fmt::Display for Hsts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "max-age={}", self.max_age.as_secs())?;
        if self.include_subdomains {
            formatter.write_str("; includeSubDomains")?;
        }
        if self.preload {
            formatter.write_str("; preload")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Hsts;

    #[test]
    fn a_duration_and_words_are_the_value_of_the_header() {
        for (text, value) in [
            ("1h", Some("max-age=3600")),
            ("0s", Some("max-age=0")),
            (
                "30d, include_subdomains",
                Some("max-age=2592000; includeSubDomains"),
            ),
            (
                "365d,include_subdomains,preload",
                Some("max-age=31536000; includeSubDomains; preload"),
            ),
            ("364d, include_subdomains, preload", None),
            ("365d, preload", None),
            ("365d, includeSubDomains", None),
            ("365d, include_subdomains, preload, preload", None),
            ("500ms", None),
            ("31536000", None),
            ("on", None),
        ] {
            let read = Hsts::parse(text).map(|hsts| hsts.to_string());
            assert_eq!(read.as_deref(), value, "{text}");
        }
    }
}
