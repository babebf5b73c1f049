// SPDX-License-Identifier: Apache-2.0
//! h2load of nghttp2, which sends requests over HTTP/1.1 and HTTP/2, as fast as they are answered or at a constant
//! rate.

use crate::figures::Distribution;
use crate::peers::packages;
use sluice_tests::machine::process::Process;
use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// Requests a second on each connection at a constant rate. h2load has a timer for each connection, which fires every
/// 10 ms at most.
const EACH: u32 = 40;
/// Connections that are opened in a millisecond, at most, if there is a rate.
const OPENED: u32 = 1;

/// The version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1, one request after the other on each connection.
    Http1,
    /// HTTP/2, with several streams at a time on each connection; in cleartext with prior knowledge.
    Http2 {
        /// Requests under way on a connection.
        streams: u32,
    },
}

/// The server and the object of requests.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// Where the server listens.
    pub address: SocketAddr,
    /// Whether to use TLS. The version is TLS 1.3 and the cipher `TLS_AES_128_GCM_SHA256` for all servers.
    pub tls: bool,
    /// The protocol.
    pub protocol: Protocol,
    /// The path.
    pub path: &'a str,
}

/// Results of sending requests as fast as they are answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throughput {
    /// Requests that were answered.
    pub answered: u64,
    /// Requests that were not answered, or with an error.
    pub failed: u64,
    /// Responses a second.
    pub per_second: f64,
}

/// A constant rate.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Requests a second.
    pub rate: u32,
    /// The time before counting: handshakes, and the first request of each connection.
    pub warm_up: Duration,
    /// The time of counting.
    pub time: Duration,
}

impl Pace {
    /// A plan in milliseconds; its rate is filled in later.
    pub const fn of_millis(warm_up: u64, time: u64) -> Self {
        Self {
            rate: 0,
            warm_up: Duration::from_millis(warm_up),
            time: Duration::from_millis(time),
        }
    }
}

/// Results of sending requests at a constant rate.
#[derive(Clone, Debug)]
pub struct Paced {
    /// Number of requests that were sent, including the warm-up.
    pub sent: u64,
    /// Number of these requests that were not answered with status 200.
    pub failed: u64,
    /// Requests a second without the warm-up. They are fewer than the rate if responses take so long that connections
    /// are not free when they have to send the next request. In that case the times say nothing, because waiting
    /// requests are sent later and later.
    pub per_second: f64,
    /// Times from when a request was due to the end of its response, without the warm-up.
    pub times: Distribution,
    /// Result of the TLS handshake.
    pub tls: Option<String>,
}

/// Whether h2load is installed; prints a line if it is not.
pub fn is_there() -> bool {
    let there = packages::program("h2load").is_some();
    if !there {
        packages::missing("h2load");
    }
    there
}

/// Sends requests again and again on this many connections for `time`.
///
/// # Panics
/// When it fails.
pub async fn saturate(ask: &Ask<'_>, connections: u32, time: Duration) -> Throughput {
    let mut command = command(ask);
    command.args(["-c", &connections.to_string()]);
    command.arg(format!("-D{}ms", time.as_millis()));
    let output = run(command).await;
    Throughput::of(&output).unwrap_or_else(|| panic!("h2load says {output:?}"))
}

/// Sends a request for each of these paths, on one connection.
///
/// # Panics
/// When it fails.
pub async fn each_once(ask: &Ask<'_>, paths: &[String]) -> Throughput {
    let folder = TempDir::with_prefix("sluice-bench-h2load-").unwrap();
    let list = folder.path().join("paths");
    let urls: Vec<_> = paths.iter().map(|path| url(ask, path)).collect();
    std::fs::write(&list, urls.join("\n")).unwrap();
    let mut command = options(ask);
    command.args(["-n", &paths.len().to_string(), "-c1", "-i"]);
    command.arg(list);
    let output = run(command).await;
    Throughput::of(&output).unwrap_or_else(|| panic!("h2load says {output:?}"))
}

/// Sends requests at a constant rate, whether responses arrive or not.
///
/// # Panics
/// When it fails.
pub async fn pace(ask: &Ask<'_>, pace: Pace) -> Paced {
    let folder = TempDir::with_prefix_in("sluice-bench-h2load-", "/dev/shm").unwrap();
    let log = folder.path().join("log");
    let connections = (pace.rate / EACH).max(1);
    let per_second = f64::from(pace.rate) / f64::from(connections);
    let seconds = (pace.warm_up + pace.time).as_secs_f64() + f64::from(connections / OPENED) / 1e3;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let each = (seconds * per_second).ceil() as u32;
    let mut command = command(ask);
    command.args(["-c", &connections.to_string()]);
    command.args(["-n", &(each * connections).to_string()]);
    command.args(["--rps", &format!("{per_second:.3}")]);
    // The connections start one after the other, so that they do not all send at the same moment.
    command.args(["-r", &OPENED.to_string(), "--rate-period=1ms"]);
    command.arg("--log-file").arg(&log);
    let began = SystemTime::now();
    let output = run(command).await;
    let text = std::fs::read_to_string(&log).unwrap();
    let sent: Vec<_> = text.lines().filter_map(Sent::of).collect();
    let interval = 1e3 / per_second;
    let counted = within(&sent, pace);
    #[allow(clippy::cast_precision_loss)]
    let count = counted.len() as f64;
    Paced {
        per_second: count / pace.time.as_secs_f64(),
        sent: u64::from(each * connections),
        failed: sent.iter().filter(|sent| sent.status != 200).count() as u64,
        times: Distribution::since(
            began,
            from_due(&counted, interval)
                .into_iter()
                .map(|time| Duration::from_secs_f64(time / 1e3)),
        ),
        tls: agreed(&output),
    }
}

fn url(ask: &Ask<'_>, path: &str) -> String {
    let scheme = if ask.tls { "https" } else { "http" };
    format!("{scheme}://{}{path}", ask.address)
}

fn command(ask: &Ask<'_>) -> Command {
    let mut command = options(ask);
    command.arg(url(ask, ask.path));
    command
}

fn options(ask: &Ask<'_>) -> Command {
    let mut command = Command::new(packages::program("h2load").unwrap());
    // One thread generates more load than two cores serve beside it.
    command.args(["-t1", "--tls13-ciphers=TLS_AES_128_GCM_SHA256"]);
    match ask.protocol {
        Protocol::Http1 => command.arg("--h1"),
        Protocol::Http2 { streams } => command.args(["-m", &streams.to_string()]),
    };
    command
}

/// Output of the command.
async fn run(command: Command) -> String {
    let folder = TempDir::with_prefix("sluice-bench-h2load-").unwrap();
    let mut process = Process::start(command, &folder.path().join("output")).unwrap();
    let ended = process.ended().await;
    let output = process.log();
    assert!(ended.success(), "h2load: {output}");
    output
}

/// The rest of the line of `output` with this beginning.
fn line<'a>(output: &'a str, beginning: &str) -> Option<&'a str> {
    output
        .lines()
        .find_map(|line| line.strip_prefix(beginning))
        .map(str::trim)
}

/// `TLSv1.3, TLS_AES_128_GCM_SHA256, X25519 253 bits`
fn agreed(output: &str) -> Option<String> {
    let parts = ["TLS Protocol:", "Cipher:", "Server Temp Key:"].map(|part| line(output, part));
    let parts: Option<Vec<_>> = parts.into_iter().collect();
    parts.map(|parts| parts.join(", "))
}

impl Throughput {
    fn of(output: &str) -> Option<Self> {
        let rate = line(output, "finished in ")?.split(", ").nth(1)?;
        let counts = line(output, "requests:")?;
        let count = |what: &str| {
            let part = counts.split(", ").find(|part| part.ends_with(what))?;
            part.split(' ').next()?.parse::<u64>().ok()
        };
        Some(Self {
            answered: count(" succeeded")?,
            failed: count(" failed")?,
            per_second: rate.split(' ').next()?.parse().ok()?,
        })
    }
}

/// A request of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sent {
    /// Time of sending, in microseconds since the epoch.
    at: u64,
    status: i32,
    /// Microseconds to the end of its response.
    took: u64,
}

impl Sent {
    fn of(line: &str) -> Option<Self> {
        let mut fields = line.split('\t');
        Some(Self {
            at: fields.next()?.parse().ok()?,
            status: fields.next()?.parse().ok()?,
            took: fields.next()?.parse().ok()?,
        })
    }
}

/// The milliseconds of the requests that were sent after the warm-up.
fn within(sent: &[Sent], pace: Pace) -> Vec<f64> {
    let begin = sent.iter().map(|sent| sent.at).min().unwrap_or(0);
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let from = begin + micros(pace.warm_up);
    let counted = from..from + micros(pace.time);
    let sent = sent.iter().filter(|sent| counted.contains(&sent.at));
    #[allow(clippy::cast_precision_loss)]
    sent.map(|sent| sent.took as f64 / 1e3).collect()
}

/// Times from when requests were due, computed from times from sending on connections that send a request every
/// `interval`.
///
/// A request that is due while the previous one is not answered yet is sent only after that, and h2load counts it
/// from there. So a response that took longer than the interval adds the times of the requests behind it, as in
/// `HdrHistogram`.
fn from_due(times: &[f64], interval: f64) -> Vec<f64> {
    let waited = |&time: &f64| {
        let behind =
            std::iter::successors(Some(time - interval), move |left| Some(left - interval));
        std::iter::once(time).chain(behind.take_while(move |left| *left >= interval))
    };
    times.iter().flat_map(waited).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "TLS Protocol: TLSv1.3\nCipher: TLS_AES_128_GCM_SHA256\n\
        Server Temp Key: X25519 253 bits\nApplication protocol: http/1.1\n\n\
        finished in 2.01s, 33783.50 req/s, 329.92MB/s\n\
        requests: 67567 total, 67599 started, 67567 done, 67560 succeeded, 7 failed, 5 errored, 0 timeout\n";

    #[test]
    fn what_h2load_prints_is_read() {
        let throughput = Throughput::of(OUTPUT).unwrap();
        assert_eq!((throughput.answered, throughput.failed), (67_560, 7));
        assert!((throughput.per_second - 33_783.5).abs() < 1e-9);
        assert_eq!(Throughput::of("finished in 2.01s"), None);
        let agreed = agreed(OUTPUT).unwrap();
        assert_eq!(agreed, "TLSv1.3, TLS_AES_128_GCM_SHA256, X25519 253 bits");
    }

    #[test]
    fn the_warm_up_is_not_counted() {
        let log = "1000000\t200\t70000\n1999999\t200\t3000\n2000000\t200\t500\n2900000\t503\t250\n3000000\t200\t1";
        let sent: Vec<_> = log.lines().filter_map(Sent::of).collect();
        let pace = Pace {
            rate: 2,
            warm_up: Duration::from_secs(1),
            time: Duration::from_secs(1),
        };
        assert_eq!(within(&sent, pace), [0.5, 0.25]);
    }

    #[test]
    fn what_waited_behind_a_long_answer_is_counted_from_when_it_was_due() {
        assert_eq!(from_due(&[1.0, 25.0], 25.0), [1.0, 25.0]);
        assert_eq!(from_due(&[110.0], 25.0), [110.0, 85.0, 60.0, 35.0]);
    }
}
