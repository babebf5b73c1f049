// SPDX-License-Identifier: Apache-2.0
//! The meaning of a status for the next request for the same URL.

/// Whether an error may be the fault of the request, by a property that is not in the cache key: its headers, its
/// client's address, the time of its arrival.
pub const fn is_request_error(status: u16) -> bool {
    matches!(
        status,
        400 | 401 | 403 | 405 | 406 | 407 | 408 | 411
            ..=417 | 421 | 422 | 425 | 426 | 428 | 429 | 431 | 501 | 505
    )
}

/// Whether a cache must not store a response with this status, regardless of the response's headers (RFC 6585, 3 to
/// 6).
pub const fn must_not_be_stored(status: u16) -> bool {
    matches!(status, 428 | 429 | 431 | 511)
}

/// Whether a response may be stored without explicit freshness (RFC 9110, 15.1). Statuses that a request may have
/// caused, and 206, are excluded.
pub const fn is_heuristically_cacheable(status: u16) -> bool {
    matches!(status, 200 | 203 | 204 | 300 | 301 | 308 | 404 | 410)
}
