// SPDX-License-Identifier: Apache-2.0
//! What a status says of the next request for the same URL.

/// Whether an error may be the fault of the request, by what a cache key does not have of it: its headers, its
/// client's address, the time at which it came.
pub const fn is_request_error(status: u16) -> bool {
    matches!(
        status,
        400 | 401 | 403 | 405 | 406 | 407 | 408 | 411
            ..=417 | 421 | 422 | 425 | 426 | 428 | 429 | 431 | 501 | 505
    )
}

/// Whether no cache may store a response, whatever else it says (RFC 6585, 3 to 6).
pub const fn must_not_be_stored(status: u16) -> bool {
    matches!(status, 428 | 429 | 431 | 511)
}

/// Whether a response may be stored without explicit freshness (RFC 9110, 15.1), but for 206 and for what a request may
/// have caused.
pub const fn is_heuristically_cacheable(status: u16) -> bool {
    matches!(status, 200 | 203 | 204 | 300 | 301 | 308 | 404 | 410)
}
