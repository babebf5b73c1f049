// SPDX-License-Identifier: Apache-2.0
//! Headers that each request to an HTTP origin gets, with values that no policy contains.

use serde_json::Value;

use crate::http::caching::cache_name::CDN_LOOP;
use crate::http::conditional::demand::Demand;
use crate::policy::forms::error::PolicyError;
use crate::policy::forms::form::{Form, Kind, object};
use crate::policy::forms::names::HeaderName;
use crate::policy::sections::connection_headers::concerns_connection;

/// A header that each request to the origin gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetHeader {
    /// The name, in lower case.
    pub name: String,
    /// The place of the value.
    pub source: HeaderSource,
}

/// The place of a header's value. The filter never knows the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderSource {
    /// The variable of the entry point's environment with this name.
    Environment(String),
    /// The file with this absolute path.
    File(String),
}

/// Headers with the places of their values.
pub(in crate::policy) struct SetHeaders;

impl Form<Vec<SetHeader>> for SetHeaders {
    fn read(value: &Value, kind: Kind) -> Result<Vec<SetHeader>, PolicyError> {
        let fields = object(value)?;
        if kind == Kind::Bucket && !fields.is_empty() {
            let message = "expected no headers for a bucket, which gets the signed headers alone";
            return Err(PolicyError::new("", message));
        }
        let mut headers: Vec<SetHeader> = Vec::new();
        for (name, value) in fields {
            let lower = HeaderName::read(&Value::from(name.as_str()), kind).ok();
            let lower = lower.filter(|lower| !is_reserved(lower));
            let Some(lower) =
                lower.filter(|lower| headers.iter().all(|known| known.name != *lower))
            else {
                let message = "expected a header that an origin may simply be given, once: not one of the connection's, \
                               the body's, Envoy's or the filter's own, not Host, no coding, no range and no condition";
                return Err(PolicyError::new(name, message));
            };
            let source = read_source(value).map_err(|error| error.within(name))?;
            headers.push(SetHeader {
                name: lower,
                source,
            });
        }
        Ok(headers)
    }
}

/// Reads the place of a value. NB: no message shows what is written there, because it may be the value itself.
fn read_source(value: &Value) -> Result<HeaderSource, PolicyError> {
    let refused = || {
        let message =
            "expected {env: NAME} or {file: PATH}, because no policy contains the value itself";
        PolicyError::new("", message)
    };
    let mut fields = value.as_object().ok_or_else(refused)?.iter();
    let (Some((field, Value::String(text))), None) = (fields.next(), fields.next()) else {
        return Err(refused());
    };
    match field.as_str() {
        "env" if is_variable(text) => Ok(HeaderSource::Environment(text.clone())),
        "env" => Err(PolicyError::new("env", "expected the name of a variable")),
        "file" if text.starts_with('/') => Ok(HeaderSource::File(text.clone())),
        "file" => Err(PolicyError::new("file", "expected an absolute path")),
        _ => Err(refused()),
    }
}

fn is_variable(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let begins = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    begins && text.bytes().all(inner)
}

/// Whether a header says how to reach the origin or to read the message, or is Envoy's or the filter's own.
fn is_reserved(name: &str) -> bool {
    const RESERVED: [&str; 5] = ["accept-encoding", "content-length", CDN_LOOP, "host", "via"];
    RESERVED.contains(&name)
        || name.starts_with("x-sluice-")
        || name.starts_with("x-envoy-")
        || concerns_connection(name)
        || Demand::concerns(name.as_bytes())
}
