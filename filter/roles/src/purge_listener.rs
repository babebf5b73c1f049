// SPDX-License-Identifier: Apache-2.0
//! The listener for purges: which calls it admits, and how it answers them.

use crate::worker::policies::Policies;
use std::rc::Rc;

use sluice_core::http::syntax::field_value::FieldValue;
use sluice_core::metrics::Metric;
use sluice_core::policy::purge::{Kind, TokenHash};
use sluice_core::purge::{
    Caller, CreatedObject, FeedPurge, Notification, OrderError, PurgeOrder, PurgeSubject,
    SubjectError,
};
use sluice_core::sites::{SiteIndex, Sites};

use crate::callbacks::StreamContext;
use crate::purge_audit;
use crate::reply::refusal::answer_refusal;
use crate::request::policy::Generation;
use crate::sns::{self, Verification};
use crate::worker::Worker;
use crate::worker::metrics::Metrics;
use crate::worker::own_requests::created;
use crate::worker::purges::{feed_writes::FeedLines, ignored_events, purge_calls::Unavailable};
use sluice_host::headers::Headers;
use sluice_host::{Action, Host, Map};

/// Maximum size of a message of SNS in bytes: 256 KiB that were published (Amazon SNS quotas), and the fields that
/// SNS adds. Any sender may send a message, and it is held until it is complete. The listener bounds the body of a
/// call that has shown the token.
const MOST_SNS_BYTES: usize = 384 << 10;

/// The source of the URLs that a call purges.
#[derive(Clone, Debug)]
enum Endpoint {
    /// A JSON document with orders.
    Orders,
    /// An event of S3: objects have changed.
    Events,
    /// An event of S3 through SNS. The message's signature admits it, not a token.
    Sns,
    /// The request's own URL.
    Itself(String),
}

impl Endpoint {
    /// Refuses a body that has more bytes than the bound, or has received more already.
    fn check_size(&self, bytes: usize) -> Result<(), PurgeRefusal> {
        if matches!(self, Self::Sns) && bytes > MOST_SNS_BYTES {
            let error = format!("expected a message of at most {MOST_SNS_BYTES} bytes");
            return Err(PurgeRefusal::new(413, error).counted(Metric::SnsRefused));
        }
        Ok(())
    }
}

/// A purge that is to be carried out.
struct OrderedPurge {
    order: PurgeOrder,
    /// The lines for the purge feed.
    lines: Option<FeedLines>,
    /// The objects that were written.
    created: Vec<CreatedObject>,
}

/// The refusal of a call.
pub struct PurgeRefusal {
    /// Status of the answer.
    pub status: u16,
    /// The error for the caller.
    pub error: String,
    /// The metric that counts it.
    pub metric: Metric,
}

impl PurgeRefusal {
    fn new(status: u16, error: impl Into<String>) -> Self {
        Self {
            status,
            error: error.into(),
            metric: Metric::PurgesRefused,
        }
    }

    /// Changes the metric that counts the refusal.
    fn counted(self, metric: Metric) -> Self {
        Self { metric, ..self }
    }

    fn send(&self, host: &dyn Host) {
        let details = "sluice_purge_refused";
        answer_refusal(host, self.status, details, "POST, PURGE", &self.error);
    }
}

/// A request to the listener.
#[derive(Debug)]
pub struct PurgeCall {
    context: u32,
    /// The endpoint of an admitted call, and the site whose purges alone its caller may order.
    admitted: Option<(Endpoint, Option<SiteIndex>)>,
    /// The sites at the arrival of the call.
    generation: Option<Rc<Generation>>,
}

impl PurgeCall {
    /// Creates a request whose headers have not arrived.
    pub fn new(context: u32) -> Self {
        Self {
            context,
            admitted: None,
            generation: None,
        }
    }

    fn receive(&mut self, worker: &mut Worker, end_of_stream: bool) -> Result<(), PurgeRefusal> {
        let headers = worker.host.headers(Map::Request);
        let headers = headers.map_err(|_| unavailable(Unavailable::Failed))?;
        let generation = sites(&worker.policies)?;
        let (endpoint, site) = admit(&headers, &generation.sites)?;
        let site_of_token = site.and_then(|site| generation.sites.sites.get(site));
        let caller = match (&endpoint, site_of_token) {
            (Endpoint::Sns, _) => "sns".to_owned(),
            (_, Some(site)) => format!("site {}", site.policy.site.name),
            (_, None) => "edge".to_owned(),
        };
        purge_audit::tell_caller(&*worker.host, &worker.metrics, &caller);
        self.generation = Some(generation);
        let length = headers.get("content-length").and_then(FieldValue::number);
        endpoint.check_size(length.unwrap_or(0))?;
        let has_body = !matches!(endpoint, Endpoint::Itself(_));
        self.admitted = Some((endpoint, site));
        if end_of_stream || !has_body {
            self.carry_out(worker, &[])?;
        }
        Ok(())
    }

    fn carry_out(&mut self, worker: &mut Worker, body: &[u8]) -> Result<(), PurgeRefusal> {
        let (Some((endpoint, site)), Some(generation)) = (self.admitted.take(), &self.generation)
        else {
            return Ok(());
        };
        let identity = Rc::clone(&worker.identity);
        let caller = match site {
            Some(site) => Caller::of_site(&generation.sites, site, &identity.store_secret),
            None => Caller::of_edge(&generation.sites, &identity.store_secret),
        };
        let (host, metrics) = (&*worker.host, &worker.metrics);
        let sites = &generation.sites;
        let ordered = match endpoint {
            Endpoint::Orders => OrderedPurge {
                order: read_order(host, metrics, caller, body)?,
                lines: FeedLines::of(sites, || {
                    FeedPurge::of_order(caller, body).map(|line| vec![line])
                })
                .map_err(refuse_line)?,
                created: Vec::new(),
            },
            Endpoint::Itself(url) => {
                let order = PurgeOrder::of_url(&caller, &url).map_err(refuse_order)?;
                let line = || FeedPurge::of_url(caller, &url).map(|line| vec![line]);
                let lines = FeedLines::of(sites, line).map_err(refuse_line)?;
                purge_audit::tell_urls(host, metrics, &[url]);
                OrderedPurge {
                    order,
                    lines,
                    created: Vec::new(),
                }
            }
            Endpoint::Events => match read_events(host, metrics, sites, caller, body)? {
                Some(read) => read,
                None => return Ok(()),
            },
            Endpoint::Sns => {
                let unverified =
                    |_| unavailable(Unavailable::Failed).counted(Metric::SnsUnverified);
                return sns::ask(host, body).map_err(unverified);
            }
        };
        self.purge(worker, generation, ordered)
    }

    /// Carries out an order, and fetches the objects that were written.
    fn purge(
        &self,
        worker: &mut Worker,
        generation: &Generation,
        ordered: OrderedPurge,
    ) -> Result<(), PurgeRefusal> {
        let OrderedPurge {
            order,
            lines,
            created,
        } = ordered;
        let (keys, roots) = (&mut worker.keys, &mut worker.roots);
        let purge_calls = &mut worker.purge_calls;
        let purged = purge_calls.purge(keys, roots, self.context, &order, lines);
        purged.map_err(unavailable)?;
        created::fetch(&mut worker.calls, generation, created);
        Ok(())
    }

    /// Handles the entry point's verdict on a message of SNS.
    fn obey(&self, worker: &mut Worker, verification: Verification) -> Result<(), PurgeRefusal> {
        let metric = verification.metric();
        match verification {
            Verification::Refused { status, error } => {
                Err(PurgeRefusal::new(status, error).counted(metric))
            }
            Verification::Confirmation => {
                worker.metrics.count(metric, 1);
                answer(&*worker.host, "sluice_sns_confirmed", "{}\n")
            }
            Verification::Notification { topic, event } => {
                worker.metrics.count(metric, 1);
                purge_audit::tell_caller(&*worker.host, &worker.metrics, &format!("sns {topic}"));
                let generation = sites(&worker.policies)?;
                let identity = Rc::clone(&worker.identity);
                let caller = Caller::of_edge(&generation.sites, &identity.store_secret);
                let (host, metrics) = (&*worker.host, &worker.metrics);
                match read_events(host, metrics, &generation.sites, caller, &event)? {
                    Some(ordered) => self.purge(worker, &generation, ordered),
                    None => Ok(()),
                }
            }
        }
    }
}

/// Reads the order of an edge's or a site's operator, a JSON document.
///
/// # Errors
/// The document is not a valid order of this caller.
pub fn read_order(
    host: &dyn Host,
    metrics: &Metrics,
    caller: Caller<'_>,
    document: &[u8],
) -> Result<PurgeOrder, PurgeRefusal> {
    let order = PurgeOrder::parse(caller, document).map_err(refuse_order)?;
    purge_audit::tell_order(host, metrics, document);
    Ok(order)
}

/// Reads the objects that events report as changed, and those of them that were written. If there are none, answers
/// the call and returns `None`.
fn read_events(
    host: &dyn Host,
    metrics: &Metrics,
    sites: &Sites,
    caller: Caller<'_>,
    body: &[u8],
) -> Result<Option<OrderedPurge>, PurgeRefusal> {
    let notification = Notification::parse(&caller, body);
    let notification = notification.map_err(|error| PurgeRefusal::new(400, error.to_string()))?;
    let Notification {
        urls,
        objects,
        created,
        ignored,
    } = notification;
    ignored_events::note(host, metrics, &ignored);
    if urls.is_empty() {
        let body = format!("{{\"ignored\":{}}}\n", ignored.len());
        return answer(host, "sluice_events_ignored", &body).map(|()| None);
    }
    purge_audit::tell_urls(host, metrics, &urls);
    let scopes = urls.iter().map(|url| caller.scope_of(url));
    let order = PurgeOrder {
        what: PurgeSubject::Scopes(scopes.collect()),
        kind: Kind::Hard,
    };
    let lines = FeedLines::of(sites, || Ok(FeedPurge::of_objects(caller, &objects)));
    Ok(Some(OrderedPurge {
        order,
        lines: lines.map_err(refuse_line)?,
        created,
    }))
}

fn refuse_line(error: SubjectError) -> PurgeRefusal {
    PurgeRefusal::new(400, error.to_string())
}

fn refuse_order(error: OrderError) -> PurgeRefusal {
    PurgeRefusal::new(400, error.to_string())
}

/// Answers a call that purges nothing.
fn answer(host: &dyn Host, details: &'static str, body: &str) -> Result<(), PurgeRefusal> {
    let headers = [("content-type", "application/json")];
    let answered = host.respond(200, details, &headers, body);
    answered.map_err(|_| unavailable(Unavailable::Failed))
}

/// The sites of the newest configuration.
///
/// # Errors
/// The worker has no configuration.
pub fn sites(policies: &Policies) -> Result<Rc<Generation>, PurgeRefusal> {
    let generation = policies.newest().cloned();
    generation.ok_or_else(|| unavailable(Unavailable::Failed))
}

/// The refusal of a call that cannot be carried out now.
pub fn unavailable(reason: Unavailable) -> PurgeRefusal {
    match reason {
        Unavailable::Busy => PurgeRefusal::new(503, "too many purges are under way"),
        Unavailable::Failed => PurgeRefusal::new(503, "nothing could be purged now"),
    }
}

/// The endpoint of a call, if the caller may use it, and the site whose token it has shown. The edge's token is for
/// all sites.
fn admit(headers: &Headers, sites: &Sites) -> Result<(Endpoint, Option<SiteIndex>), PurgeRefusal> {
    // A value that is not text is neither a method nor a path of the listener.
    let text = |name| headers.get(name).and_then(|value| value.text().ok());
    let (method, path) = (text(":method"), text(":path"));
    let (method, path) = (method.unwrap_or_default(), path.unwrap_or_default());
    let purge = &sites.edge.purge;
    if purge.sns && path == "/sns" {
        return match method {
            "POST" => Ok((Endpoint::Sns, None)),
            _ => Err(PurgeRefusal::new(405, "expected POST").counted(Metric::SnsRefused)),
        };
    }
    let shown = headers.get("authorization").map(FieldValue::bytes);
    let shown = TokenHash::shown(shown);
    let is_shown = |token: Option<TokenHash>| {
        let both = token.zip(shown);
        both.is_some_and(|(token, shown)| token.is(shown))
    };
    if is_shown(purge.token) {
        return Ok((endpoint(headers, method, path)?, None));
    }
    let site = sites
        .sites
        .iter()
        .position(|site| is_shown(site.purge_token));
    match site {
        Some(site) => Ok((endpoint(headers, method, path)?, Some(site))),
        None => Err(PurgeRefusal::new(
            401,
            "Authorization: expected Bearer and the purge token",
        )),
    }
}

fn endpoint(headers: &Headers, method: &str, path: &str) -> Result<Endpoint, PurgeRefusal> {
    match (method, path) {
        ("PURGE", path) => {
            let authority = headers.get(":authority").map(FieldValue::text);
            let Ok(authority) = authority.unwrap_or(Ok("")) else {
                return Err(PurgeRefusal::new(400, "Host: expected the name of a host"));
            };
            Ok(Endpoint::Itself(format!("http://{authority}{path}")))
        }
        ("POST", "/purge") => Ok(Endpoint::Orders),
        ("POST", "/s3") => Ok(Endpoint::Events),
        (_, "/purge" | "/s3") => Err(PurgeRefusal::new(405, "expected POST")),
        _ => {
            let expected = "expected POST /purge, POST /s3, or PURGE and a URL's path and Host";
            Err(PurgeRefusal::new(404, expected))
        }
    }
}

impl StreamContext for PurgeCall {
    fn on_request_headers(
        &mut self,
        host: &dyn Host,
        worker: Option<&mut Worker>,
        ends: bool,
    ) -> Action {
        self.proceed(host, worker, |call, worker| call.receive(worker, ends))
    }

    fn on_request_body(
        &mut self,
        host: &dyn Host,
        worker: Option<&mut Worker>,
        size: usize,
        ends: bool,
    ) -> Action {
        if !ends {
            return self.proceed(host, worker, |call, _| {
                let admitted = call.admitted.as_ref();
                admitted.map_or(Ok(()), |(endpoint, _)| endpoint.check_size(size))
            });
        }
        let body = host.request_body(size).unwrap_or_default();
        self.proceed(host, worker, |call, worker| call.carry_out(worker, &body))
    }

    fn on_call_response(
        &mut self,
        host: &dyn Host,
        worker: Option<&mut Worker>,
        answered: bool,
        size: usize,
    ) {
        let verification = sns::verification(host, answered, size);
        self.proceed(host, worker, |call, worker| call.obey(worker, verification));
    }

    fn on_done(&mut self, worker: Option<&mut Worker>) {
        if let Some(worker) = worker {
            worker.purge_calls.forget(self.context);
        }
    }
}

impl PurgeCall {
    /// Takes the next `step` of the call. Its request is never forwarded: it is answered, now or later.
    fn proceed(
        &mut self,
        host: &dyn Host,
        worker: Option<&mut Worker>,
        step: impl FnOnce(&mut Self, &mut Worker) -> Result<(), PurgeRefusal>,
    ) -> Action {
        let taken = match worker {
            Some(worker) => {
                step(self, worker).inspect_err(|refusal| worker.metrics.count(refusal.metric, 1))
            }
            None => Err(unavailable(Unavailable::Failed)),
        };
        if let Err(answer) = taken {
            self.admitted = None;
            answer.send(host);
        }
        Action::Pause
    }
}
