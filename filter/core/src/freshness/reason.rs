// SPDX-License-Identifier: Apache-2.0
//! The reasons why a response is not stored, in one table: the source of `Cache-Status`, the access log, the counters
//! and the documents.

/// Passes the table of reasons to a macro, behind the macro's own tokens. A row has the reason, its counter, its
/// token, the counter's name, the condition of the response, and the remedy.
macro_rules! with_reasons {
    ($callback:ident! { $($own:tt)* }) => {
        $callback! {
            { $($own)* }
            {
                Status, UncacheableStatus, "status", "sluice_uncacheable_status", "Its status is not that of a whole final response: 1xx, 206 or 304.", "The origin: it answers 206 to a request without a range, or 304 to one without a condition.";
                SetCookie, UncacheableSetCookie, "set-cookie", "sluice_uncacheable_set_cookie", "It has `Set-Cookie`, so it is for one client.", "Let the origin set cookies on fewer responses; else `cache.set_cookie`: `strip`, or `store` with `public` or `s-maxage` of the origin.";
                Cookie, UncacheableCookie, "cookie", "sluice_uncacheable_cookie", "The origin has seen the client's `Cookie`, and does not say that the response is for all clients.", "Send `public` or `s-maxage` with responses that all clients share; or `request.cookies: strip`, if cookies make no difference.";
                NotUnderstood, UncacheableNotUnderstood, "must-understand", "sluice_uncacheable_must_understand", "It has `Cache-Control: must-understand`, and a status whose rules the edge does not know.", "Remove `must-understand`, or answer with a status of RFC 9110.";
                NoStore, UncacheableNoStore, "no-store", "sluice_uncacheable_no_store", "It has `Cache-Control: no-store`.", "Change the origin's `Cache-Control`; else `cache.honor_cache_control: false` in a rule for these paths.";
                NoCache, UncacheableNoCache, "no-cache", "sluice_uncacheable_no_cache", "It has `Cache-Control: no-cache`, and neither `ETag` nor `Last-Modified` to validate it with.", "Have the origin send a validator, or `max-age`.";
                Private, UncacheablePrivate, "private", "sluice_uncacheable_private", "It has `Cache-Control: private`.", "Change the origin's `Cache-Control`; else `cache.honor_cache_control: false` in a rule for these paths.";
                Vary, UncacheableVary, "vary", "sluice_uncacheable_vary", "Its `Vary` is `*`, or names a header of `vary.forbid`, more than `vary.max_headers` headers, or one whose value is longer than `vary.max_value_bytes`; or the bucket's names one that is not in `response.ignore_vary`; or it is the first response of a URL that varies, and larger than 1 MiB.", "Let `Vary` name only headers that the response depends on; `response.ignore_vary` for a header that makes no difference.";
                TooLarge, UncacheableTooLarge, "too-large", "sluice_uncacheable_too_large", "It is larger than `SLUICE_CACHE_MAX_OBJECT_BYTES`, and it cannot be stored in slices, or it has passed to its first client.", "Have the origin send a strong `ETag` and `Accept-Ranges: bytes`; name the path in `SLUICE_SLICE_KNOWN`.";
                NoTtl, UncacheableNoTtl, "no-ttl", "sluice_uncacheable_no_ttl", "`cache.ttl` has 0 for its status, whatever the origin says.", "Give the status a time in `cache.ttl`.";
                NoLifetime, UncacheableNoLifetime, "no-lifetime", "sluice_uncacheable_no_lifetime", "The origin sends neither a lifetime nor `Last-Modified`, and the policy has no time for its status.", "Have the origin send `Cache-Control`; else name the status in `cache.ttl`, or take `SLUICE_POLICY=microcache`.";
                Stale, UncacheableStale, "stale", "sluice_uncacheable_stale", "It arrived without any time left: `max-age=0`, an `Expires` in the past, or an `Age` above its lifetime.", "Look at the origin's clock and at a cache in front of it; send a longer `max-age`, or `s-maxage` for the edge alone.";
                ServerError, UncacheableServerError, "server-error", "sluice_uncacheable_server_error", "It is an error of the origin (5xx), or one that no cache stores. The requests that wait for it get the same status.", "Look at the origin; `cache.ttl` may name the status.";
                RequestError, UncacheableRequestError, "request-error", "sluice_uncacheable_request_error", "It is an error that the request itself may have caused (HTTP origin: 400, 401, 403, 405, 429 and others). The next request asks again.", "Look at the request and at the origin's log.";
                Stream, UncacheableStream, "stream", "sluice_uncacheable_stream", "It streams by its media type (`text/event-stream`, `application/x-ndjson`, `multipart/x-mixed-replace` and their like), and has neither a length nor a lifetime.", "Nothing, if it is a stream; else have the origin send `Cache-Control` or `Content-Length`.";
                UnreadableHeader, UncacheableUnreadableHeader, "unreadable-header", "sluice_uncacheable_unreadable_header", "A header that decides about it is not text (UTF-8): `Cache-Control` or a field in its place, `Expires`, `Vary`, or one with its surrogate keys.", "Have the origin send these headers as text.";
                Authorization, UncacheableAuthorization, "authorization", "sluice_uncacheable_authorization", "The origin has seen the client's `Authorization`, and does not say that the response is for all clients.", "Send `public`, `s-maxage` or `must-revalidate` with responses that all clients share; or `request.authorization: strip`.";
                RequestHeaders, UncacheableRequestHeaders, "request-headers", "sluice_uncacheable_request_headers", "The request has headers that may have caused this response: more beside its key than `limits.lead_header_bytes`, or one that asks for another form of the page (`RSC`, …) and that `Vary` does not name.", "Have the origin name these headers in `Vary`; raise `limits.lead_header_bytes` if clients send so much.";
                Purged, UncacheablePurged, "purged", "sluice_uncacheable_purged", "One of its surrogate keys or cache groups was purged while it was on its way, so it may be older than the purge.", "Nothing: the next response is stored.";
                NotTaken, UncacheableNotTaken, "not-taken", "sluice_uncacheable_not_taken", "Envoy's cache has not taken it twice, because its folder or its disk does not work, or because an older fill was under way.", "Look at the cache's folder: its owner, its space, the kernel's log.";
                KeyMismatch, UncacheableKeyMismatch, "key-mismatch", "sluice_uncacheable_key_mismatch", "The store has the response of another key in its place, or headers of another response.", "Nothing; report it if it goes on.";
                ResponseHeaders, UncacheableResponseHeaders, "response-headers", "sluice_uncacheable_response_headers", "Its headers have more than 200 lines or 96 KiB. The client gets 502.", "Have the origin send fewer headers ([the bounds](limits.md#headers)).";
            }
        }
    };
}

pub(crate) use with_reasons;

macro_rules! reasons {
    ({} { $($reason:ident, $counter:ident, $token:literal, $name:literal, $meaning:literal, $remedy:literal;)* }) => {
        /// A reason why a response is not stored.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum UncacheableReason {
            $(#[doc = $meaning] $reason,)*
        }

        impl UncacheableReason {
            /// All reasons, in the order of their codes.
            pub const ALL: &[Self] = &[$(Self::$reason,)*];

            /// A token for logs and `Cache-Status`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$reason => $token,)* }
            }

            /// A token for the `Cache-Status` of a request that is sent around the store, because an earlier response
            /// for its key was not stored for this reason.
            pub const fn hit_for_miss(self) -> &'static str {
                match self { $(Self::$reason => concat!("hit-for-miss:", $token),)* }
            }

            /// The condition in one or two sentences, for the documents.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$reason => $meaning,)* }
            }

            /// The remedy in one or two sentences, for the documents: how such responses can be stored.
            pub const fn remedy(self) -> &'static str {
                match self { $(Self::$reason => $remedy,)* }
            }

            /// A number for messages between workers.
            pub const fn code(self) -> u8 {
                self as u8
            }

            /// Reads a number from [`UncacheableReason::code`]; `None` for any other number.
            pub fn of_code(code: u8) -> Option<Self> {
                Self::ALL.get(usize::from(code)).copied()
            }
        }
    };
}

with_reasons! { reasons! {} }

#[cfg(test)]
mod tests {
    use super::UncacheableReason;
    use crate::metrics::Metric;

    #[test]
    fn each_reason_has_a_code_a_token_and_a_counter_of_its_name() {
        for (position, reason) in UncacheableReason::ALL.iter().enumerate() {
            assert_eq!(usize::from(reason.code()), position);
            assert_eq!(UncacheableReason::of_code(reason.code()), Some(*reason));
            let counter = format!("sluice_uncacheable_{}", reason.name().replace('-', "_"));
            assert_eq!(Metric::of_reason(*reason).name(), counter);
            assert!(reason.hit_for_miss().ends_with(reason.name()));
        }
        let next = u8::try_from(UncacheableReason::ALL.len()).unwrap();
        assert_eq!(UncacheableReason::of_code(next), None);
    }
}
