// SPDX-License-Identifier: Apache-2.0
//! Messages of the entry point to its user: lines of the log of a running edge, in the same form as Envoy's own
//! lines, or else the output of a command.

use std::io::{self, Write};
use std::sync::OnceLock;

use jiff::Timestamp;
use serde_json::json;

/// The form of the lines, once the edge runs.
static FORMAT: OnceLock<LogFormat> = OnceLock::new();

/// The form of the lines of the log on standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// `TIME LEVEL COMPONENT: MESSAGE`.
    Text,
    /// A JSON object with `time`, `level`, `component` and `message`.
    Json,
}

impl LogFormat {
    /// The names of the formats for users.
    pub const CHOICES: &[(&str, Self)] = &[
        (Self::Text.name(), Self::Text),
        (Self::Json.name(), Self::Json),
    ];

    /// The name of the format for users.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }

    /// The pattern of Envoy for the same form. Envoy escapes line breaks in a message.
    pub const fn envoy_pattern(self) -> &'static str {
        match self {
            Self::Text => "%Y-%m-%dT%T.%eZ %l %n: %_",
            Self::Json => {
                r#"{"time":"%Y-%m-%dT%T.%eZ","level":"%l","component":"%n","message":"%j"}"#
            }
        }
    }

    /// A line with this time, without its end.
    fn line(self, time: Timestamp, level: &str, message: &str) -> String {
        let time = time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ");
        match self {
            Self::Text => format!("{time} {level} sluice: {}", message.replace('\n', "\\n")),
            Self::Json => json!({
                "time": time.to_string(),
                "level": level,
                "component": "sluice",
                "message": message,
            })
            .to_string(),
        }
    }
}

/// Begins the log of an edge: each message is a line of this form from now on.
pub fn begin(format: LogFormat) {
    let _ = FORMAT.set(format);
}

/// Writes a message to standard error. Standard output belongs to the access log.
pub fn say(message: &str) {
    write("info", message);
}

/// Writes a message about a fault that the edge survives.
pub fn warn(message: &str) {
    write("warning", message);
}

/// Writes a message about a fault that ends the edge.
pub fn fail(message: &str) {
    write("error", message);
}

fn write(level: &str, message: &str) {
    let line = match FORMAT.get() {
        Some(format) => format.line(Timestamp::now(), level, message),
        None => format!("sluice: {message}"),
    };
    // Standard error may be closed; the failure cannot be reported then.
    let _ = write_line(&mut io::stderr(), &line);
}

/// Writes a line by one call. Envoy writes to the same file, and its lines would otherwise appear between the
/// parts.
fn write_line(log: &mut impl Write, line: &str) -> io::Result<()> {
    log.write_all(format!("{line}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts in which a log is written.
    #[derive(Default)]
    struct Parts(Vec<String>);

    impl Write for Parts {
        fn write(&mut self, part: &[u8]) -> io::Result<usize> {
            self.0.push(String::from_utf8_lossy(part).into_owned());
            Ok(part.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn no_line_of_another_process_comes_into_a_line() {
        let mut log = Parts::default();
        write_line(&mut log, "the bucket cannot be read").unwrap();
        assert_eq!(log.0, ["the bucket cannot be read\n"]);
    }

    #[test]
    fn a_message_is_one_line_of_either_form() {
        let time = "2026-11-27T10:00:00Z".parse().unwrap();
        let line = |format: LogFormat| format.line(time, "warning", "a \"b\"\nc");
        assert_eq!(
            line(LogFormat::Text),
            "2026-11-27T10:00:00.000Z warning sluice: a \"b\"\\nc"
        );
        assert_eq!(
            line(LogFormat::Json),
            r#"{"component":"sluice","level":"warning","message":"a \"b\"\nc","time":"2026-11-27T10:00:00.000Z"}"#
        );
    }
}
