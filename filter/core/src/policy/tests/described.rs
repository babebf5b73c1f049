// SPDX-License-Identifier: Apache-2.0
//! The JSON Schema of each form, and the JSON of a default.

use std::any::Any;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::http::accept_encoding::Coding;
use crate::policy::access::{
    AccessScheme, AuthenticationRealm, BasicPolicy, CertificateFile, CheckerUrl, CookieName,
    CopiedHeaders, Filled, ForwardPolicy, JwtPolicy, KeyEntries, KeyEntry, KeySetPlace,
    KeySetSource, LONGEST_NAME, MAX_NAME_BYTES, Network, SignedPolicy, TokenCookie, TokenName,
    UserFile, UserSource,
};
use crate::policy::forms::duration;
use crate::policy::forms::form::{AtLeast, Bytes, Form, Kind, Seconds, Whole};
use crate::policy::forms::glob::Glob;
use crate::policy::forms::large_url::LargeUrl;
use crate::policy::forms::names::{HeaderName, NamePattern, PathGlob};
use crate::policy::forms::website_names::{ContentType, FileExtension};
use crate::policy::purge::{Record, TokenHash};
use crate::policy::sections::compression::Codings;
use crate::policy::sections::key::{Query, QueryRule};
use crate::policy::sections::listing::ListedPrefix;
use crate::policy::sections::origin::{BucketSection, HttpSection, OriginSection};
use crate::policy::sections::redirects::{
    RedirectSource, RedirectStatus, RedirectTarget, STATUSES,
};
use crate::policy::sections::rules::{CanonicalGlob, FieldValue, HeaderValues};
use crate::policy::sections::set_headers::{SetHeader, SetHeaders};
use crate::policy::sections::slices::{GREATEST_SLICE, LEAST_SLICE, SliceBytes};
use crate::policy::sections::ttl::{ORIGIN, RuleTtl, TtlTable};
use crate::policy::sections::website::{ContentTypes, CorsPolicy, CorsSection, DocumentStatus};
use crate::size;

/// A form that the JSON Schema describes.
pub trait Described<T: PartialEq + 'static>: Form<T> {
    /// The JSON Schema of what the form accepts.
    fn schema() -> Value;

    /// The JSON that is read as `value`; null if no JSON can be shown. This version shows words and strings.
    fn shown(value: &T) -> Value {
        let schema = Self::schema();
        let words = schema["enum"].as_array().into_iter().flatten().cloned();
        let string = (value as &dyn Any).downcast_ref::<String>();
        let string = string.map(|text| Value::from(text.as_str()));
        words
            .chain(string)
            .find(|json| Self::read(json, Kind::Http).is_ok_and(|read| read == *value))
            .unwrap_or_default()
    }
}

/// The schema of a field, and whether the field is required.
pub struct DescribedField {
    name: &'static str,
    schema: Value,
    required: bool,
}

/// Describes a field of the form `F` with its defaults in the section. With two defaults the kind of the origin
/// decides, as the description says. Without a default the form may have one.
pub fn describe_field<T: PartialEq + 'static, F: Described<T>>(
    name: &'static str,
    about: &str,
    defaults: Vec<T>,
) -> DescribedField {
    let mut schema = F::schema();
    schema["description"] = about.trim().into();
    if let [default] = defaults.as_slice()
        && let shown = F::shown(default)
        && !shown.is_null()
    {
        schema["default"] = shown;
    }
    DescribedField {
        name,
        schema,
        required: defaults.is_empty() && !matches!(F::absent(Kind::Http), Ok(Some(_))),
    }
}

/// The schema of a section.
pub fn describe_section(about: &str, fields: Vec<DescribedField>) -> Value {
    let required = fields.iter().filter(|field| field.required);
    let required: Vec<&str> = required.map(|field| field.name).collect();
    let properties = fields.iter();
    let properties = properties.map(|field| (field.name.to_owned(), field.schema.clone()));
    let mut schema = json!({
        "type": "object",
        "description": about.trim(),
        "properties": properties.collect::<Map<_, _>>(),
        "additionalProperties": false,
    });
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema
}

impl Described<Self> for bool {
    fn schema() -> Value {
        json!({ "type": "boolean" })
    }

    fn shown(value: &Self) -> Value {
        (*value).into()
    }
}

impl<T: PartialEq + 'static, F: Described<T>> Described<Option<T>> for Option<F> {
    fn schema() -> Value {
        F::schema()
    }

    fn shown(value: &Option<T>) -> Value {
        value.as_ref().map_or(Value::Null, F::shown)
    }
}

impl<T: PartialEq + 'static, F: Described<T>> Described<Vec<T>> for Vec<F> {
    fn schema() -> Value {
        json!({ "type": "array", "items": F::schema() })
    }

    fn shown(value: &Vec<T>) -> Value {
        value.iter().map(F::shown).collect()
    }
}

impl<N, const MIN: u64, const MAX: u64> Described<N> for Whole<MIN, MAX>
where
    N: Copy + PartialEq + TryFrom<u64> + 'static,
    Value: From<N>,
{
    fn schema() -> Value {
        json!({ "type": "integer", "minimum": MIN, "maximum": MAX })
    }

    fn shown(value: &N) -> Value {
        (*value).into()
    }
}

impl<N, const MIN: u64, const MAX: u64> Described<N> for Bytes<MIN, MAX>
where
    N: Copy + PartialEq + TryFrom<u64> + 'static,
    Value: From<N>,
{
    fn schema() -> Value {
        let text = json!({ "type": "string", "pattern": size::PATTERN });
        json!({ "oneOf": [Whole::<MIN, MAX>::schema(), text] })
    }

    fn shown(value: &N) -> Value {
        (*value).into()
    }
}

impl<const MILLIS: u64> Described<Duration> for AtLeast<MILLIS> {
    fn schema() -> Value {
        json!({ "type": "string", "pattern": duration::PATTERN })
    }

    fn shown(value: &Duration) -> Value {
        duration::format(*value).into()
    }
}

impl Described<Duration> for Seconds {
    fn schema() -> Value {
        json!({ "type": "string", "pattern": duration::PATTERN_OF_SECONDS })
    }

    fn shown(value: &Duration) -> Value {
        duration::format(*value).into()
    }
}

impl Described<Self> for OriginSection {
    fn schema() -> Value {
        let kinds = [
            ("bucket", BucketSection::schema()),
            ("http", HttpSection::schema()),
        ];
        let kinds = kinds.map(|(kind, mut schema)| {
            schema["properties"]["kind"] = json!({ "const": kind });
            // The schema is for files, in which the entry point fills in the other required fields.
            schema["required"] = json!(["kind"]);
            schema
        });
        json!({ "oneOf": kinds })
    }
}

impl Described<QueryRule> for Query {
    fn schema() -> Value {
        <Self as Described<Self>>::schema()
    }
}

impl Described<CorsPolicy> for CorsSection {
    fn schema() -> Value {
        <Self as Described<Self>>::schema()
    }
}

impl Described<Vec<Coding>> for Codings {
    fn schema() -> Value {
        Vec::<Coding>::schema()
    }

    fn shown(value: &Vec<Coding>) -> Value {
        Vec::<Coding>::shown(value)
    }
}

impl Described<Self> for TokenHash {
    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[0-9a-f]{64}$" })
    }
}

impl Described<Self> for LargeUrl {
    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[0-9a-f]{16}$" })
    }
}

impl Described<Self> for Record {
    fn schema() -> Value {
        let scope = r"(nothing|everything|bucket [0-9]+|prefix [!-~]+)";
        json!({ "type": "string", "pattern": format!("^[0-9]+ (hard|soft) {scope}$") })
    }
}

impl Described<Self> for Network {
    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[0-9a-fA-F.:]+(/[0-9]{1,3})?$" })
    }
}

impl<T: PartialEq + 'static, F: Described<T>> Described<Vec<T>> for Filled<F> {
    fn schema() -> Value {
        json!({ "type": "array", "items": F::schema(), "minItems": 1 })
    }
}

impl Described<Self> for AccessScheme {
    fn schema() -> Value {
        let schemas = [
            Filled::<Network>::schema(),
            SignedPolicy::schema(),
            BasicPolicy::schema(),
            JwtPolicy::schema(),
            ForwardPolicy::schema(),
        ];
        let schemes = Self::NAMES.into_iter().zip(schemas).map(|(name, schema)| {
            json!({
                "type": "object",
                "properties": { name: schema },
                "required": [name],
                "additionalProperties": false,
            })
        });
        json!({ "oneOf": schemes.collect::<Vec<_>>() })
    }
}

impl Described<Self> for CheckerUrl {
    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^https?://[-._:0-9A-Za-z\\[\\]]+(/[!-\"$-~]*)?$" })
    }
}

impl Described<Vec<String>> for CopiedHeaders {
    fn schema() -> Value {
        Vec::<HeaderName>::schema()
    }

    fn shown(value: &Vec<String>) -> Value {
        Vec::<HeaderName>::shown(value)
    }
}

impl Described<NamePattern> for CookieName {
    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[-!#$%&'*+.^_`|~0-9A-Za-z]+$" })
    }
}

impl Described<String> for CertificateFile {
    fn schema() -> Value {
        json!({ "type": "string", "minLength": 1 })
    }
}

impl Described<KeySetSource> for KeySetPlace {
    fn schema() -> Value {
        json!({ "type": "string", "minLength": 1 })
    }
}

impl Described<String> for TokenName {
    fn schema() -> Value {
        json!({ "type": "string", "pattern": format!("^[!-~]{{2,{LONGEST_NAME}}}$") })
    }
}

impl Described<String> for TokenCookie {
    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[-!#$%&'+.^_`|~0-9A-Za-z]+$" })
    }
}

impl Described<UserSource> for UserFile {
    fn schema() -> Value {
        json!({ "type": "string", "minLength": 1 })
    }
}

impl Described<String> for AuthenticationRealm {
    fn schema() -> Value {
        json!({ "type": "string", "pattern": r#"^[ !#-\[\]-~]{1,64}$"# })
    }
}

impl Described<Vec<KeyEntry>> for KeyEntries {
    fn schema() -> Value {
        let source = |field: &str, pattern: &str| {
            json!({
                "type": "object",
                "properties": { field: { "type": "string", "pattern": pattern } },
                "required": [field],
                "additionalProperties": false,
            })
        };
        json!({
            "type": "object",
            "minProperties": 1,
            "propertyNames": { "pattern": format!("^[-._0-9A-Za-z]{{1,{MAX_NAME_BYTES}}}$") },
            "additionalProperties": {
                "oneOf": [source("env", "^[A-Za-z_][A-Za-z0-9_]*$"), source("file", ".")],
            },
        })
    }
}

impl Described<Glob> for CanonicalGlob {
    fn schema() -> Value {
        PathGlob::schema()
    }

    fn shown(value: &Glob) -> Value {
        value.as_str().into()
    }
}

impl Described<Glob> for ListedPrefix {
    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^/([^*?#\\x00-\\x20\\x7F]*/)?[*]$" })
    }

    fn shown(value: &Glob) -> Value {
        value.as_str().into()
    }
}

impl Described<u64> for SliceBytes {
    fn schema() -> Value {
        json!({ "oneOf": [{ "const": 0 }, <Bytes<LEAST_SLICE, GREATEST_SLICE> as Described<u64>>::schema()] })
    }

    fn shown(value: &u64) -> Value {
        (*value).into()
    }
}

type Pairs = Vec<(String, String)>;

fn shown_pairs(pairs: &Pairs) -> Value {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| (name.clone(), Value::from(value.as_str())))
        .collect()
}

impl Described<String> for FieldValue {
    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^([!-~]([ -~]*[!-~])?)?$" })
    }
}

impl Described<Pairs> for HeaderValues {
    fn schema() -> Value {
        json!({
            "type": "object",
            "propertyNames": HeaderName::schema(),
            "additionalProperties": FieldValue::schema(),
        })
    }

    fn shown(value: &Pairs) -> Value {
        shown_pairs(value)
    }
}

impl Described<Vec<SetHeader>> for SetHeaders {
    fn schema() -> Value {
        let source = |field: &str, pattern: &str| {
            json!({
                "type": "object",
                "properties": { field: { "type": "string", "pattern": pattern } },
                "required": [field],
                "additionalProperties": false,
            })
        };
        json!({
            "type": "object",
            "propertyNames": HeaderName::schema(),
            "additionalProperties": {
                "oneOf": [source("env", "^[A-Za-z_][A-Za-z0-9_]*$"), source("file", "^/")],
            },
        })
    }

    fn shown(value: &Vec<SetHeader>) -> Value {
        match value.is_empty() {
            true => json!({}),
            false => Value::Null,
        }
    }
}

impl Described<Pairs> for ContentTypes {
    fn schema() -> Value {
        json!({
            "type": "object",
            "propertyNames": FileExtension::schema(),
            "additionalProperties": ContentType::schema(),
        })
    }

    fn shown(value: &Pairs) -> Value {
        shown_pairs(value)
    }
}

impl Described<Self> for RedirectSource {
    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[^/?#@: ]*/[^*?#]*[*]?$" })
    }
}

impl Described<Self> for RedirectTarget {
    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^(https?://[^/?#@ ]+)?/[^*?#]*[*]?$" })
    }
}

impl Described<u16> for RedirectStatus {
    fn schema() -> Value {
        json!({ "enum": STATUSES })
    }

    fn shown(value: &u16) -> Value {
        (*value).into()
    }
}

impl Described<u16> for DocumentStatus {
    fn schema() -> Value {
        let error = <Whole<400, 599> as Described<u16>>::schema();
        json!({ "oneOf": [{ "const": 200 }, error] })
    }
}

impl Described<Self> for TtlTable {
    fn schema() -> Value {
        RuleTtl::schema()
    }
}

impl Described<TtlTable> for RuleTtl {
    fn schema() -> Value {
        let time = json!({ "oneOf": [{ "const": ORIGIN }, Seconds::schema()] });
        let table = json!({
            "type": "object",
            "propertyNames": { "pattern": "^([1-5][0-9][0-9]|[1-5]xx|default)$" },
            "additionalProperties": time,
        });
        json!({ "oneOf": [{ "const": ORIGIN }, Seconds::schema(), table] })
    }
}
