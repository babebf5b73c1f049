// SPDX-License-Identifier: Apache-2.0
//! Many clients that disconnect, at every point of a request and in every way.

use crate::chance::rng::Rng;
use crate::client::http2::Http2;
use crate::client::{Client, Failure, Response, request};
use crate::http::body;
use h2::Reason;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;

/// Moment at which a client disconnects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// In the middle of its request's head.
    InRequest,
    /// As soon as the request is sent.
    AtOnce,
    /// After a random time that may be anywhere before or in the response.
    AtRandom,
    /// When it has received the response's head.
    AfterHead,
    /// When it has received some of the body.
    MidBody,
    /// When it receives the last byte.
    AtEnd,
    /// Never: it reads the whole response, which must be right.
    Stays,
}

const PHASES: [Phase; 7] = [
    Phase::InRequest,
    Phase::AtOnce,
    Phase::AtRandom,
    Phase::AfterHead,
    Phase::MidBody,
    Phase::AtEnd,
    Phase::Stays,
];

/// Kind of client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// GET over HTTP/1.1, which leaves with RST.
    Reset,
    /// GET over HTTP/1.1, which leaves with FIN.
    Fin,
    /// HEAD over HTTP/1.1.
    Head,
    /// GET over HTTP/1.1 with a small receive window.
    Slow,
    /// GET of a part over HTTP/1.1, which leaves with RST.
    Range,
    /// GET over HTTP/1.1 with a condition that holds for a stored object, which leaves with RST.
    Conditional,
    /// GET over HTTP/2, which leaves with RST_STREAM.
    StreamReset,
    /// GET over HTTP/2, which drops the connection.
    Http2Drop,
}

const KINDS: [Kind; 8] = [
    Kind::Reset,
    Kind::Fin,
    Kind::Head,
    Kind::Slow,
    Kind::Range,
    Kind::Conditional,
    Kind::StreamReset,
    Kind::Http2Drop,
];

/// A storm that can be started.
#[derive(Clone, Debug)]
pub struct Storm {
    /// Number of clients.
    pub clients: usize,
    /// Number of clients at a time.
    pub at_once: usize,
    /// The paths of the requests, as the origin sees them; bodies must be stamped.
    pub paths: Vec<String>,
    /// Seed of the random numbers.
    pub seed: u64,
    /// The longest random time before a client disconnects.
    pub span: Duration,
}

/// Results of the clients that stayed.
#[derive(Debug, Default)]
pub struct Wreckage {
    /// Clients by kind and phase.
    pub left: BTreeMap<(Kind, Phase), usize>,
    /// Number of whole, right bodies.
    pub whole: usize,
    /// Statuses other than 200, by status.
    pub other: BTreeMap<u16, usize>,
    /// Wrong bytes and similar faults: must be empty.
    pub wrong: Vec<String>,
    /// Failures of clients that stayed and received no response or half of it.
    pub failed: Vec<String>,
}

impl Storm {
    /// Starts the storm, and waits until it is over.
    ///
    /// # Panics
    /// When a client's task panics.
    pub async fn rage(&self, address: SocketAddr) -> Wreckage {
        let wreckage = Arc::new(Mutex::new(Wreckage::default()));
        let next = Arc::new(AtomicUsize::new(0));
        let mut sailors = JoinSet::new();
        for _ in 0..self.at_once.min(self.clients) {
            let (storm, next, wreckage) = (self.clone(), Arc::clone(&next), Arc::clone(&wreckage));
            sailors.spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= storm.clients {
                        return;
                    }
                    storm.client(address, number, &wreckage).await;
                }
            });
        }
        sailors.join_all().await;
        std::mem::take(&mut *wreckage.lock().unwrap())
    }

    /// Starts the storm against a server that may die, and returns whether it still listens.
    pub async fn survives(&self, address: SocketAddr) -> bool {
        self.rage(address).await;
        Client::try_connect(address).await.is_ok()
    }

    async fn client(&self, address: SocketAddr, number: usize, wreckage: &Mutex<Wreckage>) {
        let mut rng = Rng::new(self.seed.wrapping_add(number as u64 * 0x51_7C_C1));
        let phase = PHASES[rng.below(PHASES.len())];
        let kind = KINDS[rng.below(KINDS.len())];
        let path = &self.paths[rng.below(self.paths.len())];
        let pause = Duration::from_micros(
            rng.next() % u64::try_from(self.span.as_micros().max(1)).unwrap(),
        );
        *wreckage
            .lock()
            .unwrap()
            .left
            .entry((kind, phase))
            .or_default() += 1;
        let seen = match kind {
            Kind::StreamReset | Kind::Http2Drop => {
                over_http2(address, kind, phase, path, pause).await
            }
            _ => over_http1(address, kind, phase, path, pause, &mut rng).await,
        };
        let stays = phase == Phase::Stays;
        let mut wreckage = wreckage.lock().unwrap();
        match seen {
            Ok(Seen::Left) => {}
            Ok(Seen::Whole(200, content)) if kind == Kind::Head => {
                if content.is_empty() {
                    wreckage.whole += 1;
                } else {
                    wreckage.wrong.push(format!("{path}: a HEAD with a body"));
                }
            }
            Ok(Seen::Whole(304, content)) if kind == Kind::Conditional && content.is_empty() => {
                wreckage.whole += 1;
            }
            Ok(Seen::Slice(slice)) => match slice.check(path) {
                Ok(()) => wreckage.whole += 1,
                Err(wrong) => wreckage.wrong.push(wrong),
            },
            Ok(Seen::Whole(200, content)) => match body::check(path, &content) {
                Ok(_) => wreckage.whole += 1,
                Err(wrong) => wreckage.wrong.push(wrong),
            },
            Ok(Seen::Whole(status, _)) => *wreckage.other.entry(status).or_default() += 1,
            Ok(Seen::Part(content)) => {
                if content.len() >= body::STAMP
                    && let Err(wrong) = body::check_start(path, &content)
                {
                    wreckage.wrong.push(wrong);
                }
            }
            Err(failure) if stays => wreckage.failed.push(format!("{kind:?} {path}: {failure}")),
            Err(_) => {}
        }
    }
}

enum Seen {
    Left,
    /// A whole response with status 206.
    Slice(Slice),
    Part(Vec<u8>),
    Whole(u16, Vec<u8>),
}

impl Seen {
    fn of(response: Response) -> Self {
        if response.status == 206 {
            Self::Slice(Slice(response))
        } else {
            Self::Whole(response.status, response.body)
        }
    }
}

/// A response with status 206 of a scripted, stamped body.
struct Slice(Response);

impl Slice {
    fn check(&self, path: &str) -> Result<(), String> {
        let Self(response) = self;
        let parsed = || {
            let range = response.header("content-range").strip_prefix("bytes ")?;
            let (range, size) = range.split_once('/')?;
            let (first, last) = range.split_once('-')?;
            let sequence = response.headers.number("x-origin-sequence")?;
            Some((
                sequence,
                first.parse().ok()?,
                last.parse().ok()?,
                size.parse().ok()?,
            ))
        };
        let parsed: Option<(usize, usize, usize, usize)> = parsed();
        let (sequence, first, last, size) = parsed.ok_or_else(|| format!("{path}: {response}"))?;
        let whole = body::make(path, sequence as u64, size);
        if whole.get(first..=last) == Some(response.body.as_slice()) {
            Ok(())
        } else {
            Err(format!("{path}: wrong bytes {first}-{last}: {response}"))
        }
    }
}

async fn over_http1(
    address: SocketAddr,
    kind: Kind,
    phase: Phase,
    path: &str,
    pause: Duration,
    rng: &mut Rng,
) -> Result<Seen, Failure> {
    let mut client = match kind {
        Kind::Slow => Client::try_connect_narrow(address).await?,
        _ => Client::try_connect(address).await?,
    };
    let part = format!("bytes={}-{}", rng.below(4_000), 4_000 + rng.below(10_000));
    let bytes = match kind {
        Kind::Head => request("HEAD", path, &[]),
        Kind::Range => request("GET", path, &[("range", &part)]),
        Kind::Conditional => request("GET", path, &[("if-none-match", "*")]),
        _ => request("GET", path, &[]),
    };
    let sent = match phase {
        Phase::InRequest => rng.below(bytes.len() - 1) + 1,
        _ => bytes.len(),
    };
    client.send(&bytes[..sent]).await?;
    let seen = match phase {
        Phase::InRequest | Phase::AtOnce => Seen::Left,
        Phase::AtRandom => {
            let _ = tokio::time::timeout(pause, client.response()).await;
            Seen::Left
        }
        Phase::AfterHead => {
            client.head().await?;
            Seen::Left
        }
        Phase::MidBody => part_of_body(&mut client, kind, rng.below(30_000) + 1).await?,
        Phase::AtEnd => Seen::of(client.response().await?),
        Phase::Stays => {
            if kind == Kind::Slow {
                tokio::time::sleep(pause).await;
            }
            two_responses(&mut client, kind, path, &bytes).await?
        }
    };
    match kind {
        Kind::Fin => client.finish().await,
        _ => client.reset(),
    }
    Ok(seen)
}

/// Reads up to `most` bytes of a body.
async fn part_of_body(client: &mut Client, kind: Kind, most: usize) -> Result<Seen, Failure> {
    let (_, response) = client.head().await?;
    let has_length = response.headers.get("content-length").is_some();
    if kind == Kind::Head || response.status != 200 || !has_length {
        return Ok(Seen::Left);
    }
    Ok(Seen::Part(client.some(most).await?))
}

/// Reads the response, and then the response to a second request on the same connection. Returns the second one if
/// its body is wrong.
async fn two_responses(
    client: &mut Client,
    kind: Kind,
    path: &str,
    bytes: &[u8],
) -> Result<Seen, Failure> {
    let response = client.response().await?;
    let again = client.try_exchange(bytes).await?;
    let is_wrong = kind != Kind::Head && body::check(path, &again.body).is_err();
    if again.status == 200 && is_wrong {
        return Ok(Seen::Whole(200, again.body));
    }
    Ok(Seen::of(response))
}

async fn over_http2(
    address: SocketAddr,
    kind: Kind,
    phase: Phase,
    path: &str,
    pause: Duration,
) -> Result<Seen, Failure> {
    let lost = |error: h2::Error| Failure::Broken(std::io::Error::other(error));
    let connection = Http2::try_connect(address)
        .await
        .map_err(Failure::Refused)?;
    let mut stream = connection.start("GET", path, &[]).await.map_err(lost)?;
    let mut seen = Seen::Left;
    match phase {
        Phase::InRequest | Phase::AtOnce => {}
        Phase::AtRandom => {
            let _ = tokio::time::timeout(pause, async {
                stream.head().await?;
                stream.read(usize::MAX).await
            })
            .await;
        }
        Phase::AfterHead => {
            stream.head().await.map_err(lost)?;
        }
        Phase::MidBody => {
            let (status, _) = stream.head().await.map_err(lost)?;
            let part = stream.read(1).await.map_err(lost)?;
            if status == 200 {
                seen = Seen::Part(part);
            }
        }
        Phase::AtEnd | Phase::Stays => {
            let whole = async {
                let (status, _) = stream.head().await?;
                Ok(Seen::Whole(status, stream.read(usize::MAX).await?))
            };
            seen = tokio::time::timeout(crate::PATIENCE, whole)
                .await
                .map_err(|_| Failure::Stuck)?
                .map_err(lost)?;
        }
    }
    if kind == Kind::StreamReset {
        stream.reset(Reason::CANCEL);
        // The connection must be usable for another stream.
        if phase == Phase::Stays {
            let (status, _, content) = connection.get(path).await.map_err(lost)?;
            seen = Seen::Whole(status, content);
        }
    }
    connection.abort();
    Ok(seen)
}
