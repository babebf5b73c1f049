// SPDX-License-Identifier: Apache-2.0
//! The logs.

use super::environment::Environment;
use crate::log::LogFormat;

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
    /// Reads `SLUICE_ACCESS_LOG` and `SLUICE_ACCESS_LOG_…`. `None`: there is a problem.
    pub fn read(env: &mut Environment<'_>) -> Option<Self> {
        let choices = ["text", "combined", "json", "off"].map(|name| (name, name));
        let choice = env.choice("SLUICE_ACCESS_LOG", &choices);
        let is_own = env.set(FORMAT_VARIABLE).is_some();
        let own = env.parse(
            FORMAT_VARIABLE,
            "a line without control characters",
            |text| {
                let is_line = text.chars().all(|c| c == '\t' || !c.is_control());
                is_line.then(|| text.to_owned())
            },
        );
        let hits = env.parse("SLUICE_ACCESS_LOG_HITS", "a share from 0 to 1", read_share);
        let format = match (choice?, own) {
            ("text", Some(own)) => AccessLogFormat::Own(own),
            ("text", None) if is_own => return None,
            (other, _) if is_own => {
                let accepted = format!("text, or no {FORMAT_VARIABLE}");
                env.refuse("SLUICE_ACCESS_LOG", Some(other.to_owned()), accepted);
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
pub const FORMAT_VARIABLE: &str = "SLUICE_ACCESS_LOG_FORMAT";

/// Reads `SLUICE_LOG_FORMAT`.
pub fn read_log_format(env: &mut Environment<'_>) -> Option<LogFormat> {
    env.choice("SLUICE_LOG_FORMAT", LogFormat::CHOICES)
}

/// Reads a share from 0 to 1.
pub fn read_share(text: &str) -> Option<f64> {
    let share: f64 = text.parse().ok()?;
    (0.0..=1.0).contains(&share).then_some(share)
}
