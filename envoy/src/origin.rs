// SPDX-License-Identifier: Apache-2.0
//! What stands behind the edge: a bucket, or any HTTP server.

use std::fmt;
use std::net::IpAddr;

/// What stands behind the edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// An S3-compatible bucket, reached with signed requests.
    Bucket(Bucket),
    /// Any HTTP server.
    Http(Endpoint),
}

impl Origin {
    /// Where Envoy connects to.
    pub fn endpoint(&self) -> &Endpoint {
        match self {
            Self::Bucket(bucket) => &bucket.endpoint,
            Self::Http(endpoint) => endpoint,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bucket(bucket) => {
                let slash = if bucket.prefix.is_empty() { "" } else { "/" };
                write!(
                    out,
                    "s3://{}{slash}{} at {}",
                    bucket.name, bucket.prefix, bucket.endpoint
                )
            }
            Self::Http(endpoint) => endpoint.fmt(out),
        }
    }
}

/// A bucket, or the part of it below a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The bucket's name.
    pub name: String,
    /// What every object key begins with: no slash at either end, empty for the whole bucket.
    pub prefix: String,
    /// Where the bucket's API is.
    pub endpoint: Endpoint,
    /// Whether the bucket's name stands in the path or in the host.
    pub addressing: Addressing,
    /// The region that requests are signed for.
    pub region: String,
}

/// Where a bucket's name stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressing {
    /// `https://HOST/BUCKET/KEY`
    Path,
    /// `https://BUCKET.HOST/KEY`
    VirtualHost,
}

impl Addressing {
    /// Reads [`Addressing::name`].
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Path, Self::VirtualHost]
            .into_iter()
            .find(|addressing| addressing.name() == text)
    }

    /// The policy document's word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::VirtualHost => "virtual_host",
        }
    }
}

/// The part of `ORIGIN=s3://…` that the variable itself says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketName {
    /// The bucket's name.
    pub name: String,
    /// The key prefix.
    pub prefix: String,
}

impl BucketName {
    /// Reads what follows `s3://`.
    pub fn parse(text: &str) -> Option<Self> {
        let (name, prefix) = text.split_once('/').unwrap_or((text, ""));
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        (is_bucket_name(name) && is_key_prefix(prefix)).then(|| Self {
            name: name.into(),
            prefix: prefix.into(),
        })
    }

    /// How the bucket is addressed at AWS, unless somebody says so: AWS's certificates cover one label only, so a
    /// name with dots has to stand in the path.
    fn usual_addressing(&self) -> Addressing {
        if self.name.contains('.') {
            Addressing::Path
        } else {
            Addressing::VirtualHost
        }
    }

    /// The bucket at AWS itself.
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
        let addressing = addressing.unwrap_or(self.usual_addressing());
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

/// S3's rules for names: 3 to 63 lower-case letters, digits, dots and hyphens.
fn is_bucket_name(name: &str) -> bool {
    let outer = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    let bytes = name.as_bytes();
    (3..=63).contains(&bytes.len())
        && outer(bytes.first())
        && outer(bytes.last())
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(byte))
        && !name.contains("..")
}

/// A prefix is taken as it stands, so it must be one that no path can leave or respell.
fn is_key_prefix(prefix: &str) -> bool {
    prefix.is_empty()
        || prefix.split('/').all(|segment| {
            !matches!(segment, "" | "." | "..") && !segment.contains(char::is_control)
        })
}

/// A server's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Whether to speak TLS to it.
    pub tls: bool,
    /// A host name, or an IP address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl Endpoint {
    /// Reads `http://HOST[:PORT]` or `https://HOST[:PORT]`.
    pub fn parse(text: &str) -> Option<Self> {
        let (tls, rest) = match text.strip_prefix("https://") {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix("http://")?),
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']')?;
                host.parse::<std::net::Ipv6Addr>().ok()?;
                (host, port)
            }
            None => {
                let (host, port) = authority
                    .find(':')
                    .map_or((authority, ""), |colon| authority.split_at(colon));
                is_host_name(host).then_some((host, port))?
            }
        };
        let port = match port.strip_prefix(':') {
            Some(port) => parse_port(port)?,
            None if port.is_empty() => default_port(tls),
            None => return None,
        };
        Some(Self {
            tls,
            host: host.to_ascii_lowercase(),
            port,
        })
    }

    /// The host as an address, where it is one.
    pub fn ip(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    /// What `Host` says to this server.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        if self.port == default_port(self.tls) {
            host
        } else {
            format!("{host}:{}", self.port)
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(out, "{scheme}://{}", self.authority())
    }
}

fn default_port(tls: bool) -> u16 {
    if tls { 443 } else { 80 }
}

/// Reads a port from 1 to 65535; `None` where it is not one.
pub fn parse_port(text: &str) -> Option<u16> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| digits && *port != 0)
}

fn is_host_name(host: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    host.len() <= 253 && host.split('.').all(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_have_a_scheme_a_host_and_perhaps_a_port() {
        for (text, tls, host, port, authority) in [
            (
                "http://127.0.0.1:9000",
                false,
                "127.0.0.1",
                9000,
                "127.0.0.1:9000",
            ),
            (
                "http://example.com",
                false,
                "example.com",
                80,
                "example.com",
            ),
            (
                "https://Example.com/",
                true,
                "example.com",
                443,
                "example.com",
            ),
            ("https://[::1]:8443", true, "::1", 8443, "[::1]:8443"),
            (
                "http://minio_1:9000",
                false,
                "minio_1",
                9000,
                "minio_1:9000",
            ),
        ] {
            let endpoint = Endpoint::parse(text).unwrap();
            assert_eq!(
                (endpoint.tls, endpoint.host.as_str(), endpoint.port),
                (tls, host, port),
                "{text}"
            );
            assert_eq!(endpoint.authority(), authority, "{text}");
        }
    }

    #[test]
    fn odd_endpoints_are_refused() {
        for text in [
            "",
            "example.com",
            "ftp://example.com",
            "http://",
            "http://example.com/path",
            "http://user@example.com",
            "http://example.com:0",
            "http://example.com:65536",
            "http://example.com:+80",
            "http://example.com:",
            "http://::1",
            "http://[::1",
            "http://[::1]8080",
            "http://[example]",
            "http://a..b",
            "http://-a",
            "http://a b",
            "http://a\"b",
            "http://a?x",
        ] {
            assert_eq!(Endpoint::parse(text), None, "{text}");
        }
    }

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
