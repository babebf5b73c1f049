// SPDX-License-Identifier: Apache-2.0
//! Traces, from `OTEL_…`: the variables of the OpenTelemetry SDKs.

mod collector;
mod key_values;

pub use collector::Collector;

use super::FileSecrets;
use super::environment::Environment;
use super::observability::read_share;
use key_values::key_values;

/// The attribute with the name of a service in the semantic conventions of OpenTelemetry.
const SERVICE_NAME: &str = "service.name";

/// The traces, and the collector that accepts them.
#[derive(Clone, Debug, PartialEq)]
pub struct Tracing {
    /// The collector, which accepts OpenTelemetry's protocol over HTTP.
    pub collector: Collector,
    /// The headers of the requests to the collector.
    pub headers: Vec<CollectorHeader>,
    /// The edge's name in traces.
    pub service: String,
    /// Other attributes of the edge in traces: names and values.
    pub attributes: Vec<(String, String)>,
    /// The part of requests that is traced, from 0 to 1.
    pub ratio: f64,
}

/// A header of the requests to the collector. Its value is a secret, which only Envoy's environment has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectorHeader {
    /// The header's name.
    pub name: String,
    /// The variable of Envoy's environment with the header's value.
    pub variable: String,
}

impl Tracing {
    /// Reads `OTEL_…`. The values of headers are added to `secrets`. `None`: requests are not traced, or there is a
    /// problem.
    pub fn read(env: &mut Environment<'_>, secrets: &mut FileSecrets) -> Option<Self> {
        let is_disabled = env.switch("OTEL_SDK_DISABLED");
        let accepted = Collector::ACCEPTED;
        let collector = env.parse("OTEL_EXPORTER_OTLP_ENDPOINT", accepted, Collector::parse);
        let headers = read_headers(env);
        let accepted = "NAME=VALUE, separated by commas, with percent-encoded values";
        let attributes = env.parse("OTEL_RESOURCE_ATTRIBUTES", accepted, key_values);
        let (own, attributes): (Vec<_>, Vec<_>) = attributes
            .unwrap_or_default()
            .into_iter()
            .partition(|(name, _)| name == SERVICE_NAME);
        let service = read_service(env, own.into_iter().next());
        let ratio = env.parse("OTEL_TRACES_SAMPLER_ARG", "a ratio from 0 to 1", read_share);
        let collector = collector.filter(|_| is_disabled == Some(false))?;
        let headers = headers.into_iter().enumerate();
        let headers = headers.map(|(index, (name, value))| {
            let variable = format!("SLUICE_OTLP_HEADER_{index}");
            secrets.add(variable.clone(), value);
            CollectorHeader { name, variable }
        });
        Some(Self {
            collector,
            headers: headers.collect(),
            service: service?,
            attributes,
            ratio: ratio?,
        })
    }
}

/// Reads the edge's name. Without `OTEL_SERVICE_NAME` the name is in `attribute`, the attribute of that name.
fn read_service(env: &mut Environment<'_>, attribute: Option<(String, String)>) -> Option<String> {
    let is_set = env.set("OTEL_SERVICE_NAME").is_some();
    let service = env.parse("OTEL_SERVICE_NAME", "1 to 255 visible characters", |text| {
        let visible = text.chars().all(|c| !c.is_control());
        (text.len() < 256 && visible).then(|| text.to_owned())
    });
    match attribute {
        Some((_, name)) if !is_set => Some(name),
        _ => service,
    }
}

/// Reads the names and values of the headers. No problem shows a value.
fn read_headers(env: &mut Environment<'_>) -> Vec<(String, String)> {
    const NAME: &str = "OTEL_EXPORTER_OTLP_HEADERS";
    let Some(secret) = env.secret(NAME) else {
        return Vec::new();
    };
    let is_header = |(name, value): &(String, String)| {
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte);
        let is_visible = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
        let is_own = ["host", "content-type", "content-length"].contains(&name.as_str());
        name.bytes().all(is_token) && value.bytes().all(is_visible) && !is_own
    };
    let headers = key_values(&secret.text).map(|headers| {
        let headers = headers.into_iter();
        let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value));
        headers.collect::<Vec<_>>()
    });
    let headers = headers.filter(|headers| headers.iter().all(is_header));
    if headers.is_none() {
        let accepted = "must be NAME=VALUE, separated by commas, with percent-encoded values of visible ASCII \
                        characters, and without host, content-type and content-length";
        env.refuse(NAME, None, accepted);
    }
    headers.unwrap_or_default()
}
