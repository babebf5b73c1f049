// SPDX-License-Identifier: Apache-2.0
//! Failures of an origin, as Envoy reports them in [`crate::internal_headers::FAILURE_HEADER`].

use crate::http::header_bound::{HOP_ADDS, RESPONSE};
use crate::internal_headers::INTERNAL_PREFIX;

/// Reason for which an origin has not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginFailure {
    /// The response has more headers than the edge accepts.
    ResponseHeaders,
    /// The origin has answered 304 to a request without a condition, whose client has no response to use (RFC 9110,
    /// 15.4.5).
    NotModified,
    /// The origin has not received the request, because the edge has no connection to it.
    NotReached,
    /// No response in time, a broken connection, or an invalid response.
    NoAnswer,
}

impl OriginFailure {
    /// Reads Envoy's words: the details of the response that Envoy has made, and after a space the number of bytes
    /// that Envoy has read from the origin. A codec that refuses a response after that many bytes has not reached the
    /// end of the headers.
    pub fn of(details: &[u8]) -> Self {
        if details == TOO_MANY_LINES.as_bytes() {
            return Self::ResponseHeaders;
        }
        if details == NOT_MODIFIED.as_bytes() {
            return Self::NotModified;
        }
        let (reason, read) = split(details);
        let is_of_codec = reason.ends_with(CODEC);
        let said = |reason: &&str| {
            let mut parts = details.windows(reason.len());
            parts.any(|part| part == reason.as_bytes())
        };
        match read.filter(|_| is_of_codec) {
            Some(read) if read >= RESPONSE.bytes() => Self::ResponseHeaders,
            _ if NOT_REACHED.iter().any(said) => Self::NotReached,
            _ => Self::NoAnswer,
        }
    }

    /// Whether the origin has sent no response.
    pub const fn is_silence(self) -> bool {
        matches!(self, Self::NotReached | Self::NoAnswer)
    }
}

/// Whether the connection to the origin has ended before the first byte of a response, by Envoy's words as
/// [`OriginFailure::of`] reads them. An origin may close a connection while a request is being sent (RFC 9112,
/// 9.3.1).
pub fn has_ended_unanswered(details: &[u8]) -> bool {
    let (reason, read) = split(details);
    reason == CONNECTION_ENDED && read == Some(0)
}

/// The reason in Envoy's words, and the number of bytes that Envoy has read from the origin.
fn split(details: &[u8]) -> (&[u8], Option<u64>) {
    let mut words = details.splitn(2, |&byte| byte == b' ');
    let reason = words.next().unwrap_or_default();
    let read = words.next().and_then(|word| str::from_utf8(word).ok());
    (reason, read.and_then(|word| word.parse().ok()))
}

/// ORIGIN's own words for a response that it refuses because of the number of its header lines.
pub const TOO_MANY_LINES: &str = "too_many_response_header_lines";
/// ORIGIN's own words for a 304 that it refuses because its request has no condition.
pub const NOT_MODIFIED: &str = "not_modified_without_a_condition";
/// Parts of Envoy's details if Envoy has sent no request.
const NOT_REACHED: [&str; 4] = [
    "connection_failure",
    "connection_timeout",
    "no_healthy_upstream",
    "overflow",
];
/// End of Envoy's details if Envoy's codec has refused the response.
const CODEC: &[u8] = b"{protocol_error}";

/// Envoy's details of a connection that has ended before the first byte of a response.
const CONNECTION_ENDED: &[u8] = b"upstream_reset_before_response_started{connection_termination}";

/// Whether a response has more header lines than the edge accepts, apart from Envoy's own. Envoy bounds their bytes.
pub fn has_too_many_lines<'a>(names: impl Iterator<Item = &'a [u8]>) -> bool {
    let of_origin = |name: &&[u8]| {
        let is_pseudo = name.first() == Some(&b':');
        !is_pseudo && !name.starts_with(INTERNAL_PREFIX.as_bytes())
    };
    let most = RESPONSE.plus(HOP_ADDS).lines as usize;
    names.filter(of_origin).nth(most).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_codec_that_has_read_as_much_as_the_bound_has_met_too_large_headers() {
        let start = "upstream_reset_before_response_started";
        for (words, failure) in [
            ("{protocol_error} 98304", OriginFailure::ResponseHeaders),
            ("{protocol_error} 98303", OriginFailure::NoAnswer),
            ("{protocol_error} -", OriginFailure::NoAnswer),
            ("{protocol_error}", OriginFailure::NoAnswer),
            ("{connection_termination} 98304", OriginFailure::NoAnswer),
            ("{protocol_error} 98304 1", OriginFailure::NoAnswer),
        ] {
            let details = [start, words].concat();
            assert_eq!(OriginFailure::of(details.as_bytes()), failure, "{details}");
        }
    }

    #[test]
    fn a_connection_has_ended_unanswered_where_no_byte_of_a_response_has_come() {
        let start = "upstream_reset_before_response_started";
        for (words, ended) in [
            ("{connection_termination} 0", true),
            ("{connection_termination} 1", false),
            ("{connection_termination} -", false),
            ("{connection_termination}", false),
            ("{connection_timeout} 0", false),
        ] {
            let details = [start, words].concat();
            assert_eq!(has_ended_unanswered(details.as_bytes()), ended, "{details}");
        }
        assert_eq!(OriginFailure::of(b"\xff 98304"), OriginFailure::NoAnswer);
        assert_eq!(OriginFailure::of(b""), OriginFailure::NoAnswer);
        let refused =
            b"upstream_reset_before_response_started{remote_connection_failure|refused} 0";
        assert_eq!(OriginFailure::of(refused), OriginFailure::NotReached);
        assert_eq!(
            OriginFailure::of(b"no_healthy_upstream -"),
            OriginFailure::NotReached
        );
        let own = OriginFailure::of(TOO_MANY_LINES.as_bytes());
        assert_eq!(own, OriginFailure::ResponseHeaders);
    }

    #[test]
    fn lines_of_envoys_own_do_not_count() {
        let lines = |of_origin: usize| {
            let own = [&b":status"[..], b"x-sluice-connection"];
            own.into_iter()
                .chain(std::iter::repeat_n(&b"a"[..], of_origin))
        };
        let most = RESPONSE.plus(HOP_ADDS).lines as usize;
        assert!(!has_too_many_lines(lines(most)));
        assert!(has_too_many_lines(lines(most + 1)));
    }
}
