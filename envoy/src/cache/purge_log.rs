// SPDX-License-Identifier: Apache-2.0
//! The log of purges in the cache's folder, for `sluice purges`. Envoy writes a line for each call at the listeners for
//! purges and for control, with the caller, the order and the result.
//!
//! The journal has the effects of the purges, by hashes of their URLs. This log has the orders, for the operator. A lost
//! line changes nothing else.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::log::warn;
use crate::system::joining_thread::JoiningThread;
use crate::system::private;

/// Name of the file in the cache's folder.
const FILE: &str = "purge-log";
/// Bound on the file, in bytes, after which the older lines are removed.
const MAX_BYTES: u64 = 4 << 20;
/// Bytes that remain when the older lines are removed.
const KEPT_BYTES: u64 = 1 << 20;
/// The time between two looks at the size of the file.
const LOOK: Duration = Duration::from_secs(10);

/// The log of one cache folder.
#[derive(Clone, Debug)]
pub struct PurgeLog {
    path: PathBuf,
}

/// A call for a purge, or a message about changes in a bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoggedPurge {
    /// The time of the call, as in RFC 3339.
    pub time: String,
    /// The number of the purge. `None`: nothing could be purged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// The number in the purge feed. `None`: the purge is not in the feed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feed: Option<u64>,
    /// The caller: `edge` or `site` and a name, by the token, `sns` and a topic, or `control socket`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// The address of the client. `None`: the client has used the control socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The order as a JSON object, or its beginning if it is long. `None`: the call had no order that was understood.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
    /// Whether the purge is soft. `None`: the order is not known as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soft: Option<bool>,
    /// The status of the answer: 200 if all workers and the journal have the purge.
    pub status: u16,
    /// The workers that have applied the purge, and all workers, such as `2/2`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<String>,
    /// The time until the answer, in milliseconds.
    pub duration_ms: u64,
}

/// The newest lines of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedPurges {
    /// The purges, the oldest first.
    pub purges: Vec<LoggedPurge>,
}

/// A line of the file. Facts of the filter are texts.
#[derive(Deserialize)]
struct Line {
    number: Option<String>,
    feed: Option<String>,
    #[serde(flatten)]
    purge: LoggedPurge,
}

impl PurgeLog {
    /// The log in `folder`, which is created.
    ///
    /// # Errors
    /// The file cannot be created, or cannot be shortened.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let path = folder.join(FILE);
        if private::found(private::append(&path))?.is_none() {
            private::create(&path)?;
        }
        let log = Self { path };
        log.shorten()?;
        Ok(log)
    }

    /// The path of the file, to which Envoy appends.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The newest purges, at most `most`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&self, most: usize) -> io::Result<LoggedPurges> {
        let mut text = Self::end_of(&self.older())?;
        text += &Self::end_of(&self.path)?;
        let purges: Vec<_> = text.lines().filter_map(LoggedPurge::read).collect();
        let first = purges.len().saturating_sub(most);
        let purges = purges.into_iter().skip(first).collect();
        Ok(LoggedPurges { purges })
    }

    /// Bounds the file until the result is dropped.
    ///
    /// # Errors
    /// The process can start no more threads.
    pub fn keep_short(self) -> io::Result<JoiningThread> {
        JoiningThread::start("purge log", move |stop| {
            let mut has_failed = false;
            while stop.wait(LOOK) {
                if let Err(error) = self.shorten()
                    && !std::mem::replace(&mut has_failed, true)
                {
                    let path = self.path.display();
                    warn(&format!(
                        "{path}: {error}: the log of purges is not shortened"
                    ));
                }
            }
        })
    }

    /// Moves the newest lines to the older file if the file is above its bound. Envoy keeps the file open and appends
    /// to it, so that a line that Envoy writes meanwhile is lost.
    fn shorten(&self) -> io::Result<()> {
        if fs::metadata(&self.path)?.len() <= MAX_BYTES {
            return Ok(());
        }
        private::write(&self.older(), &Self::end_of(&self.path)?)?;
        private::append(&self.path)?.set_len(0)
    }

    /// The file with the lines in front of those of the log.
    fn older(&self) -> PathBuf {
        self.path.with_extension("old")
    }

    /// The last whole lines of a file; empty if the file is missing.
    fn end_of(path: &Path) -> io::Result<String> {
        let Some(mut file) = private::found(File::open(path))? else {
            return Ok(String::new());
        };
        let start = file.metadata()?.len().saturating_sub(KEPT_BYTES);
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        file.take(KEPT_BYTES).read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        let whole = match start {
            0 => &text,
            _ => text.split_once('\n').map_or("", |(_, rest)| rest),
        };
        Ok(whole.to_owned())
    }
}

impl LoggedPurge {
    /// Reads a line. `None`: the line is not whole, or the call has purged nothing, such as an event about a read.
    fn read(line: &str) -> Option<Self> {
        let line: Line = serde_json::from_str(line).ok()?;
        let number = line.number.and_then(|number| number.parse().ok());
        if number.is_none() && line.purge.status < 300 {
            return None;
        }
        let order = line.purge.order.as_deref();
        let order = order.and_then(|order| serde_json::from_str::<Value>(order).ok());
        let soft = order.map(|order| order.get("soft").and_then(Value::as_bool).unwrap_or(false));
        let is_socket = |client: &String| client.starts_with('/');
        Some(Self {
            number,
            feed: line.feed.and_then(|number| number.parse().ok()),
            soft,
            client: line.purge.client.filter(|client| !is_socket(client)),
            ..line.purge
        })
    }

    /// Removes the queries of the URLs.
    #[must_use]
    pub fn without_queries(self) -> Self {
        let order = self.order.as_deref().map(without_queries);
        Self { order, ..self }
    }

    /// The subject of the purge for a table: the order without `soft`.
    pub fn subject(&self) -> String {
        let Some(order) = &self.order else {
            return String::new();
        };
        let Ok(Value::Object(mut order)) = serde_json::from_str(order) else {
            return self.order.clone().unwrap_or_default();
        };
        order.remove("soft");
        let parts = order.iter().map(|(name, value)| match value {
            Value::String(text) => format!("{name} {text}"),
            Value::Bool(true) => name.clone(),
            other => format!("{name} {other}"),
        });
        parts.collect::<Vec<_>>().join(", ")
    }
}

/// An order in which each query is replaced by `?…`. A query ends with the text that has the URL.
fn without_queries(order: &str) -> String {
    let mut parts = order.split('?');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |done, part| {
        let rest = part.find('"').and_then(|end| part.get(end..));
        done + "?…" + rest.unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use tempfile::TempDir;

    fn append(log: &PurgeLog, text: &str) {
        let mut file = private::append(log.path()).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn a_line_of_envoys_says_who_has_purged_what_and_how() {
        let dir = TempDir::new().unwrap();
        let log = PurgeLog::open(dir.path()).unwrap();
        append(
            &log,
            "{\"time\":\"2026-11-27T14:00:00.000Z\",\"caller\":\"site shop\",\"client\":\"10.0.0.7\",\"method\":\"POST\",\
             \"order\":\"{\\\"prefix\\\":\\\"https://a.test/img/\\\",\\\"soft\\\":true}\",\"number\":\"7\",\
             \"feed\":\"122\",\"workers\":\"2/2\",\"status\":200,\"duration_ms\":21}\n\
             {\"time\":\"2026-11-27T14:00:01.000Z\",\"caller\":\"control socket\",\"client\":\"/state/ask-80.sock\",\"order\":\"{\\\"urls\\\":[\\\"http…\",\"status\":503,\
             \"duration_ms\":2000}\n\
             {\"time\":\"2026-11-27T14:00:02.000Z\",\"caller\":\"sns\",\"status\":200,\"duration_ms\":0}\n{\"time\":\"20",
        );
        let purges = log.read(10).unwrap().purges;
        let [soft, cut] = purges.as_slice() else {
            panic!("{purges:?}");
        };
        assert_eq!((soft.number, soft.soft), (Some(7), Some(true)));
        assert_eq!((soft.feed, cut.feed), (Some(122), None));
        assert_eq!(soft.subject(), "prefix https://a.test/img/");
        assert_eq!((soft.status, soft.workers.as_deref()), (200, Some("2/2")));
        assert_eq!((cut.soft, cut.number, &cut.client), (None, None, &None));
        assert_eq!(cut.subject(), "{\"urls\":[\"http…");
        let newest = log.read(1).unwrap().purges;
        assert_eq!(newest, std::slice::from_ref(cut));
        let text = serde_json::to_string(&purges).unwrap();
        assert_eq!(
            serde_json::from_str::<Vec<LoggedPurge>>(&text).unwrap(),
            purges
        );
    }

    #[test]
    fn queries_are_cut_and_the_rest_of_the_order_is_kept() {
        let order = r#"{"soft":true,"urls":["http://a.test/x?token=1?2","http://a.test/y"]}"#;
        let cut = r#"{"soft":true,"urls":["http://a.test/x?…","http://a.test/y"]}"#;
        assert_eq!(without_queries(order).replace("?…?…", "?…"), cut);
        assert_eq!(
            without_queries(r#"{"url":"http://a.test/x?token=1…"#),
            r#"{"url":"http://a.test/x?…"#
        );
    }

    #[test]
    fn a_long_log_loses_its_oldest_lines_and_an_open_file_still_appends() {
        let dir = TempDir::new().unwrap();
        let log = PurgeLog::open(dir.path()).unwrap();
        let mut envoy = private::append(log.path()).unwrap();
        let lines = usize::try_from(MAX_BYTES / 20).unwrap();
        let text: String = (0..lines)
            .map(|at| format!("{{\"status\":500,\"duration_ms\":{at:06}}}\n").replace(":0", ": "))
            .collect();
        envoy.write_all(text.as_bytes()).unwrap();
        log.shorten().unwrap();
        envoy
            .write_all(b"{\"status\":500,\"duration_ms\":1}\n")
            .unwrap();
        let purges = log.read(usize::MAX).unwrap().purges;
        let last = purges.last().map(|purge| purge.duration_ms);
        assert_eq!(last, Some(1));
        let size = |path: &Path| fs::metadata(path).unwrap().len();
        assert_eq!(size(log.path()), 31);
        assert!(size(&log.older()) <= KEPT_BYTES);
        assert!(purges.len() > 1_000, "{}", purges.len());
    }

    #[test]
    fn only_its_owner_reads_the_log() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = TempDir::new().unwrap();
        let log = PurgeLog::open(dir.path()).unwrap();
        let mode = fs::metadata(log.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(log.read(9).unwrap(), LoggedPurges::default());
    }
}
