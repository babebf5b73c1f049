// SPDX-License-Identifier: Apache-2.0
//! The section `site`: what makes a bucket a web site, and who may read it from another one.

use std::time::Duration;

#[cfg(test)]
use serde_json::Map;
use serde_json::Value;

use super::error::PolicyError;
use super::field::{AtLeast, Field, Whole, object, section, words};
use super::names::ObjectName;
use super::site_names::{
    AllowedMethod, AllowedOrigin, ContentType, FileExtension, HeaderNameOrAny, OriginPattern,
};

/// Request headers by which responses need not vary where the edge answers for them.
pub(super) const CORS_REQUEST_HEADERS: [&str; 3] = [
    "origin",
    "access-control-request-method",
    "access-control-request-headers",
];

/// A web site, or none of it where everything is off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SitePolicy {
    /// Whether `/dir` becomes `/dir/` where only that has an index document.
    pub redirect_directories: bool,
    /// Key, below the prefix, of the object that is served with 200 for what is missing.
    pub fallback_document: Option<String>,
    /// Which requests get the fallback document.
    pub fallback_for: FallbackFor,
    /// Key, below the prefix, of the object that is served with the status of what is missing.
    pub error_document: Option<String>,
    /// Statuses by which the bucket says that there is no such object.
    pub missing_statuses: Vec<u16>,
    /// Whether the built-in table gives a media type to what has none.
    pub guess_content_type: bool,
    /// Media types of one's own by lower-case extension; they come before the built-in ones.
    pub content_types: Vec<(String, String)>,
    /// Cross-origin resource sharing, where the edge answers for it.
    pub cors: Option<CorsPolicy>,
}

/// Which requests for missing objects get the fallback document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FallbackFor {
    /// Those of a browser that goes to a page: `Accept` names `text/html`.
    Navigation,
    /// All.
    All,
}

impl Default for SitePolicy {
    fn default() -> Self {
        Self {
            redirect_directories: false,
            fallback_document: None,
            fallback_for: FallbackFor::Navigation,
            error_document: None,
            missing_statuses: vec![404],
            guess_content_type: false,
            content_types: Vec::new(),
            cors: None,
        }
    }
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
    /// A bucket as a web site, and cross-origin resource sharing for any origin.
    struct SiteSection {
        /// Bucket only: whether a path that names no object but, with a slash at its end, has an
        /// index document, is answered with a redirect there (302). Costs one more bucket request
        /// for a missing object, which is shared and kept like any other.
        redirect_directories: bool = false,
        /// Bucket only: the object, below the prefix, that is served with status 200 where there is
        /// no such object, such as index.html of an application that routes in the browser.
        fallback_document: Option<ObjectName> = None,
        /// Which requests get the fallback document. navigation: those whose Accept names
        /// text/html, so that a missing script or image stays missing; all: every one.
        fallback_for: FallbackFor = FallbackFor::Navigation,
        /// Bucket only: the object, below the prefix, that is served in the place of a plain page
        /// where there is no such object, with the bucket's status.
        error_document: Option<ObjectName> = None,
        /// The statuses by which the bucket says that there is no such object. S3 answers 403 where
        /// the credentials may not list the bucket.
        missing_statuses: Vec<Whole<400, 499>> = vec![Whole(404)],
        /// Bucket only: whether an object without a media type of its own (none,
        /// application/octet-stream or binary/octet-stream) gets that of its extension.
        guess_content_type: bool = false,
        /// Bucket only: media types by extension, for objects without one of their own; before
        /// those that the edge knows.
        content_types: ContentTypes = ContentTypes(Vec::new()),
        /// Cross-origin resource sharing. With this section the edge answers preflights by itself,
        /// and says on each response which page may read it, whatever the origin says. Default:
        /// CORS is left to the origin.
        cors: Option<CorsSection> = None,
    }
}

section! {
    /// Who may read responses from pages of other origins.
    struct CorsSection {
        /// Origins such as https://example.com, all subdomains as https://*.example.com, or * for
        /// everybody.
        allowed_origins: Vec<AllowedOrigin>,
        /// Methods that a preflight allows.
        allowed_methods: Vec<AllowedMethod> =
            vec![AllowedMethod("GET".to_owned()), AllowedMethod("HEAD".to_owned())],
        /// Request headers that a preflight allows, or * for all but Authorization.
        allowed_headers: Vec<HeaderNameOrAny> = Vec::new(),
        /// Response headers that scripts may read beside the usual ones, or * for all.
        exposed_headers: Vec<HeaderNameOrAny> = Vec::new(),
        /// How long a browser may keep the answer to a preflight.
        max_age: AtLeast<0> = AtLeast(Duration::from_secs(3_600)),
        /// Whether requests may carry cookies and the like. Not together with *.
        allow_credentials: bool = false,
    }
}

/// Media types by lower-case extension.
#[derive(Clone, Debug)]
pub(super) struct ContentTypes(Vec<(String, String)>);

impl Field for ContentTypes {
    fn read(value: &Value) -> Result<Self, PolicyError> {
        let read = |(extension, value): (&String, &Value)| {
            let FileExtension(name) = Field::read(&Value::from(extension.as_str()))
                .map_err(|error: PolicyError| error.within(extension))?;
            let ContentType(media_type) =
                Field::read(value).map_err(|error: PolicyError| error.within(extension))?;
            Ok((name, media_type))
        };
        object(value)?
            .iter()
            .map(read)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    #[cfg(test)]
    fn schema() -> Result<Value, PolicyError> {
        Ok(serde_json::json!({
            "type": "object",
            "propertyNames": FileExtension::schema()?,
            "additionalProperties": ContentType::schema()?,
        }))
    }

    #[cfg(test)]
    fn to_json(&self) -> Value {
        let listed = self
            .0
            .iter()
            .map(|(name, value)| (name.clone(), value.as_str().into()));
        Value::Object(listed.collect())
    }
}

/// What the section means for a bucket or another origin with that index document.
pub(super) fn compile(
    section: SiteSection,
    bucket: bool,
    index_document: Option<&str>,
) -> Result<SitePolicy, PolicyError> {
    if !bucket {
        refuse_for_http(&section)?;
    }
    if section.redirect_directories && index_document.is_none() {
        let message = "true: expected false, or key.index_document to be set";
        return Err(PolicyError::new("redirect_directories", message));
    }
    let status = |Whole(status)| u16::try_from(status).unwrap_or(404);
    Ok(SitePolicy {
        redirect_directories: section.redirect_directories,
        fallback_document: section.fallback_document.map(|name| name.0),
        fallback_for: section.fallback_for,
        error_document: section.error_document.map(|name| name.0),
        missing_statuses: section.missing_statuses.into_iter().map(status).collect(),
        guess_content_type: section.guess_content_type,
        content_types: section.content_types.0,
        cors: match section.cors {
            Some(cors) => Some(compile_cors(cors).map_err(|error| error.within("cors"))?),
            None => None,
        },
    })
}

fn refuse_for_http(section: &SiteSection) -> Result<(), PolicyError> {
    const EXPECTED: &str = "none for an HTTP origin";
    for (name, document) in [
        ("fallback_document", &section.fallback_document),
        ("error_document", &section.error_document),
    ] {
        if let Some(document) = document {
            return Err(PolicyError::text(name, &document.0, EXPECTED));
        }
    }
    for (name, set) in [
        ("redirect_directories", section.redirect_directories),
        ("guess_content_type", section.guess_content_type),
    ] {
        if set {
            let message = "true: expected false for an HTTP origin";
            return Err(PolicyError::new(name, message));
        }
    }
    if !section.content_types.0.is_empty() {
        let message = format!("an object: expected {EXPECTED}");
        return Err(PolicyError::new("content_types", message));
    }
    Ok(())
}

fn compile_cors(section: CorsSection) -> Result<CorsPolicy, PolicyError> {
    let origins: Option<Vec<_>> = section
        .allowed_origins
        .into_iter()
        .map(|origin| origin.0)
        .collect();
    if origins.as_ref().is_some_and(Vec::is_empty) {
        let message = "an empty list: expected an origin such as https://example.com, or *";
        return Err(PolicyError::new("allowed_origins", message));
    }
    let joined = |names: Vec<HeaderNameOrAny>| {
        let names: Vec<_> = names.into_iter().map(|name| name.0).collect();
        names.join(", ")
    };
    let methods: Vec<_> = section
        .allowed_methods
        .into_iter()
        .map(|name| name.0)
        .collect();
    let cors = CorsPolicy {
        origins,
        methods: methods.join(", "),
        headers: joined(section.allowed_headers),
        exposed_headers: joined(section.exposed_headers),
        max_age: section.max_age.0,
        credentials: section.allow_credentials,
    };
    // Browsers take * for a literal name where there are credentials.
    let wildcards = [
        ("allowed_origins", cors.origins.is_none()),
        (
            "allowed_headers",
            cors.headers.split(", ").any(|name| name == "*"),
        ),
        (
            "exposed_headers",
            cors.exposed_headers.split(", ").any(|name| name == "*"),
        ),
    ];
    for (name, any) in wildcards {
        if cors.credentials && any {
            let expected = "names, since allow_credentials is true";
            return Err(PolicyError::text(name, "*", expected));
        }
    }
    Ok(cors)
}
