// SPDX-License-Identifier: Apache-2.0
//! The access log and traces.

use serde::Serialize;

use super::environment::Environment;
use crate::origin::Endpoint;

/// The format of the access log, which is written to standard output. The template uses the formats by their names
/// in lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessLog {
    /// A line of text for each request.
    Text,
    /// A JSON object in a line for each request.
    Json,
    /// No access log.
    Off,
}

impl AccessLog {
    /// Reads `SLUICE_ACCESS_LOG`.
    pub fn read(env: &mut Environment<'_>) -> Option<Self> {
        let choices = [
            ("text", Self::Text),
            ("json", Self::Json),
            ("off", Self::Off),
        ];
        env.choice("SLUICE_ACCESS_LOG", &choices)
    }
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
        let ratio = env.parse("OTEL_TRACES_SAMPLER_ARG", "a ratio from 0 to 1", |text| {
            let ratio: f64 = text.parse().ok()?;
            (0.0..=1.0).contains(&ratio).then_some(ratio)
        });
        Some(Self {
            collector: collector?,
            service: service?,
            ratio: ratio?,
        })
    }
}
