// SPDX-License-Identifier: Apache-2.0
//! A client that sends random requests over HTTP/1.1 or HTTP/2, and has each response judged.

use super::adornment::Adornment;
use super::answer::{Answer, End};
use super::ask::{Ask, PADDING, PADDINGS, Part};
use super::clock::{Clock, Moment};
use super::judge::{Case, UNANSWERED};
use super::ledger::Wrong;
use super::object::VARIANTS;
use super::origin::FETCH;
use super::pass::{self, Pass};
use super::world::World;
use crate::chance::popularity::Zipf;
use crate::chance::rng::{Rng, mix};
use crate::client::http2::Http2;
use crate::client::{self, Failure, request_text};
use crate::http::message::{Headers, latin_1};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The counter of responses that are made of slices.
pub const SLICED: &str = "responses in slices";
/// Longest time of a response.
const STUCK: Duration = Duration::from_secs(20);
/// Longest time in which no bytes of a body are received.
const SILENT: Duration = Duration::from_secs(10);
/// How long a follower waits for a leader without success (`coalesce.max_wait`).
const LATE: Duration = Duration::from_millis(4_900);
/// How uneven the popularity of objects is.
const EXPONENT: f64 = 1.1;
/// Longest time between a response and the next request of a client, in milliseconds.
const THINKS: usize = 15;
/// Number of pieces in which a slow reader reads a body.
const PIECES: usize = 100;
/// How long a client waits before it connects again.
const AGAIN: Duration = Duration::from_millis(50);
/// Bytes that a client takes from its connection at once.
const PIECE: usize = 64 << 10;
/// The fewest bytes that a slow reader takes at once.
const SMALLEST_PIECE: usize = 4_096;
/// The largest object that is read through a small receive buffer, which takes seconds for it.
const LARGEST_NARROW: usize = 300_000;
/// How long a slow reader waits before each piece.
const SLOWNESS: Duration = Duration::from_millis(8);

/// How a client behaves for one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Manner {
    slow: bool,
    /// Whether an empty frame ends its request on HTTP/2, instead of the headers.
    empty_frame: bool,
    /// The time after which it leaves, and whether it ends the connection in order.
    leaves: Option<(Duration, bool)>,
}

/// Its connection.
enum Connection {
    Http1(client::Client),
    Http2(Http2),
}

/// A client of a run.
pub struct Client {
    world: Arc<World>,
    edge: usize,
    address: SocketAddr,
    rng: Rng,
    popularity: Arc<Zipf>,
    http2: bool,
    connection: Option<Connection>,
    /// The last response on it: its object, its status, and the time of its request.
    last: Option<(usize, u16, Moment)>,
    /// Validators of the objects that it has received.
    copies: HashMap<(usize, &'static str), String>,
}

impl Client {
    /// Client number `number` of a run, of an edge with a number and an address.
    #[must_use]
    pub fn new(world: &Arc<World>, (edge, address): (usize, SocketAddr), number: usize) -> Self {
        Self {
            world: Arc::clone(world),
            edge,
            address,
            rng: Rng::new(world.shelf.seed ^ mix(number as u64 + 1)),
            popularity: Arc::new(Zipf::new(world.shelf.objects.len(), EXPONENT)),
            http2: number % 4 == 3,
            connection: None,
            last: None,
            copies: HashMap::new(),
        }
    }

    /// Sends requests until the run is over.
    pub async fn run(mut self) {
        while !self.world.is_over() {
            let (ask, manner) = (self.ask(), self.manner());
            let answer = self.answer(&ask, manner).await;
            self.judge(&ask, &answer, manner);
            let thinks = self.rng.below(THINKS * 1_000) as u64;
            tokio::time::sleep(Duration::from_micros(thinks)).await;
        }
    }

    fn one_in(&mut self, number: usize) -> bool {
        self.rng.below(number) == 0
    }

    fn manner(&mut self) -> Manner {
        let leaves = Duration::from_micros(self.rng.below(80_000) as u64);
        Manner {
            slow: self.one_in(16),
            empty_frame: self.one_in(4),
            leaves: self.one_in(12).then_some((leaves, self.one_in(2))),
        }
    }

    fn ask(&mut self) -> Ask {
        // The most popular objects are of all kinds.
        let object = self.popularity.draw(&mut self.rng) * 13 % self.world.shelf.objects.len();
        let variant = VARIANTS[self.rng.below(VARIANTS.len())];
        let head = self.one_in(12);
        let part = (!head && self.one_in(8)).then(|| self.part(object));
        let validator = self
            .one_in(6)
            .then(|| self.copies.get(&(object, variant)).cloned());
        let padding = self.one_in(10).then(|| PADDINGS[self.rng.below(2)]);
        let adornment = self.one_in(20).then(|| Adornment::ALL[self.rng.below(3)]);
        let generations = &self.world.generations;
        let generation = pass::generation(generations, self.world.shelf.clock.now());
        let pass = match self.world.has_access {
            true => Pass::draw(generation, &mut self.rng),
            false => Pass::Open,
        };
        Ask {
            object,
            variant,
            head,
            part,
            validator: validator.flatten(),
            padding,
            pass,
            adornment,
        }
    }

    /// Draws a part that each version has.
    fn part(&mut self, object: usize) -> Part {
        let size = *self.world.shelf.objects[object].sizes.start();
        let (one, other) = (self.rng.below(size), self.rng.below(size));
        match self.rng.below(4) {
            0 => Part::From(one),
            1 => Part::Last(one + 1),
            _ => Part::Between(one.min(other), one.max(other)),
        }
    }

    async fn answer(&mut self, ask: &Ask, manner: Manner) -> Answer {
        let asked = self.world.shelf.clock.now();
        let mut answer = Answer {
            edge: self.edge,
            status: None,
            headers: Headers::default(),
            body: Vec::new(),
            end: End::Left,
            after: self.last,
            asked,
            progressed: asked,
            silence: Duration::ZERO,
            ended: asked,
        };
        let limit = manner.leaves.map_or(STUCK, |(leaves, _)| leaves);
        let exchange = tokio::time::timeout(limit, self.exchange(ask, manner, &mut answer)).await;
        answer.end = match exchange {
            Ok(Ok(())) => End::Whole,
            Ok(Err(how)) => End::Cut(how),
            Err(_) if manner.leaves.is_some() => End::Left,
            // A large object takes long on a busy machine, and its client leaves.
            Err(_) if self.world.shelf.clock.now() < answer.progressed + SILENT => End::Left,
            Err(_) => End::Stuck,
        };
        answer.ended = self.world.shelf.clock.now();
        answer.progress(answer.ended);
        self.last = answer
            .status
            .map(|status| (ask.object, status, answer.ended));
        let cut = matches!(answer.end, End::Cut(_));
        // The slices that are under way for a client end with its response.
        if answer.end == End::Left || cut && self.world.shelf.objects[ask.object].is_sliced() {
            self.world.departures.note(ask.object, answer.ended);
        }
        let closes = answer.headers.get("connection") == Some("close");
        // A narrow connection is for one response, because the next one may be large.
        if answer.end != End::Whole || closes || manner.slow {
            self.leave(manner).await;
            self.last = None;
        }
        answer
    }

    /// NB: it may be dropped within a response; then `answer` has the received part.
    async fn exchange(
        &mut self,
        ask: &Ask,
        manner: Manner,
        answer: &mut Answer,
    ) -> Result<(), String> {
        let object = &self.world.shelf.objects[ask.object];
        let target = ask.pass.target(&object.path);
        let cookie = ask.pass.cookie(&object.path);
        let range = ask.part.as_ref().map(Part::field);
        let condition = if object.dated {
            "if-modified-since"
        } else {
            "if-none-match"
        };
        let mut fields = vec![(super::object::VARIES_BY, ask.variant)];
        fields.extend(cookie.as_deref().map(|cookie| ("cookie", cookie)));
        fields.extend(range.as_deref().map(|range| ("range", range)));
        fields.extend(ask.validator.as_deref().map(|value| (condition, value)));
        let padding = ask.padding.map(|bytes| "p".repeat(bytes));
        fields.extend(padding.as_deref().map(|padding| (PADDING, padding)));
        let adorned = ask.adornment.map(Adornment::of_request).unwrap_or_default();
        let adorned = adorned.iter();
        fields.extend(adorned.map(|(name, value)| (name.as_str(), value.as_str())));
        let method = if ask.head { "HEAD" } else { "GET" };
        if self.connection.is_none() {
            let narrow = manner.slow && *object.sizes.end() <= LARGEST_NARROW;
            self.connection = Some(self.connect(narrow).await?);
        }
        let clock = self.world.shelf.clock;
        match self.connection.as_mut() {
            Some(Connection::Http1(client)) => {
                let bytes = latin_1(&request_text(method, &target, &fields));
                over_http1(client, &bytes, (manner, clock), answer)
                    .await
                    .map_err(|failure| failure.to_string())
            }
            Some(Connection::Http2(connection)) => {
                let request = (method, target.as_str(), fields.as_slice());
                let exchange = over_http2(connection, request, (manner, clock), answer);
                exchange.await.map_err(|error| error.to_string())
            }
            None => Ok(()),
        }
    }

    async fn connect(&self, narrow: bool) -> Result<Connection, String> {
        if self.http2 {
            let connection = Http2::try_connect(self.address).await;
            if connection.is_err() {
                tokio::time::sleep(AGAIN).await;
            }
            return connection
                .map(Connection::Http2)
                .map_err(|error| error.to_string());
        }
        let connection = if narrow {
            client::Client::try_connect_narrow(self.address).await
        } else {
            client::Client::try_connect(self.address).await
        };
        connection
            .map(Connection::Http1)
            .map_err(|failure| failure.to_string())
    }

    async fn leave(&mut self, manner: Manner) {
        let polite = manner.leaves.is_some_and(|(_, polite)| polite);
        match self.connection.take() {
            Some(Connection::Http1(client)) if polite => client.finish().await,
            Some(Connection::Http1(client)) => client.reset(),
            // Its stream was dropped, which resets it.
            Some(Connection::Http2(connection)) if polite => {
                self.connection = Some(Connection::Http2(connection))
            }
            Some(Connection::Http2(connection)) => connection.abort(),
            None => {}
        }
    }

    fn judge(&mut self, ask: &Ask, answer: &Answer, manner: Manner) {
        let world = &self.world;
        let case = Case { world, ask, answer };
        match case.judge() {
            Ok(UNANSWERED) => {
                world.ledger.count(UNANSWERED);
                return;
            }
            Ok(counted) => world.ledger.count(counted),
            Err((wrong, what)) => world.ledger.complain(wrong, answer.ended, &what),
        }
        if answer.headers.get("cache-status").is_some_and(is_in_slices) {
            world.ledger.count(SLICED);
        }
        note_leader(&case);
        if !manner.slow {
            note_time(&case);
        }
        world.ledger.count("requests");
        let kinds = [
            (self.http2, "requests on HTTP/2"),
            (manner.slow, "requests of slow readers"),
            (
                matches!(ask.pass, Pass::Cookie(_)),
                "requests signed by a cookie",
            ),
            (
                matches!(ask.pass, Pass::Link(_)),
                "requests signed by a link",
            ),
        ];
        for (_, kind) in kinds.iter().filter(|(is, _)| *is) {
            world.ledger.count(kind);
        }
        if let Some(validator) = case.validator() {
            self.copies.insert((ask.object, ask.variant), validator);
        }
    }
}

/// Whether `Cache-Status` says that the response is made of slices.
fn is_in_slices(cache_status: &str) -> bool {
    cache_status.contains("detail=slices")
}

/// Records the client for which a fetch was made.
fn note_leader(case: &Case<'_>) {
    let headers = &case.answer.headers;
    let status = headers.get("cache-status").unwrap_or_default();
    let leads = status.contains("fwd=") && !status.contains("collapsed");
    if let Some(fetch) = headers.number(FETCH).filter(|_| leads) {
        let told = format!("{status} {:?} {:?}", case.ask, case.answer.end);
        case.world.ledger.led(fetch, case.answer.asked, told);
    }
}

/// Records the time of the response, and complains if its client received nothing for too long. A response in slices
/// may take longer than that on a busy machine, because its slices are requested one after the other.
fn note_time(case: &Case<'_>) {
    let Case { world, answer, .. } = *case;
    let took = answer.ended - answer.asked;
    let told = || {
        format!(
            "{:?}, {:?} without a byte, {}",
            answer.status,
            answer.silence,
            case.circumstances()
        )
    };
    world.ledger.took(took, told);
    if answer.silence > LATE && !case.may_be_late() {
        let what = format!("late; {}", case.circumstances());
        world.ledger.complain(Wrong::Late, answer.ended, &what);
    }
}

async fn over_http1(
    client: &mut client::Client,
    bytes: &[u8],
    (manner, clock): (Manner, Clock),
    answer: &mut Answer,
) -> Result<(), Failure> {
    client.send(bytes).await?;
    let (head, response) = client.head().await?;
    answer.progress(clock.now());
    answer.status = Some(response.status);
    answer.headers = response.headers;
    let length = answer.headers.number("content-length");
    let has_body = !bytes.starts_with(b"HEAD") && answer.status != Some(304);
    if let (Some(length), true) = (length, has_body) {
        let slow_piece = (length / PIECES).max(SMALLEST_PIECE);
        let piece = if manner.slow { slow_piece } else { PIECE };
        while answer.body.len() < length {
            if manner.slow {
                tokio::time::sleep(SLOWNESS).await;
            }
            let some = client.some(piece.min(length - answer.body.len())).await?;
            if some.is_empty() {
                return Err(Failure::NoResponse);
            }
            answer.progress(clock.now());
            answer.body.extend_from_slice(&some);
        }
        return Ok(());
    }
    client
        .body(&head, &mut answer.body)
        .await
        .map_err(Failure::Broken)
}

async fn over_http2(
    connection: &Http2,
    (method, path, fields): (&str, &str, &[(&str, &str)]),
    (manner, clock): (Manner, Clock),
    answer: &mut Answer,
) -> Result<(), h2::Error> {
    let ends = !manner.empty_frame;
    let mut stream = connection.begin(method, path, fields, ends).await?;
    if !ends {
        stream.send_body(&[], true)?;
    }
    let (status, headers) = stream.head().await?;
    answer.progress(clock.now());
    answer.status = Some(status);
    answer.headers = headers;
    loop {
        if manner.slow {
            tokio::time::sleep(SLOWNESS).await;
        }
        let some = stream.read(1).await?;
        if some.is_empty() {
            return Ok(());
        }
        answer.progress(clock.now());
        answer.body.extend_from_slice(&some);
    }
}
