// SPDX-License-Identifier: Apache-2.0
//! The section `website`: what makes a bucket a web site, and who may read it from another one.

use std::time::Duration;

use serde_json::Value;

use crate::policy::forms::error::PolicyError;
use crate::policy::forms::form::{AtLeast, Form, Kind, Whole, object, read_within, words};
use crate::policy::forms::names::ObjectName;
use crate::policy::forms::section::section;
use crate::policy::forms::website_names::{
    AllowedMethod, AllowedOrigin, ContentType, FileExtension, HeaderNameOrAny, OriginPattern,
};

section! {
    /// A bucket as a web site, and cross-origin resource sharing for any origin.
    pub struct WebsitePolicy {
        /// Bucket only: whether a path that names no object but, with a slash at its end, has an
        /// index document, is answered with a redirect there (302). Costs one more bucket request
        /// for a missing object, which is shared and kept like any other.
        redirect_directories: bool = false,
        /// Bucket only: the object, below the prefix, that is served with status 200 where there is
        /// no such object, such as index.html of an application that routes in the browser.
        fallback_document: Option<String> as Option<ObjectName>,
        /// Which requests get the fallback document. navigation: those whose Accept names
        /// text/html, so that a missing script or image stays missing; all: every one.
        fallback_for: FallbackFor = FallbackFor::Navigation,
        /// Bucket only: the object, below the prefix, that is served in the place of a plain page
        /// where there is no such object, with the bucket's status.
        error_document: Option<String> as Option<ObjectName>,
        /// The statuses by which the bucket says that there is no such object. S3 answers 403 where
        /// the credentials may not list the bucket.
        missing_statuses: Vec<u16> as Vec<Whole<400, 499>> = vec![404],
        /// Bucket only: whether an object without a media type of its own (none,
        /// application/octet-stream or binary/octet-stream) gets that of its extension.
        guess_content_type: bool = false,
        /// Bucket only: media types by extension, for objects without one of their own; before
        /// those that the edge knows.
        content_types: Vec<(String, String)> as ContentTypes = Vec::new(),
        /// Cross-origin resource sharing. With this section the edge answers preflights by itself,
        /// and says on each response which page may read it, whatever the origin says. Default:
        /// CORS is left to the origin.
        cors: Option<CorsPolicy> as Option<CorsSection>,
    }
}

/// Which requests for missing objects get the fallback document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FallbackFor {
    /// Those of a browser that goes to a page: `Accept` names `text/html`.
    Navigation,
    /// All.
    All,
}

words!(FallbackFor { Navigation = "navigation", All = "all" });

/// Cross-origin resource sharing, as the Fetch standard has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorsPolicy {
    /// Who may read responses; `None` for everybody.
    pub origins: Option<Vec<OriginPattern>>,
    /// Value of `Access-Control-Allow-Methods`.
    pub methods: String,
    /// Value of `Access-Control-Allow-Headers`; empty for none.
    pub headers: String,
    /// Value of `Access-Control-Expose-Headers`; empty for none.
    pub exposed_headers: String,
    /// How long a browser may keep the answer to a preflight.
    pub max_age: Duration,
    /// Whether requests may carry credentials.
    pub credentials: bool,
}

section! {
    /// Who may read responses from pages of other origins.
    pub(in crate::policy) struct CorsSection {
        /// Origins such as https://example.com, all subdomains as https://*.example.com, or * for
        /// everybody.
        allowed_origins: Vec<Option<OriginPattern>> as Vec<AllowedOrigin>,
        /// Methods that a preflight allows.
        allowed_methods: Vec<String> as Vec<AllowedMethod> = ["GET", "HEAD"].map(str::to_owned).into(),
        /// Request headers that a preflight allows, or * for all but Authorization.
        allowed_headers: Vec<String> as Vec<HeaderNameOrAny> = Vec::new(),
        /// Response headers that scripts may read beside the usual ones, or * for all.
        exposed_headers: Vec<String> as Vec<HeaderNameOrAny> = Vec::new(),
        /// How long a browser may keep the answer to a preflight.
        max_age: Duration as AtLeast<0> = Duration::from_secs(3_600),
        /// Whether requests may carry cookies and the like. Not together with *.
        allow_credentials: bool = false,
    }
}

/// Media types by lower-case extension.
pub(in crate::policy) struct ContentTypes;

impl Form<Vec<(String, String)>> for ContentTypes {
    fn read(value: &Value, kind: Kind) -> Result<Vec<(String, String)>, PolicyError> {
        let read = |(extension, value): (&String, &Value)| {
            let name = Value::from(extension.as_str());
            Ok((
                read_within::<_, FileExtension>(extension, &name, kind)?,
                read_within::<_, ContentType>(extension, value, kind)?,
            ))
        };
        object(value)?.iter().map(read).collect()
    }
}

impl WebsitePolicy {
    /// Refuses what an origin of that kind, with that index document, does not have.
    pub(in crate::policy) fn check(
        &self,
        kind: Kind,
        index_document: Option<&str>,
    ) -> Result<(), PolicyError> {
        if kind == Kind::Http {
            self.check_for_http()?;
        }
        if self.redirect_directories && index_document.is_none() {
            let message = "true: expected false, or key.index_document to be set";
            return Err(PolicyError::new("redirect_directories", message));
        }
        Ok(())
    }

    fn check_for_http(&self) -> Result<(), PolicyError> {
        const EXPECTED: &str = "none for an HTTP origin";
        for (name, document) in [
            ("fallback_document", &self.fallback_document),
            ("error_document", &self.error_document),
        ] {
            if let Some(document) = document {
                return Err(PolicyError::text(name, document, EXPECTED));
            }
        }
        for (name, set) in [
            ("redirect_directories", self.redirect_directories),
            ("guess_content_type", self.guess_content_type),
        ] {
            if set {
                let message = "true: expected false for an HTTP origin";
                return Err(PolicyError::new(name, message));
            }
        }
        if !self.content_types.is_empty() {
            let message = format!("an object: expected {EXPECTED}");
            return Err(PolicyError::new("content_types", message));
        }
        Ok(())
    }
}

impl Form<CorsPolicy> for CorsSection {
    fn read(value: &Value, kind: Kind) -> Result<CorsPolicy, PolicyError> {
        let section = <Self as Form<Self>>::read(value, kind)?;
        if section.allowed_origins.is_empty() {
            let message = "an empty list: expected an origin such as https://example.com, or *";
            return Err(PolicyError::new("allowed_origins", message));
        }
        let cors = CorsPolicy {
            origins: section.allowed_origins.into_iter().collect(),
            methods: section.allowed_methods.join(", "),
            headers: section.allowed_headers.join(", "),
            exposed_headers: section.exposed_headers.join(", "),
            max_age: section.max_age,
            credentials: section.allow_credentials,
        };
        // Browsers take * for a literal name where there are credentials.
        let names_any = |list: &str| list.split(", ").any(|name| name == "*");
        for (name, any) in [
            ("allowed_origins", cors.origins.is_none()),
            ("allowed_headers", names_any(&cors.headers)),
            ("exposed_headers", names_any(&cors.exposed_headers)),
        ] {
            if cors.credentials && any {
                let expected = "names, since allow_credentials is true";
                return Err(PolicyError::text(name, "*", expected));
            }
        }
        Ok(cors)
    }
}
