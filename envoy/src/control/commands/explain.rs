// SPDX-License-Identifier: Apache-2.0
//! `sluice explain`: the reasons for which a URL is stored or not.

use std::process::ExitCode;
use std::str::FromStr;

use clap::Args;
use ureq::http::{HeaderName, HeaderValue, Uri};

use super::{EdgeClient, EdgeOptions, notes, print};
use crate::control::answers::Explanation;
use crate::control::text::explanation;
use crate::net::unix_client::percent_encoded;

/// Options of `sluice explain`.
#[derive(Args, Debug)]
pub struct Explain {
    /// The URL, as clients request it
    pub url: ExplainedUrl,
    /// A header of the request, such as "Accept-Encoding: br"
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub headers: Vec<ExplainedHeader>,
    /// Also send a HEAD to the origin, and say whether its response would be stored
    #[arg(long)]
    pub online: bool,
    /// The edge and the form of the output
    #[command(flatten)]
    pub edge: EdgeOptions,
}

/// The URL to explain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedUrl {
    scheme: String,
    host: String,
    /// The path and the query.
    path: String,
}

impl FromStr for ExplainedUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected =
            || "expected http://HOST[:PORT][/PATH] or https://HOST[:PORT][/PATH]".to_owned();
        let url: Uri = text.parse().map_err(|_| expected())?;
        let scheme = url.scheme_str().unwrap_or_default().to_ascii_lowercase();
        let host = url.authority().map(|authority| authority.to_string());
        let host = host.filter(|_| ["http", "https"].contains(&scheme.as_str()));
        let path = url.path_and_query().map_or("/", |path| path.as_str());
        Ok(Self {
            scheme,
            host: host.ok_or_else(expected)?,
            path: path.to_owned(),
        })
    }
}

/// A header of the request to explain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedHeader {
    name: String,
    value: String,
}

impl FromStr for ExplainedHeader {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || "expected NAME: VALUE, such as Accept-Encoding: br".to_owned();
        let (name, value) = text.split_once(':').ok_or_else(expected)?;
        let name: HeaderName = name.parse().map_err(|_| expected())?;
        let value: HeaderValue = value.trim().parse().map_err(|_| expected())?;
        Ok(Self {
            name: name.to_string(),
            value: value.to_str().map_err(|_| expected())?.to_owned(),
        })
    }
}

impl Explain {
    /// Asks the edge, and prints the answer.
    ///
    /// # Errors
    /// The edge or its filter does not answer.
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let client = EdgeClient::new(&self.edge)?;
        let answer: Explanation = client.ask(&self.target(), &self.fields())?;
        let notes = notes(&answer.silent, answer.problem.as_deref(), false);
        print(&self.edge, &answer, explanation::text, &notes)
    }

    fn target(&self) -> String {
        let ExplainedUrl { scheme, host, path } = &self.url;
        let (host, path) = (percent_encoded(host), percent_encoded(path));
        let online = if self.online { "&online=1" } else { "" };
        format!("/explain?host={host}&path={path}&scheme={scheme}{online}")
    }

    /// The fields of the question, whose names do not collide with those of the connection to the edge.
    fn fields(&self) -> Vec<(String, String)> {
        let headers = self.headers.iter();
        headers
            .map(|header| (format!("x-explain-{}", header.name), header.value.clone()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_has_the_url_and_the_headers() {
        let explain = Explain {
            url: "HTTPS://a.example:8443/a%20b?c=d&e".parse().unwrap(),
            headers: vec!["Accept-Encoding: br".parse().unwrap()],
            online: true,
            edge: EdgeOptions::default(),
        };
        let expected =
            "/explain?host=a.example%3A8443&path=%2Fa%2520b%3Fc%3Dd%26e&scheme=https&online=1";
        assert_eq!(explain.target(), expected);
        let field = ("x-explain-accept-encoding".to_owned(), "br".to_owned());
        assert_eq!(explain.fields(), [field]);
        let root: ExplainedUrl = "http://a.example".parse().unwrap();
        assert_eq!(root.path, "/");
    }

    #[test]
    fn other_urls_and_headers_are_refused_with_the_accepted_form() {
        for url in ["/a", "a.example/b", "ftp://a/b", "http:///b", "http://a b/"] {
            let refused = url.parse::<ExplainedUrl>().unwrap_err();
            assert!(refused.starts_with("expected http://HOST"), "{url}");
        }
        for header in ["Accept", "a b: c", ": c", "a: \u{1}"] {
            let refused = header.parse::<ExplainedHeader>().unwrap_err();
            assert!(refused.starts_with("expected NAME: VALUE"), "{header}");
        }
    }
}
