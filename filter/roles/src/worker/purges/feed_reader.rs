// SPDX-License-Identifier: Apache-2.0
//! The readings of the purge feed by one worker of the process, and the purges that they bring.

use std::rc::Rc;

use sluice_core::key::feed_target;
use sluice_core::metrics::Metric;
use sluice_core::policy::purge::{FeedPolicy, Kind, Scope};
use sluice_core::purge::{
    Caller, Feed, FeedHaste, FeedNews, FeedReadings, FeedTurn, PurgeOrder, PurgeSubject,
    SharedPurges,
};
use sluice_core::sites::Sites;
use sluice_core::workers::shared_value::SharedError;
use sluice_core::workers::{Millis, WorkerId, millis};
use sluice_host::Host;

use super::purge_calls::PurgeCalls;
use crate::reply::substitute::Document;
use crate::request::call_kind::CallKind;
use crate::request::policy::Generation;
use crate::worker::keys::Keys;
use crate::worker::metrics::Metrics;
use crate::worker::own_requests::calls::{BackgroundCall, Calls};
use crate::worker::roots::Roots;

/// How often a worker checks whether it is its turn to read, in milliseconds.
const CHECK_MILLIS: Millis = 500;
/// Time without any reading since the start of the process after which everything is revalidated.
const START_MILLIS: Millis = 10_000;
/// How long a worker that no server has answered leaves the turn to others, in milliseconds. The host also runs
/// the filter in a thread that reaches no server.
const SHY_MILLIS: Millis = 5_000;
/// Time by which a turn outlasts two intervals, in milliseconds.
const GRACE_MILLIS: Millis = 1_000;

/// The outcome of a reading.
enum Reading {
    /// The feed, the same as before, or no feed yet.
    Read,
    /// The reading has failed, for this reason.
    Failed(String),
    /// The answer is not a feed.
    NoFeed,
}

/// The readings of one worker.
#[derive(Debug)]
pub struct FeedReader {
    host: Rc<dyn Host>,
    metrics: Rc<Metrics>,
    worker: WorkerId,
    policy: Option<FeedPolicy>,
    /// The time of the next reading or check.
    due: Millis,
    /// The state of the readings, if it is this worker's turn.
    readings: Option<FeedReadings>,
    /// The `ETag` of the feed that was applied.
    etag: Option<Vec<u8>>,
    /// Whether a reading is under way.
    is_reading: bool,
    /// Whether a server has answered this worker.
    has_answer: bool,
    /// Whether this edge has written lines since the last reading began.
    expects: bool,
    haste: FeedHaste,
}

impl FeedReader {
    /// The reader of `worker`, without a feed yet.
    pub fn new(host: Rc<dyn Host>, metrics: Rc<Metrics>, worker: WorkerId) -> Self {
        Self {
            host,
            metrics,
            worker,
            policy: None,
            due: 0,
            readings: None,
            etag: None,
            is_reading: false,
            has_answer: false,
            expects: false,
            haste: FeedHaste::default(),
        }
    }

    /// Applies new sites, whose feed may be another one.
    pub fn keep_to(&mut self, keys: &mut Keys, sites: &Sites) {
        let policy = &sites.edge.purge.feed;
        if self.policy == *policy {
            return;
        }
        self.policy.clone_from(policy);
        self.etag = None;
        self.due = 0;
        let readings = FeedTurn::new(&*self.host, self.worker).readings();
        let readings = self.checked(readings).unwrap_or_default();
        keys.await_feed(policy.is_some() && readings.is_awaited());
    }

    /// The timer period that the readings need.
    pub fn tick_period(&self) -> Option<Millis> {
        let every = millis(self.policy.as_ref()?.every);
        Some(match self.readings {
            Some(_) => (every / 10).clamp(10, CHECK_MILLIS),
            None => CHECK_MILLIS.min(every),
        })
    }

    /// Notes that this edge has written lines.
    pub fn expect_lines(&mut self) {
        self.expects = self.readings.is_some();
    }

    /// Whether this edge has written lines that this worker is to read.
    pub const fn expects_lines(&self) -> bool {
        self.expects
    }

    /// Begins a reading, if it is due and this worker's turn. It is due in the interval, and ahead of it if lines are
    /// lacking.
    pub fn tick(
        &mut self,
        keys: &mut Keys,
        roots: &mut Roots,
        calls: &mut Calls,
        purge_calls: &mut PurgeCalls,
        newest: Option<&Rc<Generation>>,
    ) {
        let now = self.host.monotonic_millis();
        self.publish(keys, now);
        let (Some(policy), Some(generation)) = (self.policy.clone(), newest) else {
            return;
        };
        let every = millis(policy.every);
        if now < self.due && !self.hastens(keys, now, every) {
            return;
        }
        let turn = FeedTurn::new(&*self.host, self.worker);
        let taken = turn.take(now, now + 2 * every + GRACE_MILLIS);
        let taken = self.checked(taken);
        keys.await_feed(taken.is_none_or(|(_, readings)| readings.is_awaited()));
        let Some((true, readings)) = taken else {
            self.readings = None;
            self.due = now + CHECK_MILLIS.min(every);
            return;
        };
        self.due = now + self.jittered(every);
        self.readings = Some(readings);
        self.validate_overdue(keys, roots, purge_calls, &policy, now);
        if !self.is_reading {
            self.is_reading = self.begin(calls, generation);
        }
    }

    /// Whether a reading begins ahead of its time.
    fn hastens(&mut self, keys: &Keys, now: Millis, every: Millis) -> bool {
        let reads = self.readings.is_some() && !self.is_reading;
        reads && (self.expects || keys.lacks_lines()) && self.haste.take(now, every)
    }

    /// Queues the request for the feed. Returns whether there is one.
    fn begin(&mut self, calls: &mut Calls, generation: &Generation) -> bool {
        self.expects = false;
        let site = generation.sites.feed_site();
        let Some(policy) = site.and_then(|site| generation.policies().get(site)) else {
            return false;
        };
        let target = Rc::new(feed_target(&policy.policy));
        let known = self.etag.iter().cloned();
        let headers = known.map(|etag| ("if-none-match".to_owned(), etag));
        calls.push(BackgroundCall {
            headers: headers.collect(),
            ..BackgroundCall::new(CallKind::Feed, target, policy.clone())
        });
        true
    }

    /// Handles the answer to the request for the feed; `None` if there is none.
    pub fn end(
        &mut self,
        keys: &mut Keys,
        roots: &mut Roots,
        purge_calls: &mut PurgeCalls,
        sites: Option<&Sites>,
        answer: Option<Document>,
    ) {
        self.is_reading = false;
        let now = self.host.monotonic_millis();
        let reading = match (answer, sites) {
            (Some(answer), Some(sites)) => self.read(keys, roots, purge_calls, sites, &answer),
            _ => Reading::Failed("no answer".to_owned()),
        };
        let Some(readings) = self.readings else {
            // Another worker has the turn.
            return;
        };
        match reading {
            Reading::Read => {
                self.metrics.count(Metric::FeedReads, 1);
                self.note(FeedReadings::at(now));
                keys.await_feed(false);
                if !keys.lacks_lines() {
                    self.haste.satisfy();
                }
            }
            Reading::NoFeed => {
                self.metrics.count(Metric::FeedErrors, 1);
                self.metrics
                    .warn(|| "sluice: the purge feed cannot be read: the object is no feed".into());
                self.validate(keys, roots, purge_calls, readings);
            }
            Reading::Failed(reason) => {
                self.metrics.count(Metric::FeedErrors, 1);
                self.metrics
                    .warn(|| format!("sluice: the purge feed cannot be read: {reason}"));
                if !self.has_answer {
                    self.readings = None;
                    self.due = now + SHY_MILLIS;
                    let given = FeedTurn::new(&*self.host, self.worker).give_up();
                    self.checked(given);
                }
            }
        }
        self.publish(keys, now);
    }

    /// Applies an answer.
    fn read(
        &mut self,
        keys: &mut Keys,
        roots: &mut Roots,
        purge_calls: &mut PurgeCalls,
        sites: &Sites,
        answer: &Document,
    ) -> Reading {
        if answer.status < 500 {
            self.has_answer = true;
            // The others tell this worker of lines that they hear of.
            keys.join_roster();
        }
        match answer.status {
            304 => return Reading::Read,
            // No purge was written yet.
            404 => {
                self.etag = None;
                return Reading::Read;
            }
            200 => {}
            403 => {
                let reason = "status 403: the edge may not read it, or it does not exist and the edge may not list \
                              the bucket";
                return Reading::Failed(reason.to_owned());
            }
            status => return Reading::Failed(format!("status {status}")),
        }
        let Ok(feed) = Feed::parse(&answer.body) else {
            return Reading::NoFeed;
        };
        if !self.apply(keys, roots, purge_calls, sites, &feed) {
            return Reading::Failed("its purges could not be applied now".to_owned());
        }
        let etag = answer.headers.get("etag");
        self.etag = etag.map(|etag| etag.bytes().to_vec());
        Reading::Read
    }

    /// Applies the lines of a feed that are new. Returns whether that was possible.
    fn apply(
        &self,
        keys: &mut Keys,
        roots: &mut Roots,
        purge_calls: &mut PurgeCalls,
        sites: &Sites,
        feed: &Feed,
    ) -> bool {
        let applied = SharedPurges::new(&*self.host, keys.site_count()).feed();
        let Some(applied) = self.checked(applied) else {
            return false;
        };
        let news = feed.news(applied);
        if news.is_older {
            let newest = feed.newest();
            self.metrics.warn(|| {
                format!("sluice: the purge feed is older than what was applied: its last line is {newest}")
            });
            return true;
        }
        if applied == Some(news.position) && news.everything.is_none() {
            return true;
        }
        let identity = Rc::clone(&keys.identity);
        let caller = Caller::of_edge(sites, &identity.store_secret);
        let orders = self.orders(&news, caller);
        let learnt = purge_calls.learn(keys, roots, &orders, Some(news.position));
        learnt.is_ok()
    }

    /// The orders of the lines that are for this edge.
    fn orders(&self, news: &FeedNews<'_>, caller: Caller<'_>) -> Vec<PurgeOrder> {
        let mut orders: Vec<PurgeOrder> = news.everything.map(everything).into_iter().collect();
        if news.everything.is_some() {
            let missed = "sluice: everything is purged: lines of the purge feed were missed";
            self.metrics.count(Metric::FeedValidations, 1);
            self.metrics.warn(|| missed.to_owned());
        }
        for line in news.lines {
            match line.order(caller) {
                Ok(order) => {
                    self.metrics.count(Metric::FeedLines, 1);
                    orders.push(order);
                }
                // The line is for another edge of the bucket.
                Err(_) => self.metrics.count(Metric::FeedIgnored, 1),
            }
        }
        orders
    }

    /// Has everything revalidated once, if the feed was not read for too long.
    fn validate_overdue(
        &mut self,
        keys: &mut Keys,
        roots: &mut Roots,
        purge_calls: &mut PurgeCalls,
        policy: &FeedPolicy,
        now: Millis,
    ) {
        let Some(readings) = self.readings else {
            return;
        };
        if readings.is_first() {
            // The time since the start counts as the age.
            self.note(FeedReadings::starting(now));
            return;
        }
        let most = match readings.known {
            true => policy.max_age.map(millis),
            false => Some(START_MILLIS),
        };
        if most.is_some_and(|most| now.saturating_sub(readings.read) > most) {
            self.validate(keys, roots, purge_calls, readings);
        }
    }

    /// Has everything revalidated, unless that was done since the last reading.
    fn validate(
        &mut self,
        keys: &mut Keys,
        roots: &mut Roots,
        purge_calls: &mut PurgeCalls,
        readings: FeedReadings,
    ) {
        if readings.validated {
            return;
        }
        let learnt = purge_calls.learn(keys, roots, &[everything(Kind::Soft)], None);
        if learnt.is_ok() {
            self.metrics.count(Metric::FeedValidations, 1);
            keys.await_feed(false);
            self.note(FeedReadings {
                validated: true,
                ..readings
            });
        }
    }

    fn note(&mut self, readings: FeedReadings) {
        self.readings = Some(readings);
        let noted = FeedTurn::new(&*self.host, self.worker).note(readings);
        self.checked(noted);
    }

    fn publish(&self, keys: &Keys, now: Millis) {
        if self.policy.is_none() {
            return;
        }
        let reads = self.readings.filter(|readings| !readings.is_first());
        let age = reads.map_or(0, |readings| now.saturating_sub(readings.read) / 1_000);
        let number = reads.and_then(|_| keys.feed_position());
        let number = number.map_or(0, |position| position.number);
        let whole = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        self.metrics.publish(&[
            (Metric::FeedAge, whole(age)),
            (Metric::FeedNumber, whole(number)),
        ]);
    }

    fn checked<T>(&self, result: Result<T, SharedError>) -> Option<T> {
        result
            .inspect_err(|error| {
                let lost = "the purge feed was not read";
                self.metrics.fault(lost, (*error).into());
            })
            .ok()
    }

    /// The interval, more or less up to a tenth of it.
    fn jittered(&self, every: Millis) -> Millis {
        let random = self.host.random().map_or(0, u16::from_le_bytes);
        every - every / 10 + u64::from(random) * (every / 5) / u64::from(u16::MAX)
    }
}

fn everything(kind: Kind) -> PurgeOrder {
    PurgeOrder {
        what: PurgeSubject::Scopes(vec![Scope::Everything]),
        kind,
    }
}
