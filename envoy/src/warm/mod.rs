// SPDX-License-Identifier: Apache-2.0
//! `sluice warm`: requests URLs of an edge as a client would, so that the edge stores their responses.

mod bucket_urls;
mod tally;
mod urls;

use std::fs;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
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
use crate::settings::Settings;
use bucket_urls::BucketUrls;
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
    #[arg(required_unless_present_any = ["sitemap", "bucket_prefix"])]
    pub list: Option<PathBuf>,
    /// A sitemap, whose URLs of the same host are requested; also one that lists other sitemaps
    #[arg(long, value_name = "URL", value_parser = read_url, conflicts_with = "list")]
    pub sitemap: Option<String>,
    /// The objects of the site's bucket whose keys, behind the bucket's prefix, begin like this; "" for all. The
    /// settings of the edge in the environment name the bucket
    #[arg(
        long,
        value_name = "PREFIX",
        requires = "base",
        conflicts_with_all = ["list", "sitemap"]
    )]
    pub bucket_prefix: Option<String>,
    /// The URL below which paths and keys of the list, or the objects of the bucket, are
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
        let tally = Mutex::new(Tally::default());
        let begin = Instant::now();
        // A URL is sent when a worker takes it.
        let (sender, urls) = sync_channel(0);
        let urls = Mutex::new(urls);
        let sent = thread::scope(|scope| {
            let (_running, end) = channel();
            scope.spawn(|| report(&tally, begin, end));
            let workers: Vec<_> = (0..self.parallel)
                .map(|_| scope.spawn(|| self.work(&agent, &urls, &tally)))
                .collect();
            let sent = self.send(&agent, &sender, &tally);
            drop(sender);
            for worker in workers {
                let _ = worker.join();
            }
            sent
        });
        let tally = *locked(&tally);
        sent?;
        ensure!(tally.urls > 0, "expected at least one URL");
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

    /// Sends the URLs to the workers, each at its time.
    fn send(
        &self,
        agent: &Agent,
        sender: &SyncSender<String>,
        tally: &Mutex<Tally>,
    ) -> anyhow::Result<()> {
        let mut pace = Pace {
            pause: Duration::from_secs(1) / self.rate,
            due: Instant::now(),
        };
        let Some(beginning) = &self.bucket_prefix else {
            let urls = self.urls(agent)?;
            locked(tally).urls = urls.len();
            pace.send(sender, urls);
            return Ok(());
        };
        let base = self.base.as_deref().unwrap_or_default();
        let mut objects = BucketUrls::new(&Settings::from_env()?, base, beginning)?;
        while let Some(urls) = objects.next_page()? {
            let mut now = locked(tally);
            now.urls += urls.len();
            now.skipped = objects.skipped.number;
            now.more = objects.has_more();
            drop(now);
            pace.send(sender, urls);
        }
        let skipped = &objects.skipped;
        if let Some(first) = &skipped.first {
            let number = skipped.number;
            eprintln!("sluice: keys that no URL below {base} names: {number}, such as {first:?}");
        }
        Ok(())
    }

    /// Requests URLs until no more are sent.
    fn work(&self, agent: &Agent, urls: &Mutex<Receiver<String>>, tally: &Mutex<Tally>) {
        loop {
            let received = locked(urls).recv();
            let Ok(url) = received else { return };
            let (warmed, bytes) = match self.request(agent, &url) {
                Ok(result) => result,
                Err(error) => {
                    eprintln!("sluice: {url}: {error:#}");
                    (Warmed::Failed, 0)
                }
            };
            locked(tally).add(warmed, bytes);
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

/// The time between two requests.
struct Pace {
    pause: Duration,
    /// The time of the next request.
    due: Instant,
}

impl Pace {
    /// Sends URLs to the workers. A worker that was late does not hasten the next one.
    fn send(&mut self, sender: &SyncSender<String>, urls: Vec<String>) {
        for url in urls {
            thread::sleep(self.due.saturating_duration_since(Instant::now()));
            if sender.send(url).is_err() {
                return;
            }
            self.due = Instant::now().max(self.due + self.pause);
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes the progress to standard error until the sender of `end` is gone.
fn report(tally: &Mutex<Tally>, begin: Instant, end: Receiver<()>) {
    let is_terminal = io::stderr().is_terminal();
    let [short, long] = PAUSES;
    let pause = if is_terminal { short } else { long };
    while end.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let line = locked(tally).line(begin.elapsed());
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
