// SPDX-License-Identifier: Apache-2.0
//! The section `website`: a bucket as a web site, and the pages of other sites that may read it.

use std::time::Duration;

use serde_json::Value;

use crate::policy::forms::error::PolicyError;
use crate::policy::forms::form::{AtLeast, Form, Kind, Whole, object, read_within, words};
use crate::policy::forms::names::ObjectName;
use crate::policy::forms::section::section;
use crate::policy::forms::website_names::{
    AllowedMethod, AllowedOrigin, ContentType, FileExtension, HeaderNameOrAny, OriginPattern,
};
use crate::policy::sections::listing::ListingPolicy;

section! {
    /// A bucket as a web site, and cross-origin resource sharing for any origin.
    pub struct WebsitePolicy {
        /// Bucket only: whether a path without an object is redirected (302) to the path with a slash at its end, if
        /// that has an index document. Costs one more bucket request for a missing object; its response is shared and
        /// kept like any other.
        redirect_directories: bool = false,
        /// Bucket only: the object, below the prefix, that is served with status 200 in the place of a missing
        /// object, such as index.html of an application that routes in the browser.
        fallback_document: Option<String> as Option<ObjectName>,
        /// Which requests get the fallback document. navigation: requests whose Accept names text/html, so that a
        /// missing script or image stays missing; all: every request.
        fallback_for: FallbackFor = FallbackFor::Navigation,
        /// Bucket only: the object, below the prefix, that is served for a missing object with the bucket's status,
        /// instead of a plain page.
        error_document: Option<String> as Option<ObjectName>,
        /// Bucket only: the objects that are served for other errors of the bucket, or with another status.
        error_documents: Vec<ErrorDocument> as Vec<ErrorDocument> = Vec::new(),
        /// The statuses by which the bucket reports a missing object. S3 answers 403 if the credentials may not list
        /// the bucket.
        missing_statuses: Vec<u16> as Vec<Whole<400, 499>> = vec![404],
        /// Bucket only: whether an object without a media type (none, application/octet-stream or
        /// binary/octet-stream) gets the media type of its extension.
        guess_content_type: bool = false,
        /// Bucket only: media types by extension, for objects without a media type. They win over the media types
        /// that the edge knows.
        content_types: Vec<(String, String)> as ContentTypes = Vec::new(),
        /// Bucket only: lists of the objects of a directory, for paths that end in a slash and have no index document.
        /// Not together with a failover, and not in the mesh. Default: no path is listed.
        listing: Option<ListingPolicy> as Option<ListingPolicy>,
        /// Cross-origin resource sharing. With this section the edge answers preflights, and names on each response
        /// the pages that may read it, whatever the origin says. Default: CORS is left to the origin.
        cors: Option<CorsPolicy> as Option<CorsSection>,
    }
}

section! {
    /// The object that is served for some statuses of the bucket, also for the status by which the edge says that the
    /// bucket does not answer. It wins over error_document. Refusals of the edge have no document.
    pub struct ErrorDocument {
        /// The statuses, from 400 to 599.
        statuses: Vec<u16> as Vec<Whole<400, 599>>,
        /// The object, below the prefix.
        document: String as ObjectName,
        /// The status of the response: 200, or 400 to 599. Default: the bucket's status.
        status: Option<u16> as Option<DocumentStatus>,
    }
}

/// The status of a response with an error document.
pub(in crate::policy) struct DocumentStatus;

impl Form<u16> for DocumentStatus {
    fn read(value: &Value, kind: Kind) -> Result<u16, PolicyError> {
        let status = Whole::<200, 599>::read(value, kind).ok();
        let status = status.filter(|status| *status == 200 || *status >= 400);
        status.ok_or_else(|| PolicyError::unexpected(value, "200, or a status from 400 to 599"))
    }
}

/// Which requests for missing objects get the fallback document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FallbackFor {
    /// Requests of a browser that navigates to a page: `Accept` names `text/html`.
    Navigation,
    /// All requests.
    All,
}

words!(FallbackFor { Navigation = "navigation", All = "all" });

/// Cross-origin resource sharing, as the Fetch standard defines it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorsPolicy {
    /// Origins whose pages may read responses; `None` for all.
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
    /// Which pages of other origins may read responses.
    pub(in crate::policy) struct CorsSection {
        /// Origins such as https://example.com, all subdomains as https://*.example.com, or * for all origins.
        allowed_origins: Vec<Option<OriginPattern>> as Vec<AllowedOrigin>,
        /// Methods that a preflight allows.
        allowed_methods: Vec<String> as Vec<AllowedMethod> = ["GET", "HEAD"].map(str::to_owned).into(),
        /// Request headers that a preflight allows, or * for all except Authorization.
        allowed_headers: Vec<String> as Vec<HeaderNameOrAny> = Vec::new(),
        /// Response headers that scripts may read beside the usual ones, or * for all.
        exposed_headers: Vec<String> as Vec<HeaderNameOrAny> = Vec::new(),
        /// How long a browser may keep the answer to a preflight.
        max_age: Duration as AtLeast<0> = Duration::from_secs(3_600),
        /// Whether requests may carry credentials, such as cookies. Not together with *.
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
    /// Refuses fields that an origin of that kind, with that index document, does not have.
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
        if let Some(listing) = &self.listing {
            if index_document.is_none() {
                let message = "an object: expected none, or key.index_document to be set";
                return Err(PolicyError::new("listing", message));
            }
            listing.check().map_err(|error| error.within("listing"))?;
        }
        self.check_error_documents()
    }

    /// Refuses entries without an effect.
    fn check_error_documents(&self) -> Result<(), PolicyError> {
        for (index, entry) in self.error_documents.iter().enumerate() {
            let at = format!("error_documents[{index}].statuses");
            if entry.statuses.is_empty() {
                let message = "an empty list: expected statuses from 400 to 599";
                return Err(PolicyError::new(&at, message));
            }
            let earlier = self.error_documents.iter().take(index);
            let mut earlier = earlier.flat_map(|earlier| &earlier.statuses);
            if let Some(status) = earlier.find(|status| entry.statuses.contains(status)) {
                let message = format!("{status}: expected a status that no entry before it names");
                return Err(PolicyError::new(&at, message));
            }
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
        if self.listing.is_some() {
            let message = format!("an object: expected {EXPECTED}");
            return Err(PolicyError::new("listing", message));
        }
        if !self.error_documents.is_empty() {
            let message = format!("a list: expected {EXPECTED}");
            return Err(PolicyError::new("error_documents", message));
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
        // Browsers read * as a literal name if requests carry credentials.
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
