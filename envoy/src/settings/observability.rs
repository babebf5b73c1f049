// SPDX-License-Identifier: Apache-2.0
//! The logs and traces.

use super::environment::Environment;
use crate::log::LogFormat;
use crate::origin::Endpoint;

/// The access log, which is written to standard output.
#[derive(Clone, Debug, PartialEq)]
pub struct AccessLog {
    /// The format of a line.
    pub format: AccessLogFormat,
    /// The share of hits that is logged, from 0 to 1. Requests that are not hits are always logged.
    pub hits: f64,
}

/// The format of a line of the access log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessLogFormat {
    /// Text for people.
    Text,
    /// The format `combined` of NCSA for tools, with `Cache-Status` and the duration behind it.
    Combined,
    /// A JSON object.
    Json,
    /// The user's own format, in Envoy's command operators.
    Own(String),
    /// No access log.
    Off,
}

impl AccessLog {
    /// Reads `ACCESS_LOG` and `ACCESS_LOG_…`. `None`: there is a problem.
    pub fn read(env: &mut Environment<'_>) -> Option<Self> {
        let choices = ["text", "combined", "json", "off"].map(|name| (name, name));
        let choice = env.choice("ACCESS_LOG", &choices);
        let is_own = env.set(FORMAT_VARIABLE).is_some();
        let own = env.parse(
            FORMAT_VARIABLE,
            "a line without control characters",
            |text| {
                let is_line = text.chars().all(|c| c == '\t' || !c.is_control());
                is_line.then(|| text.to_owned())
            },
        );
        let hits = env.parse("ACCESS_LOG_HITS", "a share from 0 to 1", read_share);
        let format = match (choice?, own) {
            ("text", Some(own)) => AccessLogFormat::Own(own),
            ("text", None) if is_own => return None,
            (other, _) if is_own => {
                let accepted = format!("text, or no {FORMAT_VARIABLE}");
                env.refuse("ACCESS_LOG", Some(other.to_owned()), accepted);
                return None;
            }
            ("combined", None) => AccessLogFormat::Combined,
            ("json", None) => AccessLogFormat::Json,
            ("off", None) => AccessLogFormat::Off,
            _ => AccessLogFormat::Text,
        };
        Some(Self {
            format,
            hits: hits?,
        })
    }

    /// Whether the log needs the filter's facts about each request. Text needs them for the names of sites alone.
    pub fn needs_account(&self, named_sites: bool) -> bool {
        let is_for_format = match &self.format {
            AccessLogFormat::Off => return false,
            AccessLogFormat::Json => true,
            AccessLogFormat::Text => named_sites,
            AccessLogFormat::Combined => false,
            AccessLogFormat::Own(own) => own.contains("wasm.sluice."),
        };
        is_for_format || self.hits < 1.0
    }
}

/// The setting with the user's own format.
pub const FORMAT_VARIABLE: &str = "ACCESS_LOG_FORMAT";

/// Reads `LOG_FORMAT`.
pub fn read_log_format(env: &mut Environment<'_>) -> Option<LogFormat> {
    env.choice("LOG_FORMAT", LogFormat::CHOICES)
}

/// Reads a share from 0 to 1.
fn read_share(text: &str) -> Option<f64> {
    let share: f64 = text.parse().ok()?;
    (0.0..=1.0).contains(&share).then_some(share)
}

/// The collector of traces, which accepts OpenTelemetry's protocol over HTTP.
#[derive(Clone, Debug, PartialEq)]
pub struct Tracing {
    /// The collector's address.
    pub collector: Endpoint,
    /// The edge's name in traces.
    pub service: String,
    /// The part of requests that is traced, from 0 to 1.
    pub ratio: f64,
}

impl Tracing {
    /// Reads `OTEL_…`. `None`: requests are not traced, or there is a problem.
    pub fn read(env: &mut Environment<'_>) -> Option<Self> {
        const COLLECTOR: &str = "http://HOST[:PORT]";
        let collector = env.parse("OTEL_EXPORTER_OTLP_ENDPOINT", COLLECTOR, |text| {
            let text = text.strip_suffix('/').unwrap_or(text);
            Endpoint::parse(text).filter(|endpoint| !endpoint.tls)
        });
        let service = env.parse("OTEL_SERVICE_NAME", "1 to 255 visible characters", |text| {
            let visible = text.chars().all(|c| !c.is_control());
            (text.len() < 256 && visible).then(|| text.to_owned())
        });
        let ratio = env.parse("OTEL_TRACES_SAMPLER_ARG", "a ratio from 0 to 1", read_share);
        Some(Self {
            collector: collector?,
            service: service?,
            ratio: ratio?,
        })
    }
}
