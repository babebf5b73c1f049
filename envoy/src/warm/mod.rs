// SPDX-License-Identifier: Apache-2.0
//! `sluice warm`: requests URLs of an edge as a client would, so that the edge stores their responses.

mod tally;
mod urls;

use std::fs;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail, ensure};
use clap::Args;
use ureq::Agent;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

use crate::net::{ca_bundle, http};
use tally::{Tally, Warmed};
use urls::{Sitemap, is_url, of_list, origin_of};

/// Bound on a request: a large object may take long.
const PATIENCE: Duration = Duration::from_secs(600);
/// Bound on a sitemap, in bytes (sitemaps.org).
const SITEMAP_BYTES: u64 = 50 << 20;
/// The time between two lines about the progress, on a terminal and elsewhere.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(10)];

/// Options of `sluice warm`.
#[derive(Args, Debug)]
pub struct Warm {
    /// A file with a URL, a path or an object's key on each line; - is standard input
    #[arg(required_unless_present = "sitemap")]
    pub list: Option<PathBuf>,
    /// A sitemap, whose URLs of the same host are requested; also one that lists other sitemaps
    #[arg(long, value_name = "URL", value_parser = read_url, conflicts_with = "list")]
    pub sitemap: Option<String>,
    /// The URL below which paths and keys of the list are
    #[arg(long, value_name = "URL", value_parser = read_url)]
    pub base: Option<String>,
    /// Connect to this edge, whatever addresses the hosts of the URLs have
    #[arg(long, value_name = "HOST:PORT", value_parser = read_address)]
    pub connect: Option<SocketAddr>,
    /// The most requests in a second
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rate: u32,
    /// The most requests at one time
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub parallel: u16,
    /// The codings that clients accept
    #[arg(
        long,
        value_name = "CODINGS",
        default_value = "gzip, deflate, br, zstd"
    )]
    pub accept_encoding: String,
    /// Print the numbers at the end as a JSON object
    #[arg(long)]
    pub json: bool,
}

fn read_url(text: &str) -> Result<String, String> {
    let url = Some(text.to_owned()).filter(|text| is_url(text));
    url.ok_or_else(|| "expected http:// or https://, a host and a path".to_owned())
}

fn read_address(text: &str) -> Result<SocketAddr, String> {
    let found = text
        .to_socket_addrs()
        .map_err(|error| error.to_string())?
        .next();
    found.ok_or_else(|| "expected a host that has an address".to_owned())
}

impl Warm {
    /// Requests the URLs, and reports the results. Fails if a request has failed.
    ///
    /// # Errors
    /// The list or the sitemap cannot be read.
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let agent = self.agent()?;
        let urls = self.urls(&agent)?;
        ensure!(!urls.is_empty(), "expected at least one URL");
        let tally = Mutex::new(Tally {
            urls: urls.len(),
            ..Tally::default()
        });
        let begin = Instant::now();
        let next = AtomicUsize::new(0);
        thread::scope(|scope| {
            let report = || report(&tally, begin);
            let reporter = scope.spawn(report);
            let workers: Vec<_> = (0..self.parallel)
                .map(|_| scope.spawn(|| self.work(&agent, &urls, &next, &tally, begin)))
                .collect();
            for worker in workers {
                let _ = worker.join();
            }
            reporter.thread().unpark();
        });
        let tally = *tally.lock().unwrap_or_else(PoisonError::into_inner);
        let line = match self.json {
            true => serde_json::to_string(&tally)?,
            false => tally.line(begin.elapsed()),
        };
        println!("{line}");
        Ok(match tally.failed {
            0 => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        })
    }

    /// Requests URLs until none is left, each at its time.
    fn work(
        &self,
        agent: &Agent,
        urls: &[String],
        next: &AtomicUsize,
        tally: &Mutex<Tally>,
        begin: Instant,
    ) {
        let pause = Duration::from_secs(1) / self.rate;
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(url) = urls.get(index) else { return };
            let due = pause.saturating_mul(u32::try_from(index).unwrap_or(u32::MAX));
            thread::sleep(due.saturating_sub(begin.elapsed()));
            let (warmed, bytes) = match self.request(agent, url) {
                Ok(result) => result,
                Err(error) => {
                    eprintln!("sluice: {url}: {error:#}");
                    (Warmed::Failed, 0)
                }
            };
            let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
            tally.add(warmed, bytes);
        }
    }

    /// Requests a URL, and reads its whole response.
    fn request(&self, agent: &Agent, url: &str) -> anyhow::Result<(Warmed, u64)> {
        let request = agent.get(url);
        let request = request.header("accept-encoding", &self.accept_encoding);
        let mut response = request.header("user-agent", "sluice-warm").call()?;
        let status = response.status().as_u16();
        let cache_status = response.headers().get("cache-status");
        let cache_status = cache_status.and_then(|value| value.to_str().ok());
        let warmed = Warmed::of(status, cache_status.unwrap_or_default());
        let bytes = io::copy(&mut response.body_mut().as_reader(), &mut io::sink())?;
        if warmed == Warmed::Failed {
            eprintln!("sluice: {url}: the status is {status}");
        }
        Ok((warmed, bytes))
    }

    fn agent(&self) -> anyhow::Result<Agent> {
        let chosen = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
        // An edge without TLS needs no certificates.
        let roots = ca_bundle::find(chosen.as_deref(), "an edge with TLS").ok();
        let config = http::config_of_servers(roots.as_deref(), PATIENCE);
        let config = config.with_context(|| format!("{:?}", roots.unwrap_or_default()))?;
        Ok(match self.connect {
            Some(address) => Agent::with_parts(config, DefaultConnector::new(), OneEdge(address)),
            None => Agent::new_with_config(config),
        })
    }

    fn urls(&self, agent: &Agent) -> anyhow::Result<Vec<String>> {
        if let Some(sitemap) = &self.sitemap {
            return of_sitemap(agent, sitemap);
        }
        let list = self.list.as_deref().unwrap_or_else(|| "-".as_ref());
        let text = match list.to_str() {
            Some("-") => io::read_to_string(io::stdin()),
            _ => fs::read_to_string(list),
        };
        let name = list.display();
        let text = text.with_context(|| name.to_string())?;
        of_list(&text, self.base.as_deref()).with_context(|| name.to_string())
    }
}

/// The pages of a sitemap, and of the sitemaps that it lists, on its own host. No other host is asked.
fn of_sitemap(agent: &Agent, sitemap: &str) -> anyhow::Result<Vec<String>> {
    let own = |url: &String| origin_of(url) == origin_of(sitemap);
    let pages = match fetch_sitemap(agent, sitemap)? {
        Sitemap::Pages(pages) => pages,
        Sitemap::Index(sitemaps) => {
            let mut pages = Vec::new();
            for sitemap in sitemaps.iter().filter(|url| own(url)) {
                match fetch_sitemap(agent, sitemap)? {
                    Sitemap::Pages(more) => pages.extend(more),
                    Sitemap::Index(_) => {
                        bail!("{sitemap}: expected pages, since an index lists it")
                    }
                }
            }
            pages
        }
    };
    Ok(pages.into_iter().filter(own).collect())
}

fn fetch_sitemap(agent: &Agent, url: &str) -> anyhow::Result<Sitemap> {
    let fetch = || -> anyhow::Result<Sitemap> {
        let mut response = agent.get(url).call()?;
        let status = response.status();
        ensure!(status == 200, "the status is {status}");
        let mut text = String::new();
        let body = response.body_mut().as_reader();
        let read = body.take(SITEMAP_BYTES).read_to_string(&mut text);
        read.map_err(|error| anyhow!("expected text: {error}"))?;
        Sitemap::parse(&text)
    };
    fetch().with_context(|| url.to_owned())
}

/// Writes the progress to standard error until every URL has been requested.
fn report(tally: &Mutex<Tally>, begin: Instant) {
    let is_terminal = io::stderr().is_terminal();
    let [short, long] = PAUSES;
    let pause = if is_terminal { short } else { long };
    loop {
        thread::park_timeout(pause);
        let now = *tally.lock().unwrap_or_else(PoisonError::into_inner);
        if now.done() >= now.urls {
            return;
        }
        let line = now.line(begin.elapsed());
        let mut stderr = io::stderr().lock();
        // A lost line is not a failure.
        let _ = match is_terminal {
            true => write!(stderr, "\r{line}\x1b[K"),
            false => writeln!(stderr, "{line}"),
        };
    }
}

/// The resolver that finds one edge for each host.
#[derive(Debug)]
struct OneEdge(SocketAddr);

impl Resolver for OneEdge {
    fn resolve(
        &self,
        _: &Uri,
        _: &Config,
        _: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let mut found = self.empty();
        found.push(self.0);
        Ok(found)
    }
}
