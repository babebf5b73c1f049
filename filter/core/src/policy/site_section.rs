// SPDX-License-Identifier: Apache-2.0
//! The sections of a configuration with several sites, around the policies of the sites.

use serde_json::{Value, json};

use super::purge::TokenHash;
use crate::policy::forms::error::PolicyError;
use crate::policy::forms::form::{Form, Kind, Whole, object};
use crate::policy::forms::names::{HostPattern, ServerName, SiteName, SitePath};
use crate::policy::forms::section::section;
use crate::policy::sections::rules::FieldValue;

section! {
    /// An edge with several sites.
    pub(crate) struct SitesSection {
        /// The sections of the policy that belong to the whole edge: store, hot, purge, limits and coalesce.lease.
        edge: Value as AnyObject = json!({}),
        /// The sites.
        sites: Vec<SiteSection>,
    }
}

section! {
    /// One site.
    pub(crate) struct SiteSection {
        /// Name of the site in keys, metrics and logs.
        name: String as SiteName,
        /// The hosts whose requests the site takes. Default: all other hosts.
        hosts: Vec<String> as Vec<HostPattern> = Vec::new(),
        /// The beginning of the paths that the site takes. Default: all other paths.
        path: String as SitePath = String::new(),
        /// The name of the certificate that the edge shows for the site's hosts. Default: none.
        certificate: Option<String> as Option<SiteName>,
        /// Whether requests over cleartext are redirected to HTTPS.
        redirect_to_https: bool = false,
        /// The value of Strict-Transport-Security in responses over HTTPS. Default: none.
        hsts: Option<String> as Option<FieldValue>,
        /// Weight of the site when sites compete for the cache and for memory.
        share: u32 as Whole<1, 1_000> = 1,
        /// Whether the site's metrics have its name as a label.
        labelled as "metrics_label": bool = true,
        /// SHA-256 of the token for purges of this site alone, in hexadecimal. Default: none.
        purge_token as "purge_token_sha256": Option<TokenHash>,
        /// The name by which the hop knows the server of the site's origin, with its credentials and compressors.
        /// Another server has another name, so that no request reaches a server that its policy is not for. Default:
        /// the site's name.
        server: Option<String> as Option<ServerName>,
        /// The site's part of the policy.
        policy: Value as AnyObject,
    }
}

section! {
    /// HTTPS for the clients of an edge with one site.
    pub(crate) struct HttpsSection {
        /// Whether requests over cleartext are redirected to HTTPS.
        redirect: bool = false,
        /// The value of Strict-Transport-Security in responses over HTTPS. Default: none.
        hsts: Option<String> as Option<FieldValue>,
    }
}

impl HttpsSection {
    /// Takes the section out of the configuration of an edge with one site.
    ///
    /// # Errors
    /// The section is not valid.
    pub(crate) fn take(configuration: &mut Value) -> Result<Self, PolicyError> {
        const NAME: &str = "https";
        let fields = configuration.as_object_mut();
        let section = fields.and_then(|fields| fields.remove(NAME));
        let read = Self::read(&section.unwrap_or_else(|| json!({})), Kind::Http);
        read.map_err(|error| error.within(NAME))
    }
}

impl SitesSection {
    /// Reads the sections. The path of an error is the path of the field.
    pub(crate) fn parse(value: &Value) -> Result<Self, PolicyError> {
        // No default of these sections depends on the kind of an origin.
        let read = Self::read(value, Kind::Http)?;
        if read.sites.is_empty() {
            return Err(PolicyError::new(
                "sites",
                "a list without sites: expected at least one",
            ));
        }
        Ok(read)
    }
}

/// An object that is read later.
pub(super) struct AnyObject;

impl Form<Value> for AnyObject {
    fn read(value: &Value, _: Kind) -> Result<Value, PolicyError> {
        object(value).map(|_| value.clone())
    }
}

#[cfg(test)]
impl super::tests::Described<Value> for AnyObject {
    fn schema() -> Value {
        json!({ "type": "object" })
    }
}
