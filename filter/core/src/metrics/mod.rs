// SPDX-License-Identifier: Apache-2.0
//! Every metric of the filter, defined once: name, kind and help.
//!
//! Envoy's statistics have no labels, so each value of a label is a separate metric here. `family` has the names and
//! the labels for Prometheus.

mod family;

pub use family::{Family, FamilyMember};

use crate::freshness::UncacheableReason;
use crate::freshness::reason::with_reasons;

/// Kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// A number that only grows.
    Counter,
    /// A number that rises and falls; summed over the workers.
    Gauge,
    /// A distribution.
    Histogram,
}

macro_rules! metrics {
    (
        { $($variant:ident, $name:literal, $kind:ident, $help:literal;)* }
        { $($reason:ident, $counter:ident, $token:literal, $counted:literal, $meaning:literal, $remedy:literal;)* }
    ) => {
        /// A metric of the filter.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(usize)]
        pub enum Metric {
            $(#[doc = $help] $variant,)*
            $(#[doc = concat!("Responses for clients that were not stored, for the reason ", $token, ".")] $counter,)*
        }

        impl Metric {
            /// All metrics, in the order of their indices.
            pub const ALL: &[Metric] = &[$(Metric::$variant,)* $(Metric::$counter,)*];

            /// The name in Envoy's statistics.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Metric::$variant => $name,)*
                    $(Metric::$counter => $counted,)*
                }
            }

            /// The name of the counter in Prometheus, if the counter is the only member of its family.
            const fn total(self) -> &'static str {
                match self {
                    $(Metric::$variant => concat!($name, "_total"),)*
                    $(Metric::$counter => concat!($counted, "_total"),)*
                }
            }

            /// The kind.
            pub const fn kind(self) -> MetricKind {
                match self {
                    $(Metric::$variant => MetricKind::$kind,)*
                    $(Metric::$counter => MetricKind::Counter,)*
                }
            }

            /// Help text, in one sentence.
            pub const fn help(self) -> &'static str {
                match self {
                    $(Metric::$variant => $help,)*
                    $(Metric::$counter => concat!(
                        "Responses for clients that were not stored, for the reason ", $token, "."
                    ),)*
                }
            }

            /// The metric that counts the responses that are not stored for this reason.
            pub const fn of_reason(reason: UncacheableReason) -> Self {
                match reason { $(UncacheableReason::$reason => Metric::$counter,)* }
            }

            /// Position in [`Metric::ALL`].
            pub const fn index(self) -> usize {
                self as usize
            }
        }
    };
}

with_reasons! { metrics! {
    RequestsHit, "sluice_requests_hit", Counter, "Requests answered from the store, without the origin.";
    RequestsMiss, "sluice_requests_miss", Counter, "Requests whose response came from the origin and was stored, or could have been stored.";
    RequestsRevalidated, "sluice_requests_revalidated", Counter, "Requests answered from the store after the origin confirmed that the stored response is still valid.";
    RequestsStale, "sluice_requests_stale", Counter, "Requests answered from the store with a stale response, within a window that allows it.";
    RequestsCollapsed, "sluice_requests_collapsed", Counter, "Requests that waited for another request's response and shared it.";
    RequestsHitForMiss, "sluice_requests_hit_for_miss", Counter, "Requests that went around the store because their key is known to be uncacheable.";
    RequestsPassed, "sluice_requests_passed", Counter, "Requests that went around the store because of their method, credentials or body.";
    RequestsRejected, "sluice_requests_rejected", Counter, "Requests refused for their URL or method, with nothing sent to the origin.";
    AccessByExcept, "sluice_access_by_except", Counter, "Requests of clients for paths that are open to everyone.";
    AccessByAllow, "sluice_access_by_allow", Counter, "Requests of clients that were admitted for their address, where no scheme is needed.";
    AccessByAddress, "sluice_access_by_address", Counter, "Requests of clients that were admitted by the scheme address.";
    AccessBySignature, "sluice_access_by_signature", Counter, "Requests of clients that were admitted by the scheme signed.";
    AccessByPassword, "sluice_access_by_password", Counter, "Requests of clients that were admitted by the scheme basic.";
    AccessByForward, "sluice_access_by_forward", Counter, "Requests of clients that were admitted by the scheme forward.";
    AccessByToken, "sluice_access_by_token", Counter, "Requests of clients that were admitted by the scheme jwt.";
    AccessRefusedByAllow, "sluice_access_refused_by_allow", Counter, "Requests refused because their client is in no network of allow.";
    AccessRefusedBySignature, "sluice_access_refused_by_signature", Counter, "Requests refused because their signature is not valid.";
    AccessRefusedByPassword, "sluice_access_refused_by_password", Counter, "Requests refused because no user has their name and password.";
    AccessRefusedByToken, "sluice_access_refused_by_token", Counter, "Requests refused because their token is not valid.";
    AccessTokenFailures, "sluice_access_token_failures", Counter, "Requests answered with 503 because their token could not be verified, such as while the keys of the issuer have not been fetched.";
    AccessRefusedByForward, "sluice_access_refused_by_forward", Counter, "Requests that the server of the scheme forward has refused.";
    AccessForwardFailures, "sluice_access_forward_failures", Counter, "Requests answered with 503 because the server of the scheme forward has not answered, or not in a form that is understood.";
    AccessRefusedWithoutProof, "sluice_access_refused_without_proof", Counter, "Requests refused because they satisfy no scheme, and have no credentials.";
    RequestsSubstituted, "sluice_requests_substituted", Counter, "Requests for missing objects answered with a redirect to a directory, a listing, the fallback document or the error document.";
    ListingNamesLeftOut, "sluice_listing_names_left_out", Counter, "Names in a bucket's answers for listings that the listings leave out, because no URL of the edge names them.";
    PeersRefused, "sluice_peer_requests_refused", Counter, "Requests at the port for peers that were refused because they lack the secret of the peers.";
    PeersLacking, "sluice_peer_requests_lacking_purges", Counter, "Requests at the port for peers that were sent elsewhere because the edge had not applied all purges of their senders.";
    BytesSent, "sluice_bytes_sent", Counter, "Bytes of the bodies of responses to clients, counted at the end of each response.";
    BodiesAwaited, "sluice_bodies_awaited", Counter, "Requests for what may be stored that their headers did not end, so that the filter waited for the first part of a body.";
    BodiesOverdue, "sluice_bodies_overdue", Counter, "Such requests whose body did not arrive within a second: answered with 408 for a bucket, passed to an HTTP origin.";
    HotHits, "sluice_hot_hits", Counter, "Requests answered from a worker's own memory; sluice_requests_hit counts them as well.";
    HotAdmissions, "sluice_hot_admissions", Counter, "Objects that a worker copied into its own memory.";
    HotEvictions, "sluice_hot_evictions", Counter, "Hot copies that were removed to make room for others.";
    OriginFetches, "sluice_origin_fetches", Counter, "Requests sent to the origin.";
    OriginBytes, "sluice_origin_bytes", Counter, "Bytes of the bodies of the origin's responses, as the edge compresses them, counted at the end of each response.";
    OriginUnlinked, "sluice_origin_unlinked", Counter, "Requests stopped before the origin because EDGE had not vouched for them.";
    OriginAdopted, "sluice_origin_adopted", Counter, "Requests sent to the origin for their clients alone, because the module was replaced while they were on their way.";
    OriginOverdue, "sluice_origin_overdue", Counter, "Requests to the origin that were given up because the origin was too slow; a stale response was served instead.";
    SecondOriginAnswers, "sluice_second_origin_answers", Counter, "Responses of a site's second origin without a server error, because the first origin had failed.";
    MissingObjectsAsked, "sluice_missing_objects_asked", Counter, "Responses of a site's second origin for objects that the first one lacks, without a server error.";
    BucketThrottled, "sluice_bucket_throttled", Counter, "Responses of the bucket that want fewer requests, such as S3's SlowDown, after the last retry.";
    BucketFailed, "sluice_bucket_failed", Counter, "Other 5xx of the bucket, such as S3's InternalError, after the last retry.";
    BucketRegionWrong, "sluice_bucket_region_wrong", Counter, "Responses of the bucket that say that it is in another region.";
    BucketCredentialsRefused, "sluice_bucket_credentials_refused", Counter, "Responses of the bucket that refuse the credentials, which are wrong or have expired.";
    BucketClockSkewed, "sluice_bucket_clock_skewed", Counter, "Responses of the bucket that say that the edge's clock is wrong.";
    BucketMissing, "sluice_bucket_missing", Counter, "Responses that say that the bucket does not exist.";
    BucketRefused, "sluice_bucket_refused", Counter, "Responses of the bucket with 400 and no error code, as a HEAD may get where a GET would get one.";
    ValidationsRefused, "sluice_validations_refused", Counter, "304 responses of the origin that were about another response than the stored one, so that the object was fetched again.";
    Refreshes, "sluice_refreshes", Counter, "Requests to the origin in the background, for a response that is served stale meanwhile.";
    UnreadFillsRefused, "sluice_unread_fills_refused", Counter, "Fills that were not begun because there were too many that no client reads, by number or by bytes; ranges and conditional requests went to the origin as they are.";
    RefreshFailures, "sluice_refresh_failures", Counter, "Refreshes that failed, so that the stale response stays.";
    FlightsLed, "sluice_flights_led", Counter, "Requests that led: each fetched a key for all requests that wait for it.";
    FollowersParked, "sluice_followers_parked", Counter, "Requests that began to wait for a leader.";
    FollowersResumed, "sluice_followers_resumed", Counter, "Waiting requests that went on, for whatever reason.";
    FollowersFailed, "sluice_followers_failed", Counter, "Waiting requests that were answered with their leader's error, and requests in slices that were answered with the error of their first slice.";
    WaitTimeouts, "sluice_wait_timeouts", Counter, "Waiting requests that were sent to the origin alone because the leader made no progress for max_wait.";
    SlicedRequests, "sluice_sliced_requests", Counter, "Requests that were answered in slices.";
    SlicedQueued, "sluice_sliced_queued", Counter, "Requests that waited because their connection had as many responses in slices as it may have.";
    SlicesHit, "sluice_slices_hit", Counter, "Slices that came from the store.";
    SlicesMissed, "sluice_slices_missed", Counter, "Slices that came from the origin.";
    SlicesCollapsed, "sluice_slices_collapsed", Counter, "Slices that waited for another request's slice and shared it.";
    SliceBytesHit, "sluice_slice_bytes_hit", Counter, "Bytes of slices that came from the store.";
    SliceBytesMissed, "sluice_slice_bytes_missed", Counter, "Bytes of slices that came from the origin.";
    SliceBytesCollapsed, "sluice_slice_bytes_collapsed", Counter, "Bytes of slices that waited for another request's slice and shared it.";
    SliceIndexesAsked, "sluice_slice_indexes_asked", Counter, "Questions for the headers of an object that may be served in slices.";
    SliceIndexesDropped, "sluice_slice_indexes_dropped", Counter, "Objects that a worker has forgotten because it knew as many as `limits.hints` allows, summed over the workers.";
    SlicesChanged, "sluice_slices_changed", Counter, "Slices that the origin did not have in the version of their object any more.";
    SlicedCut, "sluice_sliced_cut", Counter, "Responses in slices that had begun when one of their slices failed.";
    SlicedPassed, "sluice_sliced_passed", Counter, "Responses that passed in one piece although their object is served in slices, because its size was not known, or because it had changed.";
    Handovers, "sluice_handovers", Counter, "Waiting requests that became the leader after the leader had vanished.";
    Unshared, "sluice_unshared", Counter, "Flights whose response should have been stored but was not, so that another request leads.";
    HitForMissMarked, "sluice_hit_for_miss_marked", Counter, "Keys marked as uncacheable (hit-for-miss).";
    VaryingLearnt, "sluice_varying_learnt", Counter, "Lessons of a worker: a response varies with a request header that its key lacks; later requests have it in their key.";
    UnexpectedMisses, "sluice_unexpected_misses", Counter, "Requests for a key believed fresh that reached the origin nevertheless, for example after an eviction.";
    LimitsReached, "sluice_limits_reached", Counter, "Requests not coalesced because a bound was reached: waiters of a key, keys in flight, or room on the board.";
    BoardConflicts, "sluice_board_conflicts", Counter, "Compare-and-swaps on the board that another worker won.";
    HostErrors, "sluice_host_errors", Counter, "Calls to Envoy that failed; the request went on uncoalesced.";
    ReenteredCallbacks, "sluice_reentered_callbacks", Counter, "Callbacks that found their worker in use by another callback, which is a fault of the filter; their requests are not coalesced.";
    WorkersLost, "sluice_workers_lost", Counter, "Workers of the native module that lost their requests and started again, because a callback panicked, which is a fault of the filter.";
    StoreLookups, "sluice_store_lookups", Counter, "Questions to the store: whether a finished fill can be read, or whether the store has what a HEAD asks for.";
    FillsWithoutRoom, "sluice_fills_without_room", Counter, "Responses that were not stored because the cache's file system has too little free space.";
    FillsAborted, "sluice_fills_aborted", Counter, "Fills that were ended because Envoy's cache does not survive the loss of their client.";
    KeyMismatches, "sluice_key_mismatches", Counter, "Stored responses that are not served: of another key, or with the headers of another response.";
    Purges, "sluice_purges", Counter, "Purges that were carried out.";
    PurgesRefused, "sluice_purges_refused", Counter, "Purge calls that were refused, for example for a wrong token, with nothing purged.";
    EventsRead, "sluice_events_read", Counter, "Events of a bucket about a read, which purges nothing.";
    EventsUnchanged, "sluice_events_unchanged", Counter, "Events of a bucket after which the object is as it was, such as of tags or replication, and tests of the notification, which purge nothing.";
    EventsUnknown, "sluice_events_unknown", Counter, "Events of an unknown kind or shape, which purge nothing.";
    EventsElsewhere, "sluice_events_elsewhere", Counter, "Events of objects that are in no bucket of the caller's sites or not below its prefix, which purge nothing.";
    CreatedFetched, "sluice_created_fetched", Counter, "Written objects that the edge has fetched because of a notification.";
    CreatedSkipped, "sluice_created_skipped", Counter, "Written objects that the edge has not fetched, because they are too large or the bounds of purge.on_created are reached.";
    CreatedFailed, "sluice_created_failed", Counter, "Written objects that the edge has requested because of a notification, with an error as the answer or with none.";
    SnsNotifications, "sluice_sns_notifications", Counter, "Notifications of Amazon SNS with a valid signature, from a listed topic.";
    SnsConfirmations, "sluice_sns_confirmations", Counter, "Confirmations of Amazon SNS, of a subscription or of its end, with a valid signature.";
    SnsRefused, "sluice_sns_refused", Counter, "Messages on the path for Amazon SNS that were refused, for example for an invalid signature, with nothing done.";
    SnsUnverified, "sluice_sns_unverified", Counter, "Messages of Amazon SNS that could not be verified or confirmed, for example because SNS was out of reach; SNS sends them again.";
    PurgesUnacknowledged, "sluice_purges_unacknowledged", Counter, "Purges that not every worker acknowledged in time.";
    PurgesUnrecorded, "sluice_purges_unrecorded", Counter, "Purges that could not be written into the journal.";
    PurgeRevalidations, "sluice_purge_revalidations", Counter, "Requests sent to the origin because of a soft purge or a change through the edge.";
    Invalidations, "sluice_invalidations", Counter, "Successful requests with an unsafe method, after which the stored responses of their URLs are revalidated.";
    FeedReads, "sluice_purge_feed_reads", Counter, "Readings of the purge feed, whether or not it has changed.";
    FeedErrors, "sluice_purge_feed_errors", Counter, "Readings of the purge feed that have failed, or that have found no feed.";
    FeedLines, "sluice_purge_feed_lines", Counter, "Lines of the purge feed that were applied.";
    FeedIgnored, "sluice_purge_feed_lines_ignored", Counter, "Lines of the purge feed that are for no site of this edge.";
    FeedValidations, "sluice_purge_feed_validations", Counter, "Purges of everything because lines of the feed were missed, or because the feed could not be read.";
    FeedWritten, "sluice_purge_feed_lines_written", Counter, "Lines that purges at this edge have in the purge feed.";
    FeedUnwritten, "sluice_purge_feed_write_errors", Counter, "Purges at this edge that could not be written to the purge feed, and are in force on this edge only.";
    FeedAge, "sluice_purge_feed_age_seconds", Gauge, "Seconds since the purge feed was last read.";
    FeedNumber, "sluice_purge_feed_number", Gauge, "Number of the last line of the purge feed that was applied.";
    ParkedNow, "sluice_parked_now", Gauge, "Requests that wait now.";
    FlightsNow, "sluice_flights_now", Gauge, "Keys that are fetched now, counted once for each worker that takes part.";
    HintsNow, "sluice_hints_now", Gauge, "Keys remembered as fresh or uncacheable, summed over the workers.";
    SliceIndexesNow, "sluice_slice_indexes_now", Gauge, "Objects that a worker knows to be served in slices or as a whole, summed over the workers.";
    SlicedNow, "sluice_sliced_now", Gauge, "Responses in slices that are under way, summed over the workers.";
    HotObjectsNow, "sluice_hot_objects_now", Gauge, "Hot copies in the workers' own memory, summed over the workers.";
    HotBytesNow, "sluice_hot_bytes_now", Gauge, "Bytes of memory that hot copies take, summed over the workers.";
    FirstByteHit, "sluice_first_byte_hit_milliseconds", Histogram, "Time from a client's request to the first byte of its response, which the cache has.";
    FirstByteCollapsed, "sluice_first_byte_collapsed_milliseconds", Histogram, "Time from a client's request to the first byte of its response, for which the request waited for another request.";
    FirstByteMiss, "sluice_first_byte_miss_milliseconds", Histogram, "Time from a client's request to the first byte of its response, for which the request was sent to the origin.";
    OriginFirstByte, "sluice_origin_first_byte_milliseconds", Histogram, "Time from a request to the origin to the first byte of the origin's response, with all retries.";
    WaitMilliseconds, "sluice_wait_milliseconds", Histogram, "How long requests waited for a leader.";
} }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_positions() {
        for (position, metric) in Metric::ALL.iter().enumerate() {
            assert_eq!(metric.index(), position);
        }
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = Metric::ALL.iter().map(|metric| metric.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Metric::ALL.len());
    }
}
