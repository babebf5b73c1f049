// SPDX-License-Identifier: Apache-2.0
//! A bucket: its name, the prefix in it, and how requests address it.

use serde::Serialize;
use sluice_core::policy::{is_bucket_name, is_key};

use super::Endpoint;

/// A bucket, or the part of it below a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The bucket's name.
    pub name: String,
    /// The prefix of every object key: without a slash at either end, empty for the whole bucket.
    pub prefix: String,
    /// The server of the bucket's API.
    pub endpoint: Endpoint,
    /// The place of the bucket's name in a URL.
    pub addressing: Addressing,
    /// The region that requests are signed for.
    pub region: String,
}

/// The place of a bucket's name in a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Addressing {
    /// `https://HOST/BUCKET/KEY`
    Path,
    /// `https://BUCKET.HOST/KEY`
    VirtualHost,
}

/// A bucket's name and prefix, as written in `SLUICE_ORIGIN=s3://…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketName {
    /// The bucket's name.
    pub name: String,
    /// The key prefix.
    pub prefix: String,
}

impl BucketName {
    /// Reads the part of `SLUICE_ORIGIN` after `s3://`.
    pub fn parse(text: &str) -> Option<Self> {
        let (name, prefix) = text.split_once('/').unwrap_or((text, ""));
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        let fits = is_bucket_name(name) && (prefix.is_empty() || is_key(prefix));
        fits.then(|| Self {
            name: name.into(),
            prefix: prefix.into(),
        })
    }

    /// The bucket at `endpoint`, or at AWS if there is none. The user's addressing, if set, replaces the usual one.
    pub fn placed(
        self,
        endpoint: Option<Endpoint>,
        region: &str,
        addressing: Option<Addressing>,
    ) -> Bucket {
        match endpoint {
            Some(endpoint) => self.at(endpoint, region, addressing.unwrap_or(Addressing::Path)),
            None => self.at_aws(region, addressing),
        }
    }

    /// The bucket at AWS. The user's addressing, if set, replaces the usual one of AWS.
    pub fn at_aws(self, region: &str, addressing: Option<Addressing>) -> Bucket {
        let domain = if region.starts_with("cn-") {
            "amazonaws.com.cn"
        } else {
            "amazonaws.com"
        };
        let endpoint = Endpoint {
            tls: true,
            host: format!("s3.{region}.{domain}"),
            port: 443,
        };
        // AWS's certificates cover one label only, so a name with dots must be in the path.
        let usual = if self.name.contains('.') {
            Addressing::Path
        } else {
            Addressing::VirtualHost
        };
        let addressing = addressing.unwrap_or(usual);
        self.at(endpoint, region, addressing)
    }

    /// The bucket at an endpoint.
    pub fn at(self, endpoint: Endpoint, region: &str, addressing: Addressing) -> Bucket {
        let host = match addressing {
            Addressing::Path => endpoint.host,
            Addressing::VirtualHost => format!("{}.{}", self.name, endpoint.host),
        };
        Bucket {
            name: self.name,
            prefix: self.prefix,
            endpoint: Endpoint { host, ..endpoint },
            addressing,
            region: region.into(),
        }
    }
}

/// Whether a text can be the name of a region. The regions of AWS have no capitals; OpenStack's usual one is
/// `RegionOne`.
pub fn is_region(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=32).contains(&text.len()) && text.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_may_have_a_prefix() {
        let bucket = |text| BucketName::parse(text).map(|bucket| (bucket.name, bucket.prefix));
        assert_eq!(bucket("site"), Some(("site".into(), String::new())));
        assert_eq!(bucket("site/"), Some(("site".into(), String::new())));
        assert_eq!(
            bucket("my.site-1/a b/c/"),
            Some(("my.site-1".into(), "a b/c".into()))
        );
        for text in [
            "",
            "ab",
            "Site",
            "si_te",
            "-site",
            "site/../x",
            "site//x",
            "site/./x",
            "a..b",
            "site/a\nb",
        ] {
            assert_eq!(bucket(text), None, "{text}");
        }
    }

    #[test]
    fn aws_buckets_are_addressed_by_host_unless_the_name_has_dots() {
        let aws = |name: &str, region| BucketName::parse(name).unwrap().at_aws(region, None);
        let plain = aws("site", "eu-west-1");
        assert_eq!(
            plain.endpoint.authority(),
            "site.s3.eu-west-1.amazonaws.com"
        );
        assert_eq!(plain.addressing, Addressing::VirtualHost);
        let dotted = aws("my.site", "cn-north-1");
        assert_eq!(
            dotted.endpoint.authority(),
            "s3.cn-north-1.amazonaws.com.cn"
        );
        assert_eq!(dotted.addressing, Addressing::Path);
    }

    #[test]
    fn a_region_is_one_word() {
        for region in ["us-east-1", "auto", "RegionOne", "s_1", "a"] {
            assert!(is_region(region), "{region}");
        }
        for text in ["", "mars one", "a.b", "a/b", "é", &"a".repeat(33)] {
            assert!(!is_region(text), "{text}");
        }
    }

    #[test]
    fn an_endpoint_has_the_buckets_name_where_the_user_says() {
        let at = |addressing| {
            let endpoint = Endpoint::parse("http://s3.test:9000").unwrap();
            let bucket = BucketName::parse("my.site/x").unwrap();
            let bucket = bucket.at(endpoint, "us-east-1", addressing);
            (bucket.endpoint.authority(), bucket.prefix)
        };
        let prefix = || "x".to_owned();
        assert_eq!(at(Addressing::Path), ("s3.test:9000".into(), prefix()));
        let named = "my.site.s3.test:9000".to_owned();
        assert_eq!(at(Addressing::VirtualHost), (named, prefix()));
    }
}
