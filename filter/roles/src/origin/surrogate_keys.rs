// SPDX-License-Identifier: Apache-2.0
//! The surrogate keys and the cache groups (RFC 9875) in a response, by which purges find it.

use sluice_core::http::syntax::field_value::{FieldValue, JoinedValue, NotText};
use sluice_core::key::secret::StoreSecret;
use sluice_core::policy::Policy;
use sluice_core::purge::{MAX_TAGS, TAG_FIELDS, TagHash, groups_of, tags_of};

use sluice_host::headers::Headers;

/// The surrogate keys and cache groups of a response.
#[derive(Debug, Default)]
pub struct SurrogateKeys<'a> {
    /// Names and values of the fields with surrogate keys.
    fields: Vec<(&'a str, &'a str)>,
    /// `Cache-Groups`, its lines joined by commas.
    groups: Option<JoinedValue<'a>>,
}

impl<'a> SurrogateKeys<'a> {
    /// The keys and groups of a response with these headers. A bucket has no cache groups.
    ///
    /// # Errors
    /// One of the fields is not text, so that no purge could find the response by it.
    pub fn of(policy: &Policy, headers: &'a Headers) -> Result<Self, NotText> {
        let fields = headers.fields().filter_map(|(name, value)| {
            let known = TAG_FIELDS.iter().find(|known| known.as_bytes() == name)?;
            Some(FieldValue::new(value).text().map(|text| (*known, text)))
        });
        let groups = headers.joined("cache-groups");
        let groups = groups.filter(|_| !policy.origin.is_bucket());
        groups
            .as_ref()
            .map(|groups| groups.value().text())
            .transpose()?;
        Ok(Self {
            fields: fields.collect::<Result<_, _>>()?,
            groups,
        })
    }

    /// Whether the response has none.
    pub const fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.groups.is_none()
    }

    /// The hashes of the keys and groups under the store's secret, for a response for `url`. `None` if there are too
    /// many.
    pub fn hashes(&self, url: &str, secret: &StoreSecret) -> Option<Vec<TagHash>> {
        let groups = self.groups.as_ref().map(JoinedValue::value);
        let groups = groups.and_then(|groups| groups.text().ok());
        let groups = groups.map_or_else(Vec::new, |groups| groups_of(url, groups, secret));
        let tags = tags_of(&self.fields, secret)?;
        Some([tags, groups].concat()).filter(|tags| tags.len() <= MAX_TAGS)
    }
}
